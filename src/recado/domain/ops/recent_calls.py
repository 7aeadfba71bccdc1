"""How the last calls of one connection ended, and how long they took: a ring of fixed size (C34.1)."""

from array import array
from collections.abc import Iterable
from typing import Final, Self

KEPT: Final = 200
"""Calls that are remembered."""
MOST_JOINED: Final = 10_000
"""Calls of many connections that are looked at together."""
LONGEST: Final = 0x7FFF_FFFF
_FAILED: Final = 0x8000_0000


class RecentCalls:
    """The last calls, in milliseconds each; what failed has a mark."""

    __slots__ = ("_next", "_ring")

    def __init__(self) -> None:
        self._ring = array("I")  # grows up to `KEPT`: most connections make few calls
        self._next = 0

    @classmethod
    def joined(cls, parts: Iterable["RecentCalls"], most: int = MOST_JOINED) -> Self:
        """Those of several connections, as of one, some more than `most`; for reading only."""
        whole = cls()
        for part in parts:
            whole._ring.extend(part._ring)
            if len(whole._ring) >= most:
                break
        return whole

    @classmethod
    def said_by(cls, said: Iterable[int]) -> Self:
        """Those of which another process says this."""
        whole = cls()
        whole._ring.extend(said)
        return whole

    @property
    def said(self) -> list[int]:
        """As another process hears them."""
        return self._ring.tolist()

    def __len__(self) -> int:
        return len(self._ring)

    def add(self, milliseconds: int, *, ok: bool) -> None:
        """One call ended."""
        taken = min(max(milliseconds, 0), LONGEST)
        if not ok:
            taken |= _FAILED
        ring = self._ring
        if len(ring) < KEPT:
            ring.append(taken)
            return
        ring[self._next] = taken
        self._next = (self._next + 1) % KEPT

    def success_rate(self) -> float | None:
        """The part that was taken, 0 to 1; None without calls."""
        if not self._ring:
            return None
        return sum(each < _FAILED for each in self._ring) / len(self._ring)

    def percentiles(self, *parts: float) -> list[int | None]:
        """Milliseconds that this part of the calls (0 to 1) took at most; None without calls."""
        taken = sorted(each & LONGEST for each in self._ring)
        if not taken:
            return [None] * len(parts)
        return [taken[min(len(taken) - 1, int(part * len(taken)))] for part in parts]
