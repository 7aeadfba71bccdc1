"""The stream of what operators look at: what has changed, once a second, as server-sent events (C34.1).

All who look at the same share one sample a second; nobody who looks, no sample. A feed remembers what it told last, so
that a viewer who comes back hears what was missed.
"""

import asyncio
import re
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextvars import Context
from functools import partial
from typing import Final

import orjson
import structlog

from recado.domain.core.clock import Clock
from recado.domain.core.errors import Problem, Unavailable
from recado.http.routes.ops.samples import MOST_ITEMS, Sample, Samples
from recado.http.wire.outlet import Outlet, chunk
from recado.storage.ops.scope import Scope

EVERY: Final = 1.0  # seconds
HEARTBEAT: Final = 15  # looks without news, after which a line without meaning shows that the connection stands
LONGEST = 300.0  # seconds: then the viewer comes back, and shows its credential again
LONGEST_FAILING: Final = 30.0  # seconds without a look that succeeds, after which the viewer comes back: it may be gone
KEPT_FOR: Final = 60.0  # seconds that a feed without viewers remembers what it told
VIEWERS: Final = 200
VIEWERS_OF_THE_ADMINISTRATOR: Final = 100
VIEWERS_OF_AN_ORGANIZATION: Final = 5
REMEMBERED: Final = 60  # looks with news
REMEMBERED_BYTES: Final = 4 * 1024 * 1024
RETRY_MS: Final = 2_000
PIECE: Final = 64 * 1024  # bytes that a task sends at once
MEMORY: Final = 2 * PIECE
"""Bytes that a viewer may hold, beside what all of its feed share."""
WHOLE_FOR: Final = 15
"""Looks with news: who comes later than that gets another whole, the others the same one and what was told since."""
NOTHING_NEW: Final = b":\n\n"
KINDS: Final = ("numbers", "actors", "webhooks", "throughput")
_ID: Final = re.compile(r"([0-9a-f]{16})-([0-9]{1,15})")

log = structlog.get_logger(__name__)

Look = Callable[[Scope], "asyncio.Future[Sample]"]


