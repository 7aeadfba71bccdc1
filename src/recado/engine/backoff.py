"""How long to wait before trying again: growing with each failure, spread so that many do not return at once."""

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays in seconds: `first`, then `factor` times more each time up to `ceiling`.

    `jitter` is the share of each delay that chance may take off (0 = none, 1 = all of it).
    """

    first: float = 0.1
    ceiling: float = 30.0
    factor: float = 2.0
    jitter: float = 0.2

    def delay(self, failures: int, chance: random.Random) -> float:
        """Seconds to wait after the `failures`-th failure in a row (1 or more)."""
        # The exponent is bounded: a float overflows after some thousand doublings.
        grown = self.first * self.factor ** min(max(failures - 1, 0), 64)
        return min(self.ceiling, grown) * (1.0 - self.jitter * chance.random())
