"""An execution in the hand of a turn: where it stands, and what it passed on the way there."""

from dataclasses import dataclass, field
from datetime import datetime

from recado.domain.journeys.decide import KnownContact
from recado.domain.journeys.execution import Awaited, EndReason, SkipReason, TrailResult
from recado.domain.journeys.journey import Hindrance, JourneyStatus
from recado.domain.journeys.outcomes import EndExecution
from recado.domain.journeys.steps import KIND_OF, SendStep, Step
from recado.services.journeys.running import RunningJourney
from recado.storage.journeys.execution_facts import ContactKey
from recado.storage.journeys.executions import Execution, PassedStep
from recado.storage.messages.messages import NewMessage


@dataclass(frozen=True, slots=True)
class PendingSend:
    """A message that this turn makes, if its commit accepts it; then the execution goes on to `next`."""

    message: NewMessage
    next: str


@dataclass(frozen=True, slots=True)
class Hindered:
    """What keeps a step from sending, as it would each other execution of the journey: that pauses itself (C9.8.4).

    `about`: the template or the number. `coins`: what a message costs that the wallet does not cover.
    """

    hindrance: Hindrance
    step: str
    about: str | None = None
    coins: int | None = None


@dataclass(slots=True)
class Standing:
    """One execution of a turn. `contact`: the whole of it, or its consent where no more was read; None: it is
    gone, or, in a first turn, somebody has it in hand. `registered`: the opt-out registry holds it.

    `status`: of its journey. `settled`: nothing more happens to it in this turn but its `send`, or that its webhook is
    to be called (`calls`). `hindered`: what its journey pauses for.
    """

    execution: Execution
    journey: RunningJourney
    status: JourneyStatus
    contact: KnownContact | None = None
    registered: bool = False
    passed: list[PassedStep] = field(default_factory=list)
    send: PendingSend | None = None
    calls: bool = False
    settled: bool = False
    hindered: Hindered | None = None

    @property
    def step(self) -> Step:
        """Where it stands. Raises KeyError where its journey has no such step."""
        return self.journey.plan.steps[self.execution.step_id]

    @property
    def capped(self) -> bool:
        """Whether a message that its step makes depends on those that its contact has had."""
        return self.journey.plan.cap is not None and not self.execution.teste and isinstance(self.step, SendStep)

    @property
    def contact_key(self) -> ContactKey:
        return ContactKey(self.execution.organization_id, self.execution.env, self.execution.contact_id)

    def advance(self, to: str, result: str, now: datetime, *, detail: str | None = None) -> None:
        """It has passed its step, and comes to the next one."""
        self._pass(result, now, detail=detail)
        self.execution = self.execution.moved_to(to, now)

    def skip(self, to: str, reason: SkipReason, now: datetime) -> None:
        """It has left its send out."""
        self.advance(to, TrailResult.SKIPPED, now, detail=reason)

    def leave_out(self, to: str, hindered: Hindered, now: datetime) -> None:
        """It has left its send out, and stands still with its journey, unless it is a test."""
        self.skip(to, SkipReason(hindered.hindrance), now)
        if not self.execution.teste:
            self.hindered = hindered
            self.settled = True

    def sent(self, send: PendingSend, now: datetime) -> None:
        """Its message is accepted by this commit."""
        self._pass(TrailResult.SENT, now, message=send.message)
        self.execution = self.execution.moved_to(send.next, now)

    def end(self, reason: EndReason, now: datetime) -> None:
        """It is over."""
        if (result := EndExecution(reason).result) is not None:
            self._pass(result, now)
        self.execution = self.execution.ended(reason, now)
        self.settled = True

    def call(self) -> None:
        """Its webhook is to be called: it waits for what that comes to."""
        self.calls = True
        self.stay(self.execution.waiting(Awaited.WEBHOOK, None))

    def stay(self, execution: Execution) -> None:
        """It waits in its step."""
        self.execution = execution
        self.settled = True

    def _pass(
        self, result: str, now: datetime, *, detail: str | None = None, message: NewMessage | None = None
    ) -> None:
        execution = self.execution
        passed = PassedStep(
            execution.organization_id,
            execution.id,
            execution.step_id,
            execution.env,
            KIND_OF[type(self.step)],
            now,
            execution.passed,
            result,
            detail,
        )
        if message is not None:
            passed = passed._replace(
                message_id=message.id,
                channel=message.channel,
                journey_id=None if execution.teste else execution.journey_id,
                capped_contact_id=None if execution.teste else execution.contact_id,
            )
        self.passed.append(passed)
