"""Walks an execution through a scenario by `decide` alone, on a clock that jumps from one moment to the next.

It does what the service does around `decide`: gathers facts, carries the decision out, and asks again when the moment
has come or something has happened.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, time, timedelta
from typing import Any

from tests.domain.journeys.cases import person
from tests.domain.journeys.scenario import Fate, Scenario, Told, Walked

from recado.domain.contacts.contact import Contact
from recado.domain.dispatch.quiet_hours import QuietHours
from recado.domain.journeys.decide import Facts, after_internal_failure, decide
from recado.domain.journeys.execution import EndReason, SkipReason, goal_reached
from recado.domain.journeys.graph import StepSignal, step_of
from recado.domain.journeys.outcomes import (
    Advance,
    Await,
    CallWebhook,
    Decision,
    EndExecution,
    RetryStep,
    SendMessage,
    SkipSend,
)
from recado.domain.journeys.runnable import runnable_step
from recado.domain.journeys.sends import QuietWindow, SendFacts, counts_after
from recado.domain.journeys.signal_conditions import EarlierSend, SendState
from recado.domain.journeys.steps import (
    SendStep,
    SignalCondition,
    SmsSend,
    WebhookStep,
)
from recado.domain.journeys.webhook_calls import LastCall

_STATES = {"accepted": SendState.ACCEPTED, "failed": SendState.FAILED}


class Walker:
    """One execution. `looks`: moments at which it asks although nothing has happened."""

    def __init__(self, scenario: Scenario, looks: Iterable[datetime] = ()) -> None:
        self.scenario = scenario
        self.now = scenario.starts
        self.decisions = 0
        steps = (step_of({"id": name, **step}) for name, step in scenario.steps.items())
        self._steps = {step.id: runnable_step(step, None) for step in steps}
        self._contact = contact_of(scenario.contact)
        self._step = self._steps[scenario.first]
        self._arrived = self.now
        self._failures = 0
        self._last_call: LastCall | None = None
        self._made: dict[str, datetime] = {}
        self._skipped: dict[str, datetime] = {}
        self._trail: list[Told] = []
        self._leaves_at = self._end_from_outside()
        self._happens = {at for _, at in scenario.events} | set(looks)

    def walk(self) -> Walked:
        """To the end."""
        while True:
            decision = self._decided()
            match decision:
                case SendMessage(content, values, following):
                    self._made[self._step.id] = self.now
                    self._happens |= set(self._moments(self._step.id))
                    said = content.text if isinstance(content, SmsSend) else str(dict(values))
                    self._go_on(following, "enviado", said)
                case SkipSend(reason, following):
                    self._skipped[self._step.id] = self.now
                    self._go_on(following, "pulado", reason)
                case Advance(following, result):
                    self._go_on(following, result)
                case Await(_, until):
                    self._sleep(until, waking=True)
                case RetryStep(at, failures):
                    self._failures = failures
                    self._sleep(at, waking=False)
                case CallWebhook(attempt):
                    status, seconds = self.scenario.calls[self._step.id][attempt - 1]
                    self._sleep(self.now + timedelta(seconds=seconds), waking=False)
                    self._last_call = LastCall(attempt, status, self.now)
                case EndExecution(reason):
                    if decision.result is not None:
                        self._trail.append(Told(self._step.id, decision.result, self.now))
                    return Walked(self._trail, decision.status, reason, self.now)

    def _decided(self) -> Decision:
        self.decisions += 1
        goal, start = self.scenario.goal, self.scenario.starts
        if any(at <= self.now and goal_reached(goal, start, name, at) for name, at in self.scenario.events):
            return EndExecution(EndReason.GOAL_REACHED)
        gone = self._leaves_at is not None and self._leaves_at <= self.now
        if not gone and self._failures < self.scenario.failures.get(self._step.id, 0):
            return after_internal_failure(self._failures + 1, self.now)
        return decide(self._step, self._facts(), self.now)

    def _go_on(self, following: str, result: str, said: str = "") -> None:
        self._trail.append(Told(self._step.id, result, self.now, said))
        self._step = self._steps[following]
        self._arrived = self.now
        self._failures = 0
        self._last_call = None

    def _sleep(self, until: datetime | None, *, waking: bool) -> None:
        """Until that moment, or the first at which the execution is ended, or something else happens."""
        moments = [at for at in self._happens if at > self.now] if waking else []
        if until is not None:
            moments.append(until)
        if self._leaves_at is not None:
            moments.append(self._leaves_at)
        self.now = min(moments)

    def _end_from_outside(self) -> datetime | None:
        scenario = self.scenario
        moments = [at for name, at in scenario.events if goal_reached(scenario.goal, scenario.starts, name, at)]
        if scenario.leaves is not None:
            moments.append(scenario.leaves[1])
        return min(moments, default=None)

    def _facts(self) -> Facts:
        scenario, step, now = self.scenario, self._step, self.now
        left = None if scenario.leaves is None or scenario.leaves[1] > now else scenario.leaves[0]
        given = Facts(
            execution_id=scenario.execution,
            arrived_at=self._arrived,
            zone=scenario.zone,
            contact=None if left == "contato_excluido" else self._contact,
            registered=left == "opt_out",
            entry=scenario.entry,
            test=scenario.test,
            hurried=scenario.hurried,
        )
        match step:
            case SendStep():
                return replace(given, send=self._send_facts(step))
            case SignalCondition():
                return replace(given, earlier=self._earlier(step))
            case WebhookStep():
                inactive = scenario.inactive is not None and scenario.inactive <= now
                return replace(given, last_call=self._last_call, webhook_callable=not inactive)
        return given

    def _send_facts(self, step: SendStep) -> SendFacts:
        scenario = self.scenario
        windows = [
            QuietWindow(QuietHours(time.fromisoformat(each.start), time.fromisoformat(each.end)), each.zone)
            for each in scenario.windows
        ]
        most, recent = None, 0
        if scenario.cap is not None:
            most, days = scenario.cap
            left = [at for name, at in self._made.items() if not self._failed(name)]
            recent = sum(at > counts_after(days, self.now) for at in (*left, *scenario.earlier))
        obstacle = scenario.fates[step.id].obstacle
        return SendFacts(windows, most, recent, None if obstacle is None else SkipReason(obstacle))

    def _failed(self, name: str) -> bool:
        """Whether it is known that its message never left."""
        fate = self.scenario.fates[name]
        ends = {"expired": timedelta(0), "failed": fate.settled}.get(fate.ends)
        return ends is not None and self._made[name] + fate.queued + ends <= self.now

    def _moments(self, name: str) -> list[datetime]:
        """When something happens to a message that was made."""
        fate, made = self.scenario.fates[name], self._made[name]
        dispatch = made + fate.queued
        after = [*fate.signals.values(), *([] if fate.settled is None else [fate.settled])]
        return [dispatch, *(dispatch + each for each in after)]

    def _earlier(self, step: SignalCondition) -> EarlierSend | None:
        about, now = step.about, self.now
        if about in self._skipped:
            since = self._skipped[about]
            return EarlierSend(SendState.SKIPPED, since, self._seen(step, since, Fate()))
        if about not in self._made:
            return None
        fate = self.scenario.fates[about]
        since = self._made[about] + fate.queued
        if since > now:
            return EarlierSend(SendState.QUEUED, None)
        if fate.ends == "expired":
            return EarlierSend(SendState.FAILED, since, self._seen(step, since, Fate()))
        settled = fate.settled is not None and since + fate.settled <= now
        state = _STATES[fate.ends] if settled else SendState.UNKNOWN
        return EarlierSend(state, since, self._seen(step, since, fate))

    def _seen(self, step: SignalCondition, since: datetime, fate: Fate) -> dict[StepSignal, datetime]:
        seen = {StepSignal(name): since + after for name, after in fate.signals.items()}
        wanted = step.event or self.scenario.goal
        converted = [at for name, at in self.scenario.events if name == wanted and at >= since]
        if converted:
            seen[StepSignal.CONVERTEU] = min(converted)
        return {signal: at for signal, at in seen.items() if at <= self.now}


def contact_of(fields: Mapping[str, Any]) -> Contact:
    names = {"externalId": "external_id"}
    return person(**{names.get(name, name): value for name, value in fields.items()})
