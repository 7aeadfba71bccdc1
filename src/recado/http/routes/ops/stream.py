"""The stream of what operators look at: what has changed, once a second, as server-sent events (C34.1).

All who look at the same share one sample a second; nobody who looks, no sample. A feed remembers what it told last, so
that a viewer who comes back hears what was missed.
"""

import asyncio
import re
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping
from contextvars import Context
from typing import Final

import orjson
import structlog

from recado.domain.core.clock import Clock
from recado.domain.core.errors import Problem, Unavailable
from recado.http.routes.ops.samples import MOST_ITEMS, Sample, Samples
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
PIECE: Final = 64 * 1024  # bytes that are sent at once
MEMORY: Final = 2 * PIECE
"""Bytes that a viewer may hold, beside what all of its feed share."""
WHOLE_FOR: Final = 15
"""Looks with news: who comes later than that gets another whole, the others the same one and what was told since."""
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
        self.viewers = 0
        self.failing = True
        self.left_at = 0.0  # when the last viewer left
        self.number = 0  # of the last look with news
        self.shown: dict[str, dict[str, bytes]] = {kind: {} for kind in KINDS}
        self.turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._told: deque[bytes] = deque()  # by the last looks with news
        self._bytes = 0
        self._whole = (0, b"")  # as it was at that number; empty: nobody has asked

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

    def wake(self) -> None:
        """Viewers look for news."""
        turn, self.turn = self.turn, asyncio.get_running_loop().create_future()
        turn.set_result(None)

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


class OperatorStream:
    """The feeds, and the one task that looks for all of them."""

    def __init__(self, samples: Samples, *, clock: Clock, random_bytes: Callable[[int], bytes]) -> None:
        self._looks = {
            "numbers": samples.first_numbers, "actors": samples.first_actors, "webhooks": samples.webhooks,
            "throughput": samples.throughput,
        }  # fmt: skip
        self._clock = clock
        self._random_bytes = random_bytes
        self._feeds: dict[Scope, Feed] = {}
        self._viewers: dict[str, int] = {}
        self._task: asyncio.Task[None] | None = None

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

    async def events(self, scope: Scope, last_id: str | None) -> AsyncGenerator[bytes]:
        """The events of a viewer. Who takes them too slowly is let go, and may come back."""
        owner = scope.organization_id
        self.admit(owner)
        self._viewers[owner] = self._viewers.get(owner, 0) + 1
        feed = self._feed(scope)
        feed.viewers += 1
        try:
            heard = self._clock.monotonic()
            end = heard + LONGEST
            seen, silent, begun = feed.resumed(last_id), 0, False
            if seen is None or feed.since(seen) is None:
                seen = None
            while self._clock.monotonic() < end:
                if self._task is None or self._task.done():
                    self._task = asyncio.get_running_loop().create_task(
                        self._run(), name="stream of operators", context=Context()
                    )  # it looks for all, and not with the share of whoever came first
                await asyncio.shield(feed.turn)
                if feed.failing:
                    if self._clock.monotonic() - heard > LONGEST_FAILING:
                        return
                    silent = HEARTBEAT - 1  # the first look that succeeds is told at once, also without news
                    continue
                heard = self._clock.monotonic()
                news = feed.whole() if seen is None else feed.since(seen)
                if news is None:
                    log.info("slow_viewer_let_go")
                    return
                seen = feed.number
                silent = 0 if news else silent + 1
                if silent == HEARTBEAT:
                    news, silent = [b":\n\n"], 0
                if not begun:
                    news, begun = [f"retry: {RETRY_MS}\n\n".encode(), *news], True
                for told in news:
                    for start in range(0, len(told), PIECE):
                        yield told[start : start + PIECE]
        finally:
            feed.viewers -= 1
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
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def _run(self) -> None:
        """Look once a second while anybody looks: each feed beside the others."""
        while looked_at := [(scope, feed) for scope, feed in self._feeds.items() if feed.viewers]:
            await asyncio.gather(*(self._look(scope, feed) for scope, feed in looked_at))
            await self._clock.sleep(EVERY)
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
        feed.wake()

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
