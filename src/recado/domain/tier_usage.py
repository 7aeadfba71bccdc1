"""How many recipients a number has addressed first in its rolling day, against the limit of its tier (C14.5, tier)."""

from collections.abc import Iterable
from datetime import datetime, timedelta

DAY = timedelta(hours=24)


class TierUsage:
    """The recipients counted now, the least recent first: at most as many as the tier allows."""

    __slots__ = ("_limit", "_seen")

    def __init__(self, limit: int, stored: Iterable[tuple[int, datetime]] = ()) -> None:
        self._limit = limit
        self._seen: dict[int, datetime] = dict(stored)

    def admits(self, recipient: int, now: datetime) -> bool:
        """A recipient already counted passes; another needs a place."""
        self._forget(now)
        return recipient in self._seen or len(self._seen) < self._limit

    def count(self, recipient: int, now: datetime) -> None:
        """A business-initiated message to this recipient is about to leave."""
        self._seen.pop(recipient, None)
        self._seen[recipient] = now

    def used(self, now: datetime) -> int:
        """Recipients that count now."""
        self._forget(now)
        return len(self._seen)

    def frees_at(self, now: datetime) -> datetime:
        """When the next place becomes free."""
        self._forget(now)
        return next(iter(self._seen.values()), now - DAY) + DAY

    def _forget(self, now: datetime) -> None:
        while self._seen:
            recipient, last_at = next(iter(self._seen.items()))
            if last_at > now - DAY:
                return
            del self._seen[recipient]
