"""How long small pieces of a body are left to come together before they are read: a body costs what its bytes cost,
however small the pieces are in which its client sends it (C31).
"""

from typing import Final

WORTH: Final = 16 * 1024  # bytes: such a piece is read when it comes
LONGEST: Final = 0.5  # seconds
_BEGIN: Final = 0.000_1  # seconds
_LEAST: Final = 0.002  # seconds that anybody waits: the first five are read as they come


class SmallPieces:
    """Those of one body. Each time they wait twice as long, and half as long again when enough has come meanwhile: as
    long as their client takes for enough. So a fast one is never slowed down.
    """

    __slots__ = ("_seconds",)

    def __init__(self) -> None:
        self._seconds = 0.0

    def wait(self, size: int, since_begin: float) -> float:
        """The seconds until more is to be read, of a body of which `size` bytes came now; never more than it has taken
        so far, `since_begin`.
        """
        if size >= WORTH:
            self._seconds /= 2.0
        else:
            self._seconds = min(LONGEST, max(_BEGIN, 2.0 * self._seconds))
        seconds = min(self._seconds, since_begin)
        return seconds if seconds >= _LEAST else 0.0