class Feed:
    """What the viewers of a scope are told. `name` tells it from one before, whose numbers mean nothing here.

    `failing`: the last look came to nothing, or there was none yet. Its viewers hear nothing then: whatever they hear
    says that what they see is true.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.viewers: dict[Viewer, None] = {}
        self.failing = True
        self.left_at = 0.0  # when the last viewer left
        self.number = 0  # of the last look with news
        self.shown: dict[str, dict[str, bytes]] = {kind: {} for kind in KINDS}
        self._told: deque[bytes] = deque()  # by the last looks with news
        self._bytes = 0
        self._whole = (0, b"")  # as it was at that number; empty: nobody has asked
        self._framed = (b"", b"")  # what was sent to many last, and as a chunk

    def look(self, samples: Mapping[str, Sample]) -> None:
        """Take in what is seen now; what is another than before is news."""
        news = []
        for kind, sample in samples.items():
            now, before = dict(sample[:MOST_ITEMS]), self.shown[kind]
            changed = [item for about, item in now.items() if before.get(about) != item]
            gone = [about for about in before if about not in now]
            self.shown[kind] = now
            if changed or gone:
                news.append(_event(kind, changed, gone, whole=False))
        if not news:
            return
        self.number += 1
        told = self._marked(b"".join(news))
        self._told.append(told)
        self._bytes += len(told)
        while len(self._told) > REMEMBERED or (self._bytes > REMEMBERED_BYTES and len(self._told) > 1):
            self._bytes -= len(self._told.popleft())

    def tell(self, now: float) -> None:
        """Tell each viewer what there is to tell after a look; `now`: monotonic seconds."""
        for viewer in list(self.viewers):
            try:
                viewer.look(now)
            except Exception as error:  # noqa: BLE001 - one viewer's fault is not that of the others
                log.error("viewer_not_told", error=type(error).__name__)
                viewer.leave()

    def framed(self, told: bytes) -> bytes:
        """The same as a chunk: made once for all who are told it."""
        if self._framed[0] is not told:
            self._framed = told, chunk(told)
        return self._framed[1]

    def whole(self) -> list[bytes]:
        """Everything that is shown now: as it was a few looks ago, and what was told since.

        Many viewers may come one after the other, and each holds it until it has taken it: so they hold the same.
        """
        number, whole = self._whole
        since = self.since(number)
        if not whole or since is None or len(since) > WHOLE_FOR:
            shown = (_event(kind, list(self.shown[kind].values()), [], whole=True) for kind in KINDS)
            self._whole, since = (self.number, whole := self._marked(b"".join(shown))), []
        return [whole, *since]

    def since(self, number: int) -> list[bytes] | None:
        """What was told after that; None when it is not remembered."""
        missed = self.number - number
        if missed < 0 or missed > len(self._told):
            return None
        return [self._told[place] for place in range(-missed, 0)]

    def resumed(self, last_id: str | None) -> int | None:
        """The number of the last event that a viewer has seen of this feed; None: of another one, or none."""
        found = _ID.fullmatch(last_id or "")
        return int(found[2]) if found is not None and found[1] == self.name else None

    def _marked(self, events: bytes) -> bytes:
        """The id stands in the last event of a look: whoever got less of it hears the whole look again."""
        return events[:-1] + f"id: {self.name}-{self.number}\n\n".encode() if events else b""


class Viewer:
    """One who looks: what it was told, and until when it is (`end`). Its task sends only what does not go at once."""

    __slots__ = ("_begun", "_feed", "_heard", "_outlet", "_seen", "_silent", "_turn", "end")

    def __init__(self, feed: Feed, last_id: str | None, outlet: Outlet, now: float) -> None:
        self._feed = feed
        self._outlet = outlet
        self._heard = now  # when a look succeeded last
        self.end = now + LONGEST
        seen = feed.resumed(last_id)
        self._seen = None if seen is None or feed.since(seen) is None else seen
        self._silent = 0  # looks without news
        self._begun = False
        self._turn: asyncio.Future[Sequence[bytes] | None] | None = None  # None: its task still sends

    async def news(self) -> Sequence[bytes] | None:
        """What its task shall send next; None: nothing more."""
        self._turn = asyncio.get_running_loop().create_future()
        try:
            return await self._turn
        finally:
            self._turn = None

    def leave(self) -> None:
        """Have its task end, when that waits for news."""
        if self._turn is not None and not self._turn.done():
            self._turn.set_result(None)

    def look(self, now: float) -> None:
        """There was a look: send its news, or let the task do that; nothing, while that is busy."""
        turn, feed = self._turn, self._feed
        if turn is None or turn.done():
            return
        if now >= self.end or self._outlet.left:  # who has left takes the place of others
            self.leave()
            return
        if feed.failing:
            self._silent = HEARTBEAT - 1  # the first look that succeeds is told at once, also without news
            if now - self._heard > LONGEST_FAILING:
                self.leave()
            return
        self._heard = now
        news = feed.whole() if self._seen is None else feed.since(self._seen)
        if news is None:
            log.info("slow_viewer_let_go")
            self.leave()
            return
        self._seen = feed.number
        self._silent = 0 if news else self._silent + 1
        if self._silent == HEARTBEAT:
            news, self._silent = [NOTHING_NEW], 0
        if not self._begun:
            news, self._begun = [f"retry: {RETRY_MS}\n\n".encode(), *news], True
        elif not news or (len(news) == 1 and self._sends(news[0])):
            return
        turn.set_result(news)

    def _sends(self, told: bytes) -> bool:
        """Whether it went at once."""
        return len(told) < MEMORY and self._outlet.push(self._feed.framed(told), MEMORY)


class OperatorStream:
    """The feeds, and the tasks that look for them."""

    def __init__(self, samples: Samples, *, clock: Clock, random_bytes: Callable[[int], bytes]) -> None:
        self._looks = {
            "numbers": samples.first_numbers, "actors": samples.first_actors, "webhooks": samples.webhooks,
            "throughput": samples.throughput,
        }  # fmt: skip
        self._clock = clock
        self._random_bytes = random_bytes
        self._feeds: dict[Scope, Feed] = {}
        self._viewers: dict[str, int] = {}
        self._watching: dict[Scope, asyncio.Task[None]] = {}  # those that have viewers

    def admit(self, organization_id: str) -> None:
        """Refuse one viewer too many: 503 of all, 429 of an organization, or of the administrator (empty id)."""
        if sum(self._viewers.values()) >= VIEWERS:
            raise Unavailable("Too many look at the stream: try again later.", retry_after=30)
        whose, most = "the organization", VIEWERS_OF_AN_ORGANIZATION
        if not organization_id:
            whose, most = "the administrator", VIEWERS_OF_THE_ADMINISTRATOR
        if self._viewers.get(organization_id, 0) >= most:
            detail = f"{most} viewers of {whose} look at the stream already: end one of them."
            raise Problem("RATE_LIMITED", detail, headers={"Retry-After": "30"})

    async def events(self, scope: Scope, last_id: str | None, outlet: Outlet | None = None) -> AsyncGenerator[bytes]:
        """The events of a viewer, but for those that go through `outlet` while that is open.

        Who takes them too slowly is let go, and may come back.
        """
        owner = scope.organization_id
        self.admit(owner)
        self._viewers[owner] = self._viewers.get(owner, 0) + 1
        feed = self._feed(scope)
        viewer = Viewer(feed, last_id, outlet or Outlet(), self._clock.monotonic())
        feed.viewers[viewer] = None
        try:
            watch = self._watching.get(scope)
            if watch is None or watch.done():
                watch = self._watching[scope] = asyncio.get_running_loop().create_task(
                    self._watch(scope), name="stream of operators", context=Context()
                )  # it looks for all, and not with the share of whoever came first
                watch.add_done_callback(partial(self._watched, scope))
            while self._clock.monotonic() < viewer.end and (news := await viewer.news()) is not None:
                for told in news:
                    for start in range(0, len(told), PIECE):
                        yield told[start : start + PIECE]
        finally:
            del feed.viewers[viewer]
            feed.left_at = self._clock.monotonic()
            self._viewers[owner] -= 1
            if not self._viewers[owner]:
                del self._viewers[owner]

    def _feed(self, scope: Scope) -> Feed:
        feed = self._feeds.get(scope)
        if feed is None:
            self._forget(self._clock.monotonic() - KEPT_FOR)
            feed = self._feeds[scope] = Feed(self._random_bytes(8).hex())
        return feed

    async def start(self) -> None:
        """Nothing runs until somebody looks."""

    async def stop(self) -> None:
        """Look no more. Safe to call twice."""
        if watches := list(self._watching.values()):
            for each in watches:
                each.cancel()
            await asyncio.wait(watches)

    async def _watch(self, scope: Scope) -> None:
        """Look once a second while anybody looks: beside the other feeds, which wait for none that takes long."""
        while (feed := self._feeds.get(scope)) is not None and feed.viewers:
            await self._look(scope, feed)
            await self._clock.sleep(EVERY)

    def _watched(self, scope: Scope, watch: "asyncio.Task[None]") -> None:
        if self._watching.get(scope) is watch:
            del self._watching[scope]
        self._forget(self._clock.monotonic() - KEPT_FOR)

    async def _look(self, scope: Scope, feed: Feed) -> None:
        try:
            feed.look({kind: await kept.get(scope) for kind, kept in self._looks.items()})
            feed.failing = False
        except Unavailable:  # the next look may succeed
            feed.failing = True
            log.debug("look_failed")
        except Exception as error:  # noqa: BLE001 - one feed's fault is not that of the others
            feed.failing = True
            log.error("look_failed", error=type(error).__name__)
        feed.tell(self._clock.monotonic())

    def _forget(self, left_before: float) -> None:
        for scope, feed in list(self._feeds.items()):
            if not feed.viewers and feed.left_at < left_before:
                del self._feeds[scope]


def _event(kind: str, items: list[bytes], gone: list[str], *, whole: bool) -> bytes:
    head = b"event: " + kind.encode() + b'\ndata: {"items":['
    return (
        head
        + b",".join(items)
        + b'],"gone":'
        + orjson.dumps(gone)
        + b',"whole":%s}\n\n' % (b"true" if whole else b"false")
    )
