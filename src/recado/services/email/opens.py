"""Who opens e-mails (C27.2): told by an image that their program loads, and recorded in batches (`recorder.py`)."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from operator import attrgetter, itemgetter
from typing import Final

import orjson

from recado.domain.channels.email import EMAIL
from recado.domain.core.clock import Clock
from recado.domain.core.timestamps import format_timestamp
from recado.domain.email.public_tokens import EmailKey, PublicTokens
from recado.services.effects.outbox import Happened, Outbox
from recado.services.links.recorder import Done, Recorder
from recado.storage.batches import campaigns
from recado.storage.batches.campaigns import CampaignKey, Gain
from recado.storage.core.connections.postgres import Database
from recado.storage.core.statements.moves import AfterCommit
from recado.storage.email import opens
from recado.storage.email.opens import Opened

OPENED: Final = "email.opened"

Opens = Mapping[EmailKey, Sequence[datetime]]
"""When each e-mail was opened."""


class EmailOpens:
    """A service (`start`, `stop`)."""

    def __init__(self, db: Database, *, tokens: PublicTokens, outbox: Outbox, clock: Clock) -> None:
        self._db = db
        self._tokens = tokens
        self._outbox = outbox
        self._opens: Recorder[EmailKey] = Recorder(
            "opens", self._record, key=attrgetter("message_id"), told_as="opens_dropped", clock=clock
        )
        self.record = self._opens.record
        self.start = self._opens.start
        self.stop = self._opens.stop

    @property
    def dropped(self) -> int:
        """Opens that nobody recorded, since the start."""
        return self._opens.dropped

    def open(self, token: str, *, counted: bool) -> bool:
        """Whether an e-mail has the image with this token. `counted`: a person's program loads it."""
        key = self._tokens.opened(token)
        if key is None:
            return False
        if counted:
            self._opens.take(key)
        return True

    async def _record(self, done: Sequence[Done[EmailKey]]) -> AfterCommit | None:
        moments = dict(done)
        async with self._db.hot.transaction() as connection:
            opened = await opens.record(connection, moments, months=self._db.months)
            gains: defaultdict[CampaignKey, Gain] = defaultdict(Gain)
            for key, each in opened.items():
                if each.campaign_id is not None:
                    gains[key.organization_id, key.env, each.campaign_id].opens += len(moments[key])
            await campaigns.add(connection, gains)
            return await self._outbox.tell(connection, await self._events(moments, opened))

    async def _events(self, moments: Opens, opened: Mapping[EmailKey, Opened]) -> list[Happened]:
        """The events of opens that somebody takes, in their order: the first one of a message says so (C23.6)."""
        taken: dict[tuple[str, str], bool] = {}
        told: list[tuple[datetime, EmailKey, bool]] = []
        for key, each in opened.items():
            environment = (key.organization_id, key.env)
            if environment not in taken:
                taken[environment] = await self._outbox.takes(environment, OPENED)
            if taken[environment]:
                told += [(at, key, each.fresh and not n) for n, at in enumerate(moments[key])]
        told.sort(key=itemgetter(0))
        return [
            Happened(key.organization_id, key.env, EMAIL, key.message_id, OPENED, _told(at, opened[key].status, first))
            for at, key, first in told
        ]


def _told(at: datetime, status: str, first: bool) -> str:
    return orjson.dumps({"status": status, "openedAt": format_timestamp(at), "firstOpen": first}).decode()
