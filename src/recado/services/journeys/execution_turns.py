"""Turns of executions (C9.15): some that are due are locked, decide, and what follows is one commit with their moves.

A turn takes an execution along until it waits, ends, or makes a message: whether that is accepted is known in the
commit alone. What crashes before the commit has done nothing; what crashes after it has done all. An execution whose
step fails for a cause of our own fails alone, and is tried again later.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

import structlog

from recado.domain.contacts.consent import OPTED_OUT
from recado.domain.core.clock import Clock
from recado.domain.core.errors import Problem, Unavailable
from recado.domain.journeys.decide import after_internal_failure, decide, left_because
from recado.domain.journeys.execution import WITHDRAWS, Awaited, EndReason, SkipReason
from recado.domain.journeys.journey import Hindrance, JourneyStatus
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
from recado.domain.messages.owner_pauses import OwnerPauses
from recado.domain.messages.withdrawal import Withdrawal
from recado.engine.turns import in_pieces
from recado.services.journeys.facts import RoundFacts, goals_reached, known_contacts, round_facts
from recado.services.journeys.hindrances import pause_hindered
from recado.services.journeys.running import JourneyKey, RunningJourneys
from recado.services.journeys.standing import Hindered, PendingSend, Standing
from recado.services.journeys.step_calls import StepCalls
from recado.services.journeys.step_messages import StepMessages
from recado.services.messages.admission import Admission
from recado.storage.access.organizations import OrganizationDirectory
from recado.storage.core.failures import worth_repeating
from recado.storage.core.moves import AfterCommit, Moved
from recado.storage.core.postgres import Connection, Database
from recado.storage.dispatch import withdrawals
from recado.storage.journeys import executions
from recado.storage.journeys.execution_facts import ContactKey
from recado.storage.journeys.executions import Execution, ExecutionKey, HeardSignals, PassedStep
from recado.storage.messages.messages import NewMessage, NoConsent, Stored

log = structlog.get_logger()

EACH: Final = 50  # executions of an organization in a turn
MOST: Final = 200  # in all
SIGNALS_EACH: Final = 250  # of an organization: a message makes four, in its life
SIGNALS: Final = 1_000  # in all, and as many executions that they are about
STEPS: Final = 10  # of each: others are not to wait for a long way
AT_ONCE: Final = 20  # that decide in one go of the loop, each in some 50 µs
RETRY_UNPAID: Final = timedelta(minutes=1)
"""When a test asks again whose message its wallet does not cover; the others wait with their journey."""

UNPAID: Final = timedelta(hours=1)
"""How long it asks."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What a turn did. `after`: the organization after which the next one begins; empty: with the first."""

    count: int
    after: str = ""


@dataclass(frozen=True, slots=True)
class _Work:
    """What is left to do when a turn is committed. `hindered`: the journeys that pause, each with its revision."""

    committed: AfterCommit
    hindered: Mapping[JourneyKey, tuple[int, Hindered]] = field(default_factory=dict)


