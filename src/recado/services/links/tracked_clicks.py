"""Follows links in messages (C27.1): where they lead, and who clicked, recorded in batches (`recorder.py`)."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from operator import attrgetter, itemgetter

import orjson

from recado.domain.channels.email import EMAIL
from recado.domain.channels.policies import POLICIES
from recado.domain.core.clock import Clock
from recado.domain.core.timestamps import format_timestamp
from recado.domain.email.public_tokens import EmailKey
from recado.domain.links.codes import is_link_code
from recado.services.effects.outbox import Happened, Outbox
from recado.services.links.recorder import Done, Recorder
from recado.storage.batches import campaigns
from recado.storage.batches.campaigns import CampaignKey, Gain
from recado.storage.core.connections.postgres import Database
from recado.storage.core.statements.moves import AfterCommit
from recado.storage.email import opens
from recado.storage.links import tracked_links
from recado.storage.links.code_lookup import CodeLookup
from recado.storage.links.tracked_links import Clicked, FoundLink

Clicks = Sequence[Done[FoundLink]]
"""When each link was clicked."""


class TrackedClicks:
    """A service (`start`, `stop`)."""

    def __init__(self, db: Database, *, outbox: Outbox, clock: Clock) -> None:
        self._db = db
        self._outbox = outbox
        self._clock = clock
        self._links: CodeLookup[FoundLink] = CodeLookup(
            "tracked links", self._read, owner=attrgetter("organization_id"), clock=clock
        )
        self._clicks: Recorder[FoundLink] = Recorder(
            "clicks", self._record, key=attrgetter("code"), told_as="clicks_dropped", clock=clock
        )
        self.take = self._clicks.take
        self.record = self._clicks.record

    @property
    def dropped(self) -> int:
        """Clicks that nobody recorded, since the start."""
        return self._clicks.dropped

    async def start(self) -> None:
        await self._links.start()
        await self._clicks.start()

    async def stop(self) -> None:
        try:
            await self._clicks.stop()
        finally:
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

    async def _record(self, clicks: Clicks) -> AfterCommit | None:
        async with self._db.hot.transaction() as connection:
            clicked = await tracked_links.count(connection, clicks, months=self._db.months)
            gains: defaultdict[CampaignKey, Gain] = defaultdict(Gain)
            first: dict[EmailKey, datetime] = {}  # when e-mails were clicked that had not been: their records show it
            for link, moments in clicks:
                each = clicked.get(link.message_id)
                if each is None:
                    continue
                if each.campaign_id is not None:
                    gains[link.organization_id, link.env, each.campaign_id].clicks += len(moments)
                if each.fresh and link.channel == EMAIL:
                    key = EmailKey(link.organization_id, link.env, link.message_id)
                    first[key] = min(first.get(key, moments[0]), moments[0])
            await opens.note_clicks(connection, first, months=self._db.months)
            await campaigns.add(connection, gains)
            return await self._outbox.tell(connection, await self._events(clicks, clicked))

    async def _events(self, clicks: Clicks, clicked: Mapping[str, Clicked]) -> list[Happened]:
        """The events of clicks that somebody takes, in their order: the first one of a message says so (C23.6)."""
        events = {kind: await self._event(*kind) for kind in {link.kind for link, _ in clicks}}
        if not any(events.values()):
            return []
        told: list[tuple[datetime, FoundLink, str]] = []
        for link, moments in clicks:
            if (event := events[link.kind]) is not None and link.message_id in clicked:
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
