"""The moment up to which what is past its time may go (C32): the host's clock alone is not believed for a day."""

from datetime import datetime, timedelta

from recado.domain.core.clock import Clock
from recado.domain.core.retention import CONFIRMED_AFTER
from recado.storage.core.connections.postgres import Database
from recado.storage.core.upkeep import retention

SET = timedelta(minutes=1)  # between two looks; less is how clocks are kept right


class ClockConfirmation:
    """Shared by all that removes. What it answers takes the place of the present in every retention."""

    def __init__(self, db: Database, *, clock: Clock) -> None:
        self._db = db
        self._clock = clock
        self._since = clock.monotonic()  # the clock has only gone on since then
        self._zero = self._zero_now()

    async def confirmed_until(self) -> datetime | None:
        """The present, when the clock has run for a day before this process's eyes and nobody has set it.

        Until then the newest moment, a day ago or earlier, of which the database tells; None when there is none, and
        nothing may go. What is less than a day old was stored by the clock that is in question.
        """
        zero = self._zero_now()
        # It was set, and followed or not, or the machine has slept.
        if abs(zero - self._zero) > SET or abs(self._clock.set_by) > SET:
            self._since = self._clock.monotonic()
        self._zero = zero
        now = self._clock.now()
        if self._clock.monotonic() - self._since >= CONFIRMED_AFTER.total_seconds():
            return now
        return await retention.last_confirmation(self._db, now - CONFIRMED_AFTER)

    def _zero_now(self) -> datetime:
        """What the clock showed when the machine's seconds began: always the same, unless somebody sets it."""
        return self._clock.now() - timedelta(seconds=self._clock.monotonic())
