"""Which phones have RCS, as their provider said: kept for a day, of a bounded number of phones (C29.2)."""

from collections import OrderedDict
from datetime import datetime, timedelta
from typing import Final

KEPT_FOR: Final = timedelta(hours=24)
MOST_PHONES: Final = 100_000  # some 20 MB


class Capabilities:
    """What is known; of too many, what was learnt first is forgotten."""

    def __init__(self, most: int = MOST_PHONES, kept_for: timedelta = KEPT_FOR) -> None:
        self._most = most
        self._kept_for = kept_for
        self._known: OrderedDict[str, tuple[bool, datetime]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def known(self, phone: str, now: datetime) -> bool | None:
        """Whether the phone has RCS; None when nobody said so in the last day."""
        found = self._known.get(phone)
        if found is None:
            return None
        capable, at = found
        if not timedelta() <= now - at < self._kept_for:
            del self._known[phone]
            return None
        return capable

    def note(self, phone: str, capable: bool, now: datetime) -> None:
        """Its provider said so now."""
        self._known.pop(phone, None)
        self._known[phone] = (capable, now)
        while len(self._known) > self._most:
            self._known.popitem(last=False)
