"""Walks a journey for many contacts at once, on virtual time: each cohort decides as one execution would (C9.17).

A cohort is contacts of one kind, who stand at one step since one moment and have the same behind them; a draw parts it.
Cohorts decide in the order of time. The same seed leads the same way.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from heapq import heappop, heappush
from itertools import pairwise
from random import Random
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from recado.domain.contacts.consent import ConsentStatus
from recado.domain.contacts.contact import Contact
from recado.domain.journeys.decide import Facts, decide, left_because
from recado.domain.journeys.execution import EndReason, SkipReason, TrailResult
from recado.domain.journeys.field_values import Entry
from recado.domain.journeys.graph import SIGNALS, StepSignal
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
from recado.domain.journeys.runnable import RunnableJourney
from recado.domain.journeys.sends import QuietWindow, SendFacts, counts_after
from recado.domain.journeys.signal_conditions import EarlierSend, SendState
from recado.domain.journeys.simulation.assumptions import (
    DELAYS,
    FAILS_AFTER,
    OF_SIGNAL,
    OPTS_OUT_AFTER,
    Assumptions,
    Rate,
    asked_of,
    ways,
)
from recado.domain.journeys.simulation.departure_times import DepartureTimes, Left, SenderLimits
from recado.domain.journeys.simulation.tallies import Tallies
from recado.domain.journeys.step_numbers import MessageOutcome
from recado.domain.journeys.steps import (
    KIND_OF,
    SendStep,
    SignalCondition,
    Split,
    Step,
    WaitForStep,
    WaitUntilStep,
)
from recado.domain.journeys.waits import LONGEST_WAIT
from recado.domain.journeys.webhook_calls import LastCall

_OUTCOME_OF: Final = {
    StepSignal.LIDO: MessageOutcome.READ,
    StepSignal.RESPONDEU: MessageOutcome.REPLIED,
    StepSignal.CLICOU: MessageOutcome.CLICKED,
}
_UNLIMITED: Final = SenderLimits()
_ARRIVED: Final = (StepSignal.ENTREGUE, None)
_TAKEN, _FAILED_AGAIN, _REFUSED = 200, 500, 400  # statuses of answers to calls of webhook steps

Draw = tuple[str, str, int]
"""A step, and what is drawn there."""

Asked = tuple[StepSignal, str | None]
"""A signal that somebody asks for; a conversion with the name of its event."""


@dataclass(frozen=True, slots=True)
class Offer:
    """What the message of a send would be, for contacts of one kind. `coins`: of one; `lane`: the sender's id.

    `ttl`, `critical`, `quiet`: what it obeys in the queue.
    """

    channel: str
    lane: str
    coins: int
    units: int
    ttl: timedelta
    critical: bool = False
    quiet: tuple[QuietWindow, ...] = ()


@dataclass(frozen=True, slots=True)
class ContactKind:
    """`count` contacts whom no step tells apart; `contact`: one of them.

    `offers`: by send; a reason where it would be left out, and nothing where a variable is empty. `recent`: when
    journeys wrote to them in the days of the cap. `shown`: a contact by itself, whose trail is kept.
    """

    contact: Contact
    registered: bool
    count: int
    offers: Mapping[str, Offer | SkipReason]
    recent: tuple[datetime, ...] = ()
    shown: bool = False


class TrailLine(NamedTuple):
    """A step that a shown contact passed. `send`: what it made, with its offer; `leaves_at` None: it expires."""

    step_id: str
    at: datetime
    result: str
    detail: str | None = None
    send: SendMessage | None = None
    offer: Offer | None = None
    leaves_at: datetime | None = None


@dataclass(slots=True)
class Trail:
    """The way of a shown contact. `reason` None: it is under way still, or never entered."""

    contact: Contact
    lines: list[TrailLine]
    entered: bool = True
    reason: EndReason | None = None
    ended_at: datetime | None = None


class _Sent(NamedTuple):
    """A send as it will turn out. `since`: its departure; `settles`: from when its `state` is known.

    `seen`: the signals that come, each its delay after `since`; equal ones are one object, as there may be many.
    """

    state: SendState
    since: datetime
    settles: datetime
    seen: frozenset[Asked] = frozenset()


class _Cohort(NamedTuple):
    """Where contacts of one kind stand, and what they have behind them that a step may still ask for."""

    kind: int
    step_id: str
    arrived_at: datetime
    sends: tuple[tuple[str, _Sent], ...] = ()
    made: tuple[datetime, ...] = ()
    addressed: tuple[tuple[str, datetime], ...] = ()
    opts_out_at: datetime | None = None
    goal_at: datetime | None = None
    call: LastCall | None = None


class _Part(NamedTuple):
    """A part of those to whom a message left: what becomes of it, and of them."""

    people: int
    sent: _Sent
    opts_out_at: datetime | None = None
    goal_at: datetime | None = None


class _Leaving(NamedTuple):
    """Messages of a cohort that leave at one moment, or expire: they are parted in a go of their own."""

    cohort: _Cohort
    step: Step
    decision: SendMessage
    offer: Offer
    now: datetime
    left: Left


class Walk:
    """One dry run. `silences`: the windows in which steps do not send; `limits`: by lane, of those that have some.

    It ends, with `endless`, once as much time is over as if each step of the journey took the longest wait: whoever is
    under way then waits for what never comes, as for an hour to send in where silences fill the day.
    """

    def __init__(
        self,
        plan: RunnableJourney,
        kinds: Sequence[ContactKind],
        assumptions: Assumptions,
        *,
        zone: ZoneInfo,
        start: datetime,
        silences: Sequence[QuietWindow] = (),
        limits: Mapping[str, SenderLimits] | None = None,
        entry: Entry | None = None,
        seed: int = 0,
    ) -> None:
        self._plan = plan
        self._kinds = kinds
        self._zone = zone
        self._entry = entry or {}
        self._silences = silences
        self._random = Random(seed)  # noqa: S311 - draws that anybody may repeat
        self._seed = seed
        self._chosen = {step_id: ways(plan.steps[step_id])[branch] for step_id, branch in assumptions.branches.items()}
        self._rates = {step_id: assumptions.rates_of(step_id) for step_id in plan.steps}
        self._asked = {step_id: asked_of(plan, step_id) for step_id in plan.steps}
        self._later = _asked_later(plan)
        self._limits = limits or {}
        self._lanes: dict[str, DepartureTimes] = {}
        self._pending: dict[tuple[datetime, _Cohort], int] = {}
        self._heap: list[tuple[datetime, int, _Cohort]] = []
        self._pushed = 0
        self._leaving: deque[_Leaving] = deque()
        self._seen: dict[frozenset[Asked], frozenset[Asked]] = {}
        self._carried: dict[Draw, float] = {}
        self._ends = start + len(plan.steps) * LONGEST_WAIT
        self.endless = False
        self.tallies = Tallies(start)
        self.trails: dict[int, Trail] = {}
        self._start = start
        self._entering = iter(enumerate(kinds))

    @property
    def cohorts(self) -> int:
        """How many wait for their next event."""
        return len(self._pending) + len(self._leaving)

    @property
    def under_way(self) -> int:
        """How many contacts have not come to an end."""
        return sum(self._pending.values()) + sum(each.left.messages for each in self._leaving)

    def advance(self, most: int, enough: Callable[[], bool] = lambda: False) -> bool:
        """Let up to `most` kinds enter, cohorts decide, or lots leave; whether there is more.

        `enough`: asked after each of them, some 0.1 ms, whether to stop before.
        """
        for _ in range(most):
            if self._leaving:
                self._leave(self._leaving.popleft())
            elif (entering := next(self._entering, None)) is not None:
                self._enter(*entering)
            elif self._heap and self._heap[0][0] <= self._ends:
                now, _, cohort = heappop(self._heap)
                count = self._pending.pop((now, cohort))
                self.tallies.last_at = max(self.tallies.last_at, now)
                self._move(cohort, count, now)
            else:
                self.endless = bool(self._heap)
                return False
            if enough():
                break
        return True

    def _enter(self, place: int, kind: ContactKind) -> None:
        denied = kind.contact.opt_in_status is ConsentStatus.DENIED  # C9.7.2
        if kind.shown:
            self.trails[place] = Trail(kind.contact, [], entered=not denied)
        if denied:
            self.tallies.denied += kind.count
        elif kind.count:
            self.tallies.entered += kind.count
            self.tallies.arrive(self._plan.first, kind.count)
            self._push(self._start, _Cohort(place, self._plan.first, self._start), kind.count)

    def _push(self, at: datetime, cohort: _Cohort, count: int) -> None:
        """Cohorts that nothing tells apart any more are one."""
        key = (at, cohort)
        known = self._pending.get(key)
        self._pending[key] = count if known is None else known + count
        if known is None:
            self._pushed += 1
            heappush(self._heap, (at, self._pushed, cohort))

    # One decision -----------------------------------------------------------------------------------------------------

    def _move(self, cohort: _Cohort, count: int, now: datetime) -> None:
        step, kind = self._plan.steps[cohort.step_id], self._kinds[cohort.kind]
        registered = kind.registered or _is_due(cohort.opts_out_at, now)
        if left_because(kind.contact, registered=registered) is None and _is_due(cohort.goal_at, now):
            self._end(cohort, step, count, EndReason.GOAL_REACHED, now)
            return
        if isinstance(step, Split) and step.id not in self._chosen and count > 1 and not registered:
            weights = sum(branch.weight for branch in step.branches)
            people = self._shares(count, [branch.weight / weights for branch in step.branches], step.id, "branch")
            people[-1] += count - sum(people)
            for branch, some in zip(step.branches, people, strict=True):
                self._pass(cohort, step, some, Advance(branch.next, branch.name), now)
            return
        decision = decide(step, self._facts(cohort, step, kind, now, registered=registered), now)
        self._carry_out(cohort, step, count, decision, now)

    def _carry_out(self, cohort: _Cohort, step: Step, count: int, decision: Decision, now: datetime) -> None:
        match decision:
            case Advance():
                self._pass(cohort, step, count, self._chosen.get(step.id, decision), now)
            case SkipSend(reason, following):
                self._skip(cohort, step, count, reason, following, now)
            case SendMessage():
                offer = self._kinds[cohort.kind].offers[step.id]
                if isinstance(offer, SkipReason):
                    self._skip(cohort, step, count, offer, decision.next, now)
                else:
                    self._send(cohort, step, count, decision, offer, now)
            case Await(_, until):
                self._push(self._wakes_at(cohort, step, until, now), cohort, count)
            case CallWebhook(attempt):
                self._call(cohort, step, count, attempt, now)
            case EndExecution(reason):
                self._end(cohort, step, count, reason, now)
            case RetryStep():
                raise AssertionError("nothing fails here for a cause of our own")

    def _facts(self, cohort: _Cohort, step: Step, kind: ContactKind, now: datetime, *, registered: bool) -> Facts:
        send, earlier = None, None
        if isinstance(step, SendStep):
            cap = self._plan.cap
            if cap is None:
                send = SendFacts(self._silences)
            else:
                after = counts_after(cap.dias, now)
                recent = sum(at > after for at in kind.recent) + sum(at > after for at in cohort.made)
                send = SendFacts(self._silences, cap.mensagens, recent)
        elif isinstance(step, SignalCondition):
            sent = next((sent for send_id, sent in cohort.sends if send_id == step.about), None)
            earlier = None if sent is None else self._earlier(step, sent, now)
        return Facts(
            execution_id=f"{self._seed}:{cohort.kind}:{kind.contact.id}",
            arrived_at=cohort.arrived_at,
            zone=self._zone,
            contact=kind.contact,
            registered=registered,
            entry=self._entry,
            send=send,
            earlier=earlier,
            last_call=cohort.call,
            webhook_callable=True,
        )

    def _earlier(self, step: SignalCondition, sent: _Sent, now: datetime) -> EarlierSend:
        """What an execution would know by now."""
        if now < sent.since:
            return EarlierSend(SendState.QUEUED, None)
        chosen = self._chosen.get(step.id)
        if chosen is not None and sent.state is not SendState.SKIPPED:
            seen = {step.signal: sent.since} if chosen.result == TrailResult.YES else {}
            return EarlierSend(SendState.ACCEPTED, sent.since, seen)
        asked = (step.signal, step.event if step.signal is StepSignal.CONVERTEU else None)
        at = sent.since + DELAYS[step.signal]
        seen = {step.signal: at} if asked in sent.seen and at <= now else {}
        return EarlierSend(sent.state if now >= sent.settles else SendState.ACCEPTED, sent.since, seen)

    def _wakes_at(self, cohort: _Cohort, step: Step, until: datetime | None, now: datetime) -> datetime:
        """When it is worth asking again: then, or when something changes before."""
        moments = [until, cohort.opts_out_at, cohort.goal_at]
        if isinstance(step, SignalCondition):
            for send_id, sent in cohort.sends:
                if send_id == step.about:
                    moments += [sent.since, sent.settles, *{sent.since + DELAYS[signal] for signal, _ in sent.seen}]
        return min(moment for moment in moments if moment is not None and moment > now)

    # What comes of it -------------------------------------------------------------------------------------------------

    def _pass(
        self,
        cohort: _Cohort,
        step: Step,
        count: int,
        way: Advance,
        now: datetime,
        line: TrailLine | None = None,
    ) -> None:
        if not count:
            return
        self.tallies.passed(step.id, KIND_OF[type(step)], way.result, count)
        self._tell(cohort, line or TrailLine(step.id, now, way.result))
        later = self._later[way.next]
        sends = tuple(each for each in cohort.sends if each[0] in later)
        self.tallies.arrive(way.next, count)
        self._push(now, cohort._replace(step_id=way.next, arrived_at=now, sends=sends, call=None), count)

    def _skip(self, cohort: _Cohort, step: Step, count: int, reason: SkipReason, following: str, now: datetime) -> None:
        self.tallies.skipped[step.id][reason.value] += count
        skipped = cohort._replace(sends=(*cohort.sends, (step.id, _Sent(SendState.SKIPPED, now, now))))
        line = TrailLine(step.id, now, TrailResult.SKIPPED, reason)
        self._pass(skipped, step, count, Advance(following, TrailResult.SKIPPED), now, line)

    def _call(self, cohort: _Cohort, step: Step, count: int, attempt: int, now: datetime) -> None:
        """A call is answered at once; those whose first one failed fail each time."""
        chosen = self._chosen.get(step.id)
        if chosen is not None:
            status = _TAKEN if chosen.result == TrailResult.WEBHOOK_OK else _REFUSED
            self._push(now, cohort._replace(call=LastCall(attempt, status, now)), count)
            return
        taken = self._share(count, self._rates[step.id][Rate.WEBHOOK], (step.id, "call", 0)) if attempt == 1 else 0
        for some, status in ((taken, _TAKEN), (count - taken, _FAILED_AGAIN)):
            if some:
                self._push(now, cohort._replace(call=LastCall(attempt, status, now)), some)

    def _end(self, cohort: _Cohort, step: Step, count: int, reason: EndReason, now: datetime) -> None:
        self.tallies.end(step.id, KIND_OF[type(step)], reason, count)
        trail = self.trails.get(cohort.kind)
        if trail is not None:
            result = EndExecution(reason).result
            if result is not None:
                trail.lines.append(TrailLine(step.id, now, result))
            trail.reason, trail.ended_at = reason, now

    def _tell(self, cohort: _Cohort, line: TrailLine) -> None:
        trail = self.trails.get(cohort.kind)
        if trail is not None:
            trail.lines.append(line)

    # Messages ---------------------------------------------------------------------------------------------------------

    def _send(
        self, cohort: _Cohort, step: Step, count: int, decision: SendMessage, offer: Offer, now: datetime
    ) -> None:
        limits = self._limits.get(offer.lane, _UNLIMITED)
        lane = self._lanes.get(offer.lane)
        if lane is None:
            lane = self._lanes[offer.lane] = DepartureTimes(limits)
        addressed_at = dict(cohort.addressed).get(offer.lane)
        self.tallies.messages[step.id] += count
        found = lane.leave(
            now, count, ttl=offer.ttl, critical=offer.critical, quiet=offer.quiet, addressed_at=addressed_at
        )
        self._leaving += (_Leaving(cohort, step, decision, offer, now, left) for left in found)

    def _leave(self, leaving: _Leaving) -> None:
        cohort, step, decision, offer, now, left = leaving
        following = cohort
        if left.expired:
            self.tallies.departures[offer.lane].expired += left.messages
            self.tallies.outcome(step.id, MessageOutcome.FAILED, left.messages)
            # It failed before it left, so it does not count against the cap from then on; until then it does.
            parts = [_Part(left.messages, _Sent(SendState.FAILED, left.at, left.at))]
        else:
            self.tallies.departures[offer.lane].add(left.at, left.messages)
            self.tallies.coins[step.id] += left.messages * offer.coins
            parts = self._parts(step.id, offer.channel, left.at, left.messages)
            following = cohort._replace(made=() if self._plan.cap is None else (*cohort.made, now))
            if self._limits.get(offer.lane, _UNLIMITED).recipients is not None:
                others = (each for each in cohort.addressed if each[0] != offer.lane)
                following = following._replace(addressed=(*others, (offer.lane, left.at)))
        leaves_at = None if left.expired else left.at
        line = TrailLine(step.id, now, TrailResult.SENT, None, decision, offer, leaves_at)
        for part in parts:
            whose = following._replace(
                sends=(*following.sends, (step.id, part.sent)),
                opts_out_at=_earliest(following.opts_out_at, part.opts_out_at),
                goal_at=_earliest(following.goal_at, part.goal_at),
            )
            self._pass(whose, step, part.people, Advance(decision.next, TrailResult.SENT), now, line)

    def _parts(self, step_id: str, channel: str, at: datetime, count: int) -> list[_Part]:
        """What becomes of messages that leave at one moment. Parted only by what somebody asks for."""
        rates = self._rates[step_id]
        shares = [rates[Rate.FALHA], rates[Rate.INDETERMINADO], rates[Rate.ENTREGUE]]
        failed, unknown, delivered = self._shares(count, shares, step_id, "outcome")
        silent = count - failed - unknown - delivered
        for outcome, some in (
            (MessageOutcome.SENT, count - unknown),
            (MessageOutcome.FAILED, failed),
            (MessageOutcome.DELIVERED, delivered),
        ):
            self.tallies.outcome(step_id, outcome, some)
        settles = at + FAILS_AFTER
        parts = [
            _Part(failed, _Sent(SendState.FAILED, at, settles)),
            _Part(unknown, _Sent(SendState.UNKNOWN, at, at)),
            _Part(silent, _Sent(SendState.ACCEPTED, at, at)),
            *self._delivered(step_id, channel, at, delivered),
        ]
        return [part for part in parts if part.people]

    def _delivered(self, step_id: str, channel: str, at: datetime, count: int) -> list[_Part]:
        """One draw tells how much a person does: the lower, the more signals come, and the highest ones opt out."""
        rates, asked = self._rates[step_id], self._asked[step_id]
        given = {signal: rates[OF_SIGNAL[signal]] for signal in OF_SIGNAL if signal in SIGNALS[channel]}
        for signal, rate in given.items():
            if all(key[0] is not signal for key in asked):
                self._tally(step_id, signal, self._share(count, rate, (step_id, signal, 0)))
        wanted = [(key, given[key[0]]) for key in asked if key[0] in given]
        stays = 1.0 - rates[Rate.OPT_OUT]
        bounds = sorted({0.0, 1.0, stays, *(rate for _, rate in wanted)})
        parts = []
        people = self._shares(count, [end - begin for begin, end in pairwise(bounds)], step_id, "person")
        people[-1] += count - sum(people)
        for begin, end, some in zip(bounds, bounds[1:], people, strict=False):
            arrived = (key for key in asked if key == _ARRIVED)
            keys = frozenset((*arrived, *(key for key, rate in wanted if rate >= end)))
            for signal in {signal for signal, _ in keys if signal in given}:
                self._tally(step_id, signal, some)
            seen = self._seen.setdefault(keys, keys)
            converted = self._plan.goal is not None and (StepSignal.CONVERTEU, self._plan.goal) in keys
            parts.append(
                _Part(
                    some,
                    _Sent(SendState.ACCEPTED, at, at, seen),
                    opts_out_at=at + OPTS_OUT_AFTER if begin >= stays else None,
                    goal_at=at + DELAYS[StepSignal.CONVERTEU] if converted else None,
                )
            )
        return parts

    def _tally(self, step_id: str, signal: StepSignal, count: int) -> None:
        if signal is StepSignal.CONVERTEU:
            self.tallies.conversions(step_id, count)
        else:
            self.tallies.outcome(step_id, _OUTCOME_OF[signal], count)

    # Draws ------------------------------------------------------------------------------------------------------------

    def _share(self, count: int, rate: float, draw: Draw) -> int:
        """How many of `count` it is with this rate: as many as expected, what is less than one carried to the next.

        A single one is drawn by itself: or those who come one by one would fare alike in each step.
        """
        if count == 1:
            return int(self._random.random() < rate)
        carried = self._carried.get(draw)
        expected = count * rate + (self._random.random() if carried is None else carried)
        some = min(count, int(expected))
        self._carried[draw] = min(expected - some, 1.0)
        return some

    def _shares(self, count: int, rates: Sequence[float], step_id: str, what: str) -> list[int]:
        """Of `count`, how many fall to each of several rates that shut each other out."""
        found, left, rest = [], count, 1.0
        for place, rate in enumerate(rates):
            some = self._share(left, min(rate / rest, 1.0), (step_id, what, place)) if rest > 0 else 0
            found.append(some)
            left -= some
            rest -= rate
        return found


def _asked_later(plan: RunnableJourney) -> dict[str, frozenset[str]]:
    """By step, the sends that it, or a step behind it, asks about: of others nothing has to be known there."""
    found: dict[str, frozenset[str]] = {}

    def of(step_id: str) -> frozenset[str]:
        if step_id not in found:
            step = plan.steps[step_id]
            own = {step.about} if isinstance(step, SignalCondition) else set()
            found[step_id] = frozenset(own).union(*(of(following) for following in _following(step)))
        return found[step_id]

    for step_id in plan.steps:
        of(step_id)
    return found


def _following(step: Step) -> list[str]:
    match step:
        case SendStep() | WaitForStep() | WaitUntilStep():
            return [step.next]
        case _:
            return [way.next for way in ways(step).values()]  # an end has none


def _is_due(at: datetime | None, now: datetime) -> bool:
    return at is not None and at <= now


def _earliest(first: datetime | None, second: datetime | None) -> datetime | None:
    return first if second is None else second if first is None else min(first, second)
