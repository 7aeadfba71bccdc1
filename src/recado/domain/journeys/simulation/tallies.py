"""What a dry run counts: each step as the numbers of a real one (C9.10), ends, coins and departures (C9.17.3)."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from recado.domain.journeys.execution import EndReason
from recado.domain.journeys.outcomes import EndExecution
from recado.domain.journeys.step_numbers import OUTCOMES, MessageOutcome, StepCount, StepNumbers, counted_result

HOUR: Final = timedelta(hours=1)


@dataclass(slots=True)
class SenderDepartures:
    """What would leave from one sender: by the hour (UTC), the first and the last of it, and what expires."""

    by_hour: Counter[datetime] = field(default_factory=Counter)
    first: datetime | None = None
    last: datetime | None = None
    expired: int = 0

    def add(self, at: datetime, count: int) -> None:
        self.by_hour[at.replace(minute=0, second=0, microsecond=0)] += count
        self.first = at if self.first is None else min(self.first, at)
        self.last = at if self.last is None else max(self.last, at)


@dataclass(slots=True)
class Tallies:
    """Counted as the walk goes. `last_at`: the virtual time of its last event; `denied`: who does not enter."""

    last_at: datetime
    entered: int = 0
    denied: int = 0
    steps: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    skipped: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    ends: Counter[EndReason] = field(default_factory=Counter)
    messages: Counter[str] = field(default_factory=Counter)
    coins: Counter[str] = field(default_factory=Counter)
    departures: defaultdict[str, SenderDepartures] = field(default_factory=lambda: defaultdict(SenderDepartures))

    def numbers(self, step_id: str) -> StepNumbers:
        return StepNumbers(self.steps[step_id])

    def arrive(self, step_id: str, count: int) -> None:
        self.steps[step_id][StepCount.ENTERED] += count

    def passed(self, step_id: str, kind: str, result: str, count: int) -> None:
        self.steps[step_id][counted_result(kind, result, ended=False)] += count

    def end(self, step_id: str, kind: str, reason: EndReason, count: int) -> None:
        """As a turn counts it: with the step's own result, or as one that left there."""
        result = EndExecution(reason).result
        counted = StepCount.LEFT if result is None else counted_result(kind, result, ended=True)
        self.steps[step_id][counted] += count
        self.ends[reason] += count

    def outcome(self, step_id: str, outcome: MessageOutcome, count: int) -> None:
        if count:
            self.steps[step_id][OUTCOMES[outcome]] += count

    def conversions(self, step_id: str, count: int) -> None:
        if count:
            self.steps[step_id][StepCount.CONVERSIONS] += count