class ExecutionTurns:
    """Takes executions along.

    Told after the commit: `accepted`, of the messages that they made; `recalled`, of those that a call has in hand, and
    that must not leave later; `paused`, of a journey that has paused itself.
    """

    def __init__(
        self,
        db: Database,
        *,
        clock: Clock,
        organizations: OrganizationDirectory,
        step_messages: StepMessages,
        step_calls: StepCalls,
        admission: Admission,
        accepted: Callable[[Sequence[NewMessage]], None],
        recalled: Callable[[Sequence[Withdrawal]], None],
        paused: Callable[[OwnerPauses], None],
    ) -> None:
        self._db = db
        self._clock = clock
        self._organizations = organizations
        self._step_messages = step_messages
        self._step_calls = step_calls
        self._admission = admission
        self._accepted = accepted
        self._recalled = recalled
        self._paused = paused
        self._journeys = RunningJourneys()

    async def waiting(self) -> bool:
        """Whether there is anything to do here, or somebody who may enter. Raises `Unavailable`."""
        return await executions.waiting(self._db.hot, self._clock.now())

    async def take(self, after: str = "", *, each: int = EACH, most: int = MOST) -> Turn:
        """One turn of what is due. Raises `Unavailable`."""
        now = self._clock.now()
        claimed: list[Execution] = []
        try:
            async with self._db.hot.transaction() as connection:
                claimed = await executions.claim_due(connection, now, each=each, most=most, after=after)
                work = await self._work(connection, claimed, now)
        except Exception as error:
            if worth_repeating(error):
                raise
            log.warning("turn_taken_one_by_one", executions=len(claimed), error=type(error).__name__)
            for execution in claimed:
                await self._take_by_itself(execution.key)
        else:
            await self._finish(work)
        last = claimed[-1].organization_id if len(claimed) == most else ""
        return Turn(len(claimed), last)

    async def _take_by_itself(self, key: ExecutionKey) -> None:
        """Whatever comes of it, those behind it come to their turn."""
        try:
            await self.take_one(key)
        except Exception as error:
            if worth_repeating(error):
                raise
            log.error("execution_stuck", organization_id=key[0], execution_id=key[3], error=type(error).__name__)

    async def take_one(self, key: ExecutionKey) -> None:
        """A turn of one execution, if it is due still; where it fails, that is what becomes of it."""
        now = self._clock.now()
        try:
            async with self._db.hot.transaction() as connection:
                execution = await executions.claim(connection, key, now)
                work = await self._work(connection, [] if execution is None else [execution], now)
        except Exception as error:
            if worth_repeating(error):
                raise
            await self._fail(key, error, now)
        else:
            await self._finish(work)

    async def hear(self, after: str = "") -> HeardSignals:
        """Let those be due of whom signals tell, a part of those of the organizations after `after`."""
        async with self._db.hot.transaction() as connection:
            return await executions.hear(connection, self._clock.now(), each=SIGNALS_EACH, most=SIGNALS, after=after)

    async def rouse(self) -> int:
        """Let go on what was due while its journey was paused, a part of it; answers how many there were."""
        async with self._db.hot.transaction() as connection:
            return await executions.rouse(connection, self._clock.now(), each=EACH, most=MOST)

    # The parts ------------------------------------------------------------------------------------------------------

    async def _finish(self, work: _Work) -> None:
        """What follows the commit of a turn. A journey is locked before its executions, which are free only now."""
        work.committed()
        await pause_hindered(self._db, self._clock, work.hindered, self._paused)

    async def _work(self, connection: Connection, claimed: Sequence[Execution], now: datetime) -> _Work:
        if not claimed:
            return _Work(_nothing)
        taken, put_off = await self._standing(connection, claimed, now)
        pending: Counter[ContactKey] = Counter()
        for _ in range(STEPS):  # what has not settled by then is due still
            left = [each for each in taken if not each.settled]
            if not left:
                break
            await self._round(connection, left, pending, now)
        # As everywhere: messages are touched after executions, and before wallets.
        withdrawn, in_hand = await self._withdrawn(connection, taken, now)
        stored, followed = await self._send(connection, taken, withdrawn, now)
        changed = [each.execution for each in taken]
        await executions.save(connection, [*changed, *put_off], [step for each in taken for step in each.passed])
        called = await self._step_calls.want(connection, [each for each in taken if each.calls], now)

        def committed() -> None:
            followed()
            if in_hand:
                self._recalled(in_hand)
            called()
            self._accepted(stored)

        return _Work(committed, _hindered(taken))

    async def _standing(
        self, connection: Connection, claimed: Sequence[Execution], now: datetime
    ) -> tuple[list[Standing], list[Execution]]:
        """Those that go on, and what becomes of the others: their journey is paused, or is no more."""
        keys = {each.key[:3] for each in claimed}
        journeys = await self._journeys.read(connection, keys)
        people = await known_contacts(
            connection, [ContactKey(each.organization_id, each.env, each.contact_id) for each in claimed]
        )
        standing, others = [], []
        for execution in claimed:
            key = ContactKey(execution.organization_id, execution.env, execution.contact_id)
            contact, registered = people.get(key, (None, False))
            found = journeys.get(execution.key[:3])
            if found is None or execution.step_id not in found[1].plan.steps:
                # A draft was changed during its test, so that nothing runs it any more, or not from here.
                others.append(execution.ended(EndReason.INTERNAL_FAILURE, now))
                continue
            standing.append(Standing(execution, found[1], contact, registered))
        reached = await goals_reached(connection, standing)
        going = []
        for each in standing:
            status = journeys[each.execution.key[:3]][0]
            over = left_because(each.contact, registered=each.registered)
            if over is None and each.execution.id in reached:
                over = EndReason.GOAL_REACHED
            if over is None and status is JourneyStatus.ARQUIVADA:
                over = EndReason.JOURNEY_ARCHIVED
            if over is None and status is JourneyStatus.PAUSADA and not each.execution.teste:
                others.append(each.execution.put_off())
                continue
            going.append(each)
            if over is not None:
                each.end(over, now)
        return going, others

    async def _round(
        self, connection: Connection, standing: Sequence[Standing], pending: Counter[ContactKey], now: datetime
    ) -> None:
        """Each of them decides once."""
        facts = await round_facts(connection, self._organizations, standing, now)
        async for some in in_pieces(standing, AT_ONCE):
            for each in some:
                await self._decide(each, facts, pending, now)

    async def _decide(self, standing: Standing, facts: RoundFacts, pending: Counter[ContactKey], now: datetime) -> None:
        try:
            decision = decide(standing.step, facts.of(standing, pending=pending[standing.contact_key]), now)
            await self._carry_out(standing, decision, now)
        except Unavailable:
            raise
        except Exception as error:  # noqa: BLE001 - it must not keep the others from going on
            _log_failure(standing.execution.key, error)
            _carry_on(standing, after_internal_failure(standing.execution.failures + 1, now), now)
        if standing.send is not None and not standing.execution.teste:
            pending[standing.contact_key] += 1

    async def _carry_out(self, standing: Standing, decision: Decision, now: datetime) -> None:
        if isinstance(decision, CallWebhook):
            standing.call()
            return
        if not isinstance(decision, SendMessage):
            _carry_on(standing, decision, now)
            return
        made = await self._step_messages.make(standing, decision)
        match made:
            case PendingSend():
                standing.send = made
                standing.settled = True
            case Hindered():
                standing.leave_out(decision.next, made, now)
            case SkipReason():
                standing.skip(decision.next, made, now)

    async def _withdrawn(
        self, connection: Connection, taken: Sequence[Standing], now: datetime
    ) -> tuple[list[Moved], list[Withdrawal]]:
        """What executions had queued that ended here and withdraw it; and what a call has in hand of it."""
        ended: dict[tuple[str, str], list[str]] = {}
        for each in taken:
            if each.execution.motivo in WITHDRAWS:
                where = (each.execution.organization_id, each.execution.env)
                ended.setdefault(where, []).append(each.execution.id)
        moved: list[Moved] = []
        in_hand: list[Withdrawal] = []
        for (organization_id, env), execution_ids in sorted(ended.items()):
            archived, left = await withdraw(connection, organization_id, env, execution_ids, now)
            moved += archived
            in_hand += left
        return moved, in_hand

    async def _send(
        self, connection: Connection, taken: Sequence[Standing], withdrawn: Sequence[Moved], now: datetime
    ) -> tuple[list[NewMessage], AfterCommit]:
        """Accept the messages that they made, and move on those whose message was; write what follows."""
        sending = [(each, each.send) for each in taken if each.send is not None]
        if not sending and not withdrawn:
            return [], _nothing
        made = [send.message for _, send in sending]
        results, committed = await self._admission.store_within(connection, made, withdrawn)
        stored = []
        for (each, send), result in zip(sending, results, strict=True):
            match result:
                case Stored():
                    each.sent(send, now)
                    stored.append(send.message)
                case NoConsent(code) if code == OPTED_OUT:
                    each.end(EndReason.OPTED_OUT, now)
                case NoConsent():
                    each.skip(send.next, SkipReason.CONTENT_INVALID, now)
                case Problem(code="PAYMENT_REQUIRED") if each.execution.teste:
                    if now - each.execution.arrived_at > UNPAID:
                        each.end(EndReason.INTERNAL_FAILURE, now)
                        continue
                    held = each.execution.waiting(Awaited.RESUME, None)
                    each.stay(held.again_at(now + RETRY_UNPAID))
                case Problem(code="PAYMENT_REQUIRED"):
                    step_id, coins = each.execution.step_id, send.message.coins
                    each.hindered = Hindered(Hindrance.NO_BALANCE, step_id, coins=coins)
                    each.stay(each.execution.put_off())
                case _:
                    raise TypeError(f"a message of a journey was answered {type(result).__name__}")
        return stored, committed

    async def _fail(self, key: ExecutionKey, error: Exception, now: datetime) -> None:
        """The step failed, and nothing of it was done."""
        _log_failure(key, error)
        async with self._db.hot.transaction() as connection:
            execution = await executions.claim(connection, key, now)
            if execution is None:
                return
            match after_internal_failure(execution.failures + 1, now):
                case RetryStep(at, failures):
                    await executions.save(connection, [execution.failed(at, failures)], [])
                case EndExecution(reason):
                    ended, passed = await self._ended(connection, execution, reason, now)
                    await executions.save(connection, [ended], passed)

    async def _ended(
        self, connection: Connection, execution: Execution, reason: EndReason, now: datetime
    ) -> tuple[Execution, list[PassedStep]]:
        """It is over, and its trail says so, where its journey has such a step at all."""
        try:
            journeys = await self._journeys.read(connection, {execution.key[:3]})
            standing = Standing(execution, journeys[execution.key[:3]][1], contact=None, registered=False)
            standing.end(reason, now)
        except LookupError:
            return execution.ended(reason, now), []
        return standing.execution, standing.passed


