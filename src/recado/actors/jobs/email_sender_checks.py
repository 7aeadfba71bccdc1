"""Looks once a day whether verified senders of e-mail still prove to be their organization's, and takes back at the
provider what it was told for senders that are gone (C10.4, C32)."""

from recado.domain.core.clock import Clock
from recado.engine.periodic import Periodic
from recado.services.email.sender_verification import SenderVerification

LOOK_EVERY = 60.0  # seconds


class EmailSenderChecks:
    """A service; each sender has a moment of its own."""

    def __init__(self, verification: SenderVerification, *, clock: Clock) -> None:
        self._verification = verification
        self._worker = Periodic("e-mail sender checks", LOOK_EVERY, self._look, clock, at_once=True)

    async def _look(self) -> None:
        await self._verification.check_due()
        await self._verification.remove_forsaken()

    async def start(self) -> None:
        await self._worker.start()

    async def stop(self) -> None:
        await self._worker.stop()
