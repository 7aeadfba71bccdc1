"""Takes recipient and content out of messages of deleted contacts (C12.6), soon after that and whatever crashes."""

import asyncio

from recado.domain.clock import Clock
from recado.domain.masking import mask_email, mask_phone, mask_social_id
from recado.engine.periodic import Periodic
from recado.storage import contact_erasures
from recado.storage.contact_erasures import Erasure
from recado.storage.postgres import Database

SECONDS = 60.0
_AT_ONCE = 100  # contacts of a round

_MASKS = {"email": mask_email, "social": mask_social_id}


class ContactErasure:
    """A service (`start`, `stop`); `hint` begins a round."""

    def __init__(self, db: Database, *, clock: Clock) -> None:
        self._db = db
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
                    left: Erasure | None = each
                    while left is not None:
                        left = await contact_erasures.block(self._db, left, now, mask=masked)


def masked(channel: str, recipient: str) -> str:
    """What is kept of a recipient (C30.3)."""
    return _MASKS.get(channel, mask_phone)(recipient)