async def withdraw(
    connection: Connection, organization_id: str, env: str, execution_ids: Sequence[str], now: datetime
) -> tuple[list[Moved], list[Withdrawal]]:
    """Archive what these executions, which are locked, have queued; its consequences are the caller's to write.

    Answers also which of their messages a call has in hand: they are noted, and are to be told after the commit.
    """
    made = await executions.messages_of(connection, organization_id, execution_ids)
    if not made:
        return [], []
    return await withdrawals.of_ended(connection, organization_id, env, made, now)


def _hindered(taken: Sequence[Standing]) -> dict[JourneyKey, tuple[int, Hindered]]:
    """By journey, what it pauses for: what no credit ends, or else the message that a credit covers first."""
    found: dict[JourneyKey, tuple[int, Hindered]] = {}
    for each in taken:
        if each.hindered is None:
            continue
        key, hindered = each.execution.key[:3], (each.journey.revision, each.hindered)
        found[key] = min(found.get(key, hindered), hindered, key=lambda known: known[1].coins or 0)
    return found


def _carry_on(standing: Standing, decision: Decision, now: datetime) -> None:
    """What needs nothing but the execution itself."""
    match decision:
        case Advance(following, result):
            standing.advance(following, result, now)
        case SkipSend(reason, following):
            standing.skip(following, reason, now)
        case Await(what, until):
            standing.stay(standing.execution.waiting(what, until))
        case RetryStep(at, failures):
            standing.stay(standing.execution.failed(at, failures))
        case EndExecution(reason):
            standing.end(reason, now)
        case SendMessage() | CallWebhook():
            raise AssertionError(f"{type(decision).__name__} needs more than its execution")


def _log_failure(key: ExecutionKey, error: Exception) -> None:
    organization_id, _, journey_id, execution_id = key
    log.error(
        "execution_step_failed",
        organization_id=organization_id,
        journey_id=journey_id,
        execution_id=execution_id,
        error=type(error).__name__,
    )


def _nothing() -> None:
    """Nothing is left to do."""
