"""How fast the bodies of one caller are read, all together: who sends faster waits, and nobody else does (C31).

Bodies that are broken off again and again cost their reading, and are never refused for their size. The same count goes
for what surrounds the chunks of bodies, of which a little costs much.
"""

from typing import Final

from recado.domain.core.clock import Clock

BYTES_A_SECOND: Final = 16 * 1024 * 1024
AT_ONCE: Final = BYTES_A_SECOND  # bytes that may come ahead of the pace: the largest body of JSON
FRAMING_A_SECOND: Final = 32 * 1024
FRAMING_AT_ONCE: Final = 32 * 1024
_MOST_CALLERS: Final = 1_000  # remembered, before those who are not ahead are forgotten for the first time


class BodyPace:
    """A caller is an organization; where no credential says which, the network that the request came from."""

    def __init__(self, clock: Clock, a_second: int = BYTES_A_SECOND, at_once: int = AT_ONCE) -> None:
        """`a_second` and `at_once`: in bytes; the latter may come ahead of the pace."""
        self._a_second = a_second
        self._ahead = at_once / a_second
        self._monotonic = clock.monotonic
        self._even_at: dict[str, float] = {}  # by caller: when what has come is no longer ahead of the pace
        self._most = _MOST_CALLERS

    def take(self, caller: str, size: int) -> float:
        """Count `size` bytes that have come; the seconds until more of this caller may be read."""
        now = self._monotonic()
        if len(self._even_at) >= self._most:
            self._even_at = {name: at for name, at in self._even_at.items() if at > now}
            # Twice what is left: looking at all of them costs each newcomer the same, however many are ahead.
            self._most = max(_MOST_CALLERS, 2 * len(self._even_at))
        even_at = self._even_at[caller] = max(self._even_at.get(caller, now), now) + size / self._a_second
        return max(0.0, even_at - now - self._ahead)
