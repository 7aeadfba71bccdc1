"""The pace of one number towards one recipient: a message every six seconds, after a burst of 45 (C14.5, pair).

Kept as one instant for each recipient, when its allowance is whole again; whose moment has come is forgotten.
"""

from datetime import datetime, timedelta
from typing import Final

INTERVAL: Final = timedelta(seconds=6)
BURST: Final = 45

_SWEEP_AT_LEAST = 1_024


class PairPacing:
    """The recipients of one number, by their hash (`recipient_hash`), that were written to lately.

    Memory holds those of the last `BURST` × `INTERVAL` at most, twice over between two sweeps.
    """

    __slots__ = ("_sweep_at", "_whole_at")

    def __init__(self) -> None:
        self._whole_at: dict[int, datetime] = {}
        self._sweep_at = _SWEEP_AT_LEAST

    def __len__(self) -> int:
        return len(self._whole_at)

    def admits(self, recipient: int, now: datetime) -> bool:
        """Whether a message to this recipient may leave now."""
        return self.frees_at(recipient, now) <= now

    def frees_at(self, recipient: int, now: datetime) -> datetime:
        """The earliest moment, `now` or later, at which a message to this recipient may leave."""
        whole_at = self._whole_at.get(recipient)
        return now if whole_at is None else max(now, whole_at - (BURST - 1) * INTERVAL)

    def count(self, recipient: int, now: datetime) -> None:
        """A message to this recipient leaves now; one that did not wait for its turn is paid for by the next."""
        self._whole_at[recipient] = max(now, self._whole_at.get(recipient, now)) + INTERVAL
        if len(self._whole_at) >= self._sweep_at:
            self.forget(now)

    def take_back(self, recipient: int) -> None:
        """A counted message did not leave after all."""
        whole_at = self._whole_at.get(recipient)
        if whole_at is not None:
            self._whole_at[recipient] = whole_at - INTERVAL

    def exhaust(self, recipient: int, now: datetime, after: timedelta = INTERVAL) -> None:
        """The provider says that this pair went too fast: nothing is left of its burst until `after` from now."""
        wanted = now + after + (BURST - 1) * INTERVAL
        self._whole_at[recipient] = max(wanted, self._whole_at.get(recipient, wanted))

    def forget(self, now: datetime) -> None:
        """Forget whose allowance is whole again."""
        self._whole_at = {recipient: at for recipient, at in self._whole_at.items() if at > now}
        self._sweep_at = max(_SWEEP_AT_LEAST, 2 * len(self._whole_at))
