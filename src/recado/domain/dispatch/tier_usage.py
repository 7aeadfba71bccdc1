"""How many recipients a number has addressed first in its rolling day, against the limit of its tier (C14.5, tier)."""

from collections.abc import Iterable
from datetime import datetime, timedelta

DAY = timedelta(hours=24)
LOOK_AGAIN = timedelta(
    minutes=1
)  # at what was held while recipients were counted: what ends the count lets it go sooner


class TierUsage:
    """The recipients counted now, the least recent first: at most as many as the tier allows.

    As in the table, a recipient counts from a claim on that is committed; one that is under way keeps its place.

    `limited_at`: when the limit came, while whom the number wrote to before is still being counted: nobody is admitted.
    """

    __slots__ = ("_claiming", "_seen", "limit", "limited_at")

    def __init__(
        self, limit: int, stored: Iterable[tuple[int, datetime]] = (), *, limited_at: datetime | None = None
    ) -> None:
        self.limit = limit
        self.limited_at = limited_at
        self._seen: dict[int, datetime] = dict(stored)
        self._claiming: dict[int, int] = {}  # claims under way, by recipient

    def admits(self, recipient: int, now: datetime) -> bool:
        """A recipient already counted, or being claimed, passes; another needs a place."""
        if self.limited_at is not None:
            return False
        self._forget(now)
        if recipient in self._seen or recipient in self._claiming:
            return True
        if len(self._seen) + len(self._claiming) < self.limit:
            return True
        return len(self._seen) + sum(each not in self._seen for each in self._claiming) < self.limit

    def reserve(self, recipient: int) -> None:
        """A business-initiated message to this recipient is being claimed."""
        self._claiming[recipient] = self._claiming.get(recipient, 0) + 1

    def release(self, recipient: int) -> None:
        """That claim is over."""
        left = self._claiming.get(recipient, 0) - 1
        if left > 0:
            self._claiming[recipient] = left
        else:
            self._claiming.pop(recipient, None)

    def count(self, recipient: int, now: datetime) -> None:
        """A business-initiated message to this recipient was claimed."""
        self._seen.pop(recipient, None)
        self._seen[recipient] = now

    def used(self, now: datetime) -> int:
        """Recipients that count now."""
        self._forget(now)
        return len(self._seen)

    def frees_at(self, now: datetime) -> datetime:
        """When the next place becomes free."""
        if self.limited_at is not None:
            return now + LOOK_AGAIN
        self._forget(now)
        return next(iter(self._seen.values()), now - DAY) + DAY

    def _forget(self, now: datetime) -> None:
        while self._seen:
            recipient, last_at = next(iter(self._seen.items()))
            if last_at > now - DAY:
                return
            del self._seen[recipient]
