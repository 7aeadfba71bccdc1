"""How often the log tells of one thing: what others can cause as often as they like gets a line now and then."""

from typing import Final

QUIET: Final = 10.0
"""Seconds between two entries of a kind."""


class LogRate:
    """Lets an entry of each kind into the log every `QUIET` seconds, and counts those left out meanwhile.

    The kinds are the caller's own words, and few: they are kept.
    """

    __slots__ = ("_kinds",)

    def __init__(self) -> None:
        self._kinds: dict[str, tuple[float, int]] = {}  # until when it is quiet, and how many were left out since

    def admits(self, kind: str, now: float) -> int | None:
        """How many were left out since the last entry of the kind; None: this one is left out as well.

        `now`: monotonic seconds.
        """
        quiet_until, left_out = self._kinds.get(kind, (now, 0))
        if now < quiet_until:
            self._kinds[kind] = (quiet_until, left_out + 1)
            return None
        self._kinds[kind] = (now + QUIET, 0)
        return left_out
