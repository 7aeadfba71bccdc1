"""Follows links in messages (C27.1): where they lead, and who clicked, recorded in batches.

Nobody waits for that record. When the database cannot keep up, clicks are dropped and counted as such: people are led
on all the same, and those who send have its other connections.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from operator import itemgetter
from typing import Final

import orjson
import structlog

from recado.domain.channels.policies import POLICIES
from recado.domain.core.clock import Clock
from recado.domain.core.errors import Unavailable
from recado.domain.core.timestamps import format_timestamp
from recado.domain.links.codes import is_link_code
from recado.engine.periodic import Periodic
from recado.services.effects.outbox import Happened, Outbox
from recado.storage.batches import campaigns
from recado.storage.batches.campaigns import CampaignKey, Gain
from recado.storage.core.moves import AfterCommit
from recado.storage.core.postgres import Database
from recado.storage.links import tracked_links
from recado.storage.links.code_lookup import CodeLookup
from recado.storage.links.tracked_links import Clicked, FoundLink

MOST_WAITING: Final = 40_000  # clicks
MOST_OF_ORGANIZATION: Final = MOST_WAITING // 2
MOST_OF_LINK: Final = 100  # who clicks one link without end fills no queue
IN_A_COMMIT: Final = 2_000
EVERY: Final = 0.1  # seconds that clicks gather
NET: Final = 5.0  # seconds: what a record left is looked for again, whoever clicks
TOLD_EVERY: Final = 60.0  # seconds between two lines of the log about clicks that were dropped

Waiting = dict[FoundLink, list[datetime]]
"""Clicks that are not recorded yet: when each link was clicked."""

log = structlog.get_logger(__name__)


class TrackedClicks:
    """A service (`start`, `stop`). `dropped`: clicks that nobody recorded, since the start."""

    def __init__(self, db: Database, *, outbox: Outbox, clock: Clock) -> None:
        self._db = db
        self._outbox = outbox
        self._clock = clock
        self._waiting: Waiting = {}
        self._of_organization: Counter[str] = Counter()
        self._count = 0
        self.dropped = 0
        self._told = (0, float("-inf"))  # dropped then, and when (monotonic)
        self._links: CodeLookup[FoundLink] = CodeLookup("tracked links", self._read, clock=clock)
        self._recording = asyncio.Lock()
        self._recorder = Periodic("clicks", NET, self.record, clock)

    async def start(self) -> None:
        await self._links.start()
        await self._recorder.start()

    async def stop(self) -> None:
        await self._recorder.stop()
        try:
            with suppress(Unavailable):
                await self.record()
        finally:
            self._drop(self._count)
            self._waiting, self._count = {}, 0
            self._of_organization.clear()
            await self._links.stop()

    async def open(self, code: str, *, counted: bool) -> str | None:
        """Where the code leads; None: nowhere. `counted`: a person clicked. Raises `Unavailable` under overload."""
        found = self.find(code)
        link = await found if isinstance(found, asyncio.Future) else found
        if link is None:
            return None
        if counted:
            self.take(link)
        return link.url

    def find(self, code: str) -> FoundLink | asyncio.Future[FoundLink | None] | None:
        """The link of the code, or who will know it; None: there is none. Raises `Unavailable` under overload."""
        return self._links.find(code) if is_link_code(code) else None

    async def record(self) -> None:
        """Record every click that came before."""
        async with self._recording:
            while self._waiting:
                clicks = self._first()
                try:
                    committed = await self._record(clicks)
                except Unavailable:
                    raise
                except Exception:  # it would fail again, and everything behind it would wait for that
                    self._forget(clicks)
                    self._drop(sum(map(len, clicks.values())))
                    raise
                self._forget(clicks)
                if committed is not None:
                    committed()

    # Recording -----------------------------------------------------------------------------------------------------

    def take(self, link: FoundLink) -> None:
        """A person clicked."""
        moments = self._waiting.get(link)
        if (
            self._count >= MOST_WAITING
            or self._of_organization[link.organization_id] >= MOST_OF_ORGANIZATION
            or (moments is not None and len(moments) >= MOST_OF_LINK)
        ):
            self._drop(1)
            return
        if not self._count:
            self._clock.call_at(self._clock.monotonic() + EVERY, self._recorder.hint)
        if moments is None:
            self._waiting[link] = [self._clock.now()]
        else:
            moments.append(self._clock.now())
        self._count += 1
        self._of_organization[link.organization_id] += 1

    def _first(self) -> Waiting:
        """What is recorded in the next commit. It waits until then, and new clicks on the same links wait beside it."""
        found: Waiting = {}
        clicks = 0
        for link, moments in self._waiting.items():
            found[link] = moments[:]
            clicks += len(moments)
            if clicks >= IN_A_COMMIT:
                break
        return found

    def _forget(self, clicks: Waiting) -> None:
        """They wait no more; what was clicked since does."""
        for link, moments in clicks.items():
            later = self._waiting.pop(link)[len(moments) :]
            if later:
                self._waiting[link] = later
            self._count -= len(moments)
            self._of_organization[link.organization_id] -= len(moments)
            if not self._of_organization[link.organization_id]:
                del self._of_organization[link.organization_id]

    def _drop(self, clicks: int) -> None:
        self.dropped += clicks
        told, at = self._told
        now = self._clock.monotonic()
        if clicks and now - at >= TOLD_EVERY:
            self._told = (self.dropped, now)
            log.warning("clicks_dropped", since_last=self.dropped - told, since_start=self.dropped)

    async def _record(self, clicks: Waiting) -> AfterCommit | None:
        async with self._db.hot.transaction() as connection:
            clicked = await tracked_links.count(connection, clicks)
            gains: defaultdict[CampaignKey, Gain] = defaultdict(Gain)
            for each in clicked.values():
                if each.campaign is not None:
                    gains[each.campaign].clicks += each.clicks
            await campaigns.add(connection, gains)
            return await self._outbox.tell(connection, await self._events(clicks, clicked))

    async def _events(self, clicks: Waiting, clicked: Mapping[str, Clicked]) -> list[Happened]:
        """The events of clicks that somebody takes, in their order: the first one of a message says so (C23.6)."""
        events: dict[tuple[str, str, str], str | None] = {}
        told = []
        for link, moments in clicks.items():
            if link.message_id not in clicked:
                continue
            kind = (link.organization_id, link.env, link.channel)
            if kind not in events:
                events[kind] = await self._event(*kind)
            if (event := events[kind]) is not None:
                told += [(at, link, event) for at in moments]
        told.sort(key=itemgetter(0))
        fresh = {message_id for message_id, each in clicked.items() if each.fresh}
        happened = []
        for at, link, event in told:
            data = {
                "status": clicked[link.message_id].status,
                "url": link.url,
                "clickedAt": format_timestamp(at),
                "firstClick": link.message_id in fresh,
            }
            fresh.discard(link.message_id)
            happened.append(Happened(*link.message, event, orjson.dumps(data).decode()))
        return happened

    async def _event(self, organization_id: str, env: str, channel: str) -> str | None:
        """What a click there is told as; None where nobody takes it."""
        event = event_of(channel)
        return event if event is not None and await self._outbox.takes((organization_id, env), event) else None

    async def _read(self, codes: Sequence[str]) -> Mapping[str, FoundLink]:
        return await tracked_links.by_code(self._db.hot, codes, self._clock.now())


def event_of(channel: str) -> str | None:
    """What a click in a message of the channel is told as."""
    policy = POLICIES.get(channel)
    return None if policy is None else policy.clicked
