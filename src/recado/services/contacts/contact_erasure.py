"""Takes what is personal of deleted contacts out of what stays (C12.6), soon after and whatever crashes.

It looks twice, minutes apart, and withdraws what is queued: a message may have been accepted while its contact was
deleted, or have come back from its provider after that; and a device may have been registered as the contact's.
"""

import asyncio
from datetime import datetime, timedelta

from recado.domain.channels.policies import masked_recipient
from recado.domain.core.clock import Clock
from recado.engine.periodic import Periodic
from recado.services.contacts.contact_events import without_details
from recado.storage.contacts import contact_erasures
from recado.storage.contacts.contact_erasures import Erasure
from recado.storage.core.connections.postgres import Database
from recado.storage.core.statements.moves import Effects
from recado.storage.dispatch import withdrawals
from recado.storage.events import customer_events
from recado.storage.journeys import executions
from recado.storage.push import devices as push_devices

SECONDS = 60.0
LATER = timedelta(seconds=30)
_AT_ONCE = 100  # contacts of a round


class ContactErasure:
    """A service (`start`, `stop`); `hint` begins a round."""

    def __init__(self, db: Database, *, effects: Effects, clock: Clock) -> None:
        """`effects`: of messages that are withdrawn."""
        self._db = db
        self._effects = effects
        self._clock = clock
        self._round = asyncio.Lock()
        self._worker = Periodic("contact erasure", SECONDS, self.work, clock, at_once=True)

    async def start(self) -> None:
        await self._worker.start()

    async def stop(self) -> None:
        await self._worker.stop()

    def hint(self) -> None:
        """A contact was deleted."""
        self._worker.hint()

    async def work(self) -> None:
        """One round: everything that is due. Rounds do not overlap: one would take up where the other is."""
        async with self._round:
            now = self._clock.now()
            while found := await contact_erasures.due(self._db, now, _AT_ONCE):
                for each in found:
                    if not await self._withdraw(each, now):
                        await contact_erasures.postpone(self._db, each, now + LATER)
                        continue
                    await contact_erasures.erase_events(self._db, each.key, kept=without_details)
                    await customer_events.erase_contact(self._db, *each.key)
                    await executions.erase_contact(self._db, *each.key)
                    while await push_devices.unlink(self._db, *each.key, now):
                        pass
                    left: Erasure | None = each
                    while left is not None:
                        left = await contact_erasures.block(self._db, left, now, mask=masked_recipient)

    async def _withdraw(self, erasure: Erasure, now: datetime) -> bool:
        """Of what came since the deletion; False while more than a block is queued: that is being withdrawn."""
        async with self._db.transaction() as connection:
            moved, after_id = await withdrawals.of_contact(connection, *erasure.key, now, limit=withdrawals.BLOCK)
            committed = await self._effects.write(connection, moved)
        committed()
        return after_id is None or not moved
