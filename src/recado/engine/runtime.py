"""What every actor of one tree shares: its clock, its randomness and its signals, injected once at the root."""

import random
from collections import Counter
from dataclasses import dataclass, field

from recado.domain.core.clock import Clock
from recado.engine.clock import SystemClock
from recado.engine.signals import SILENT, Emitter


@dataclass(frozen=True, slots=True)
class Runtime:
    """The surroundings of an actor tree. `restarts`: since the start, by the kind of what was restarted."""

    clock: Clock
    random: random.Random
    signals: Emitter = SILENT
    restarts: Counter[str] = field(default_factory=Counter)

    @classmethod
    def system(cls) -> "Runtime":
        """The machine's clock and its own randomness: for programs, and for actors that run without a supervisor."""
        return cls(SystemClock(), random.Random())  # noqa: S311 - spreads restarts; guards nothing
