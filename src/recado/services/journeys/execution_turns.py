"""Turns of executions (C9.15): some that are due are locked, decide, and what follows is one commit with their moves.

A turn takes an execution along until it waits, ends, or makes a message: once that is accepted, it goes on as far as
nothing more has to be read. What crashes before the commit has done nothing; what crashes after it has done all. An
execution whose step fails for a cause of our own fails alone, and is tried again later.

Who enters has its first turn in the commit of its entry, and is stored as it stands then.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
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
from recado.domain.journeys.steps import SendStep, SignalCondition, WebhookStep
from recado.domain.messages.owner_pauses import OwnerPauses
from recado.domain.messages.withdrawal import Withdrawal
from recado.engine.turns import in_pieces
from recado.services.journeys.facts import JUST_SENT, RoundFacts, goals_reached, read_people, round_facts
from recado.services.journeys.hindrances import pause_hindered
from recado.services.journeys.running import JourneyKey, RunningJourneys
from recado.services.journeys.standing import Hindered, PendingSend, Standing
from recado.services.journeys.step_calls import StepCalls
from recado.services.journeys.step_messages import StepMessages
from recado.services.messages.admission import Admission
from recado.storage.access.organizations import OrganizationDirectory
from recado.storage.core.connections.failures import timed_out, worth_repeating
from recado.storage.core.connections.postgres import Connection, Database
from recado.storage.core.statements.moves import AfterCommit, Moved
from recado.storage.dispatch import withdrawals
from recado.storage.journeys import executions
from recado.storage.journeys.execution_facts import ContactKey
from recado.storage.journeys.executions import Execution, ExecutionKey, HeardSignals, PassedStep, WaitingWork
from recado.storage.messages.messages import NewMessage, NoConsent, Stored

log = structlog.get_logger()

EACH: Final = 50  # executions of an organization in a turn, and more where few of them have any
MOST: Final = 500  # in all
FEWER: Final = 10  # times, after a turn that took too long
SIGNALS_EACH: Final = 250  # of an organization: a message makes four, in its life
SIGNALS: Final = 1_000  # in all, and as many executions that they are about
STEPS: Final = 10  # of each: others are not to wait for a long way
AT_ONCE: Final = 50  # that decide in one go of the loop, each in some 20 µs
YOUNG: Final = timedelta(minutes=1)  # as long as a change of its contact may take that saw no execution yet
AFTER_CHANGE: Final = timedelta(seconds=1)
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
class Work:
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
        journeys: RunningJourneys,
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
        self.journeys = journeys
        self._counted: set[ContactKey] = set()  # by the turns under way
        self._room = MOST  # places of a turn

    async def waiting(self) -> WaitingWork:
        """Of what there is something to do here, and whether somebody may enter. Raises `Unavailable`."""
        return await executions.waiting(self._db.hot, self._clock.now())

    @contextmanager
    def counting(self) -> Iterator[set[ContactKey]]:
        """For the time of a turn: the contacts whose messages it counts. No other turn makes any for them meanwhile."""
        mine: set[ContactKey] = set()
        try:
            yield mine
        finally:
            self._counted -= mine

    async def take(self, after: str = "") -> Turn:
        """One turn of what is due: of organizations after `after`, or of all when those have nothing.

        Raises `Unavailable`. After a turn that took too long fewer take one, in the end a single execution: the one
        that takes too long by itself has failed.
        """
        most = min(MOST, self._room)
        now = self._clock.now()
        claim = partial(executions.claim_due, now=now, each=min(EACH, most), most=most)
        claimed: list[Execution] = []
        try:
            with self.counting() as counted:
                async with self._db.hot.transaction() as connection:
                    claimed = await claim(connection, after=after)
                    if after and not claimed:
                        claimed = await claim(connection)
                    work = await self._work(connection, claimed, now, counted)
        except Exception as error:
            if claimed and timed_out(error):
                await self._took_too_long(claimed, error, now)
            elif worth_repeating(error):
                raise
            else:
                log.warning("turn_taken_one_by_one", executions=len(claimed), error=type(error).__name__)
                for execution in claimed:
                    await self._take_by_itself(execution.key)
        else:
            self._room = min(MOST, self._room * FEWER)
            await self.finish(work)
        last = claimed[-1].organization_id if len(claimed) == most else ""
        return Turn(len(claimed), last)

    async def _took_too_long(self, claimed: Sequence[Execution], error: Exception, now: datetime) -> None:
        log.warning("turn_took_too_long", executions=len(claimed))
        if len(claimed) == 1:
            await self._fail(claimed[0].key, error, now)
        else:
            self._room = max(1, len(claimed) // FEWER)

    async def first(self, connection: Connection, new: Sequence[Execution], counted: set[ContactKey]) -> Work:
        """The first turn of executions that begin in this transaction, which stores them as they stand after it.

        Some are due at once instead: what their turn reads must not change until they are seen by those who change it.
        `counted`: of `counting`.
        """
        return await self._work(connection, new, self._clock.now(), counted, new=True)

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
            with self.counting() as counted:
                async with self._db.hot.transaction() as connection:
                    execution = await executions.claim(connection, key, now)
                    work = await self._work(connection, [] if execution is None else [execution], now, counted)
        except Exception as error:
            if worth_repeating(error):
                raise
            await self._fail(key, error, now)
        else:
            await self.finish(work)

    async def hear(self, after: str = "") -> HeardSignals:
        """Let those be due of whom signals tell, a part of those of the organizations after `after`."""
        async with self._db.hot.transaction() as connection:
            return await executions.hear(connection, self._clock.now(), each=SIGNALS_EACH, most=SIGNALS, after=after)

    async def rouse(self) -> int:
        """Let go on what was due while its journey was paused, a part of it; answers how many there were."""
        async with self._db.hot.transaction() as connection:
            return await executions.rouse(connection, self._clock.now(), each=EACH, most=MOST)

    # The parts ------------------------------------------------------------------------------------------------------

    async def finish(self, work: Work) -> None:
        """What follows the commit of a turn. A journey is locked before its executions, which are free only now."""
        work.committed()
        await pause_hindered(self._db, self._clock, work.hindered, self._paused)

    async def _work(
        self,
        connection: Connection,
        claimed: Sequence[Execution],
        now: datetime,
        counted: set[ContactKey],
        *,
        new: bool = False,
    ) -> Work:
        """`new`: they are not stored yet."""
        if not claimed:
            return Work(_nothing)
        write = executions.begin if new else executions.save
        taken, others = await self._standing(connection, claimed, now, new=new)
        pending: Counter[ContactKey] = Counter()
        for _ in range(STEPS):  # what has not settled by then is due still
            self._count(taken, counted)
            left = [each for each in taken if not each.settled]
            if not left:
                break
            await self._round(connection, left, pending, now)
        # As everywhere: messages are touched after executions, and before wallets, which are locked as late as can be.
        silent = [each for each in taken if each.send is None]
        await write(connection, [*(each.execution for each in silent), *others], _passed(silent))
        called = await self._step_calls.want(connection, [each for each in silent if each.calls], now)
        sending = [each for each in taken if each.send is not None]
        withdrawn, in_hand = ([], []) if new else await self._withdrawn(connection, taken, now)
        stored, followed = await self._send(connection, sending, withdrawn, now)
        if sending:
            await write(connection, [each.execution for each in sending], _passed(sending))

        def committed() -> None:
            followed()
            if in_hand:
                self._recalled(in_hand)
            called()
            self._accepted(stored)

        return Work(committed, _hindered(taken))

    async def _standing(
        self, connection: Connection, claimed: Sequence[Execution], now: datetime, *, new: bool
    ) -> tuple[list[Standing], list[Execution]]:
        """Those that go on, and the others as they are to be written: their journey is paused, or is no more.

        Of new ones these are also those that are due at once instead.
        """
        journeys = await self.journeys.read(connection, {each.key[:3] for each in claimed})
        standing, others = [], []
        for execution in claimed:
            found = journeys.get((execution.organization_id, execution.env, execution.journey_id))
            if found is None or execution.step_id not in found[1].plan.steps:
                # A draft was changed during its test, so that nothing runs it any more, or not from here.
                others.append(execution.ended(EndReason.INTERNAL_FAILURE, now))
            elif new and found[1].plan.goal is not None:
                others.append(execution)  # an event that comes meanwhile tells nobody of an execution that is not there
            else:
                standing.append(Standing(execution, found[1], found[0]))
        if new:
            await read_people(connection, standing, held=True)
            # Of those that are missing somebody is changing the contact, or it is gone.
            others += [each.execution for each in standing if each.contact is None]
            standing = [each for each in standing if each.contact is not None]
        else:
            changing = await self._read_people(connection, standing, now)
            others += [each.again_at(now + AFTER_CHANGE) for each in changing.values()]
            standing = [each for each in standing if each.execution.id not in changing]
        reached: set[str] = set() if new else await goals_reached(connection, standing)
        going = []
        for each in standing:
            over = left_because(each.contact, registered=each.registered)
            if over is None and each.execution.id in reached:
                over = EndReason.GOAL_REACHED
            if over is None and each.status is JourneyStatus.ARQUIVADA:
                over = EndReason.JOURNEY_ARCHIVED
            if over is None and each.status is JourneyStatus.PAUSADA and not each.execution.teste:
                others.append(each.execution.put_off())
                continue
            going.append(each)
            if over is not None:
                each.end(over, now)
        return going, others

    async def _read_people(
        self, connection: Connection, standing: Sequence[Standing], now: datetime
    ) -> dict[str, Execution]:
        """Tell each of its contact. Answers those that began a moment ago and whose contact somebody is changing.

        That may have found no execution. The contacts of the others that began then stay as they are until the commit.
        """
        young: list[Standing] = []
        grown: list[Standing] = []
        for each in standing:
            fresh = not each.execution.passed and now - each.execution.started_at < YOUNG
            (young if fresh else grown).append(each)
        await read_people(connection, grown)
        await read_people(connection, young, held=True)
        unheld = [each for each in young if each.contact is None]
        await read_people(connection, unheld)
        return {each.execution.id: each.execution for each in unheld if each.contact is not None}

    def _count(self, taken: Sequence[Standing], counted: set[ContactKey]) -> None:
        """Leave those for later, as they are, whose messages another turn counts, or makes, at this moment."""
        for each in taken:
            if each.settled or not each.capped:
                continue
            if each.contact_key in self._counted and each.contact_key not in counted:
                each.settled = True
            else:
                counted.add(each.contact_key)
                self._counted.add(each.contact_key)

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
            known = facts.of(standing, pending=pending[standing.contact_key] if standing.capped else 0)
            decision = decide(standing.step, known, now)
            if isinstance(decision, SendMessage):
                await self._make(standing, decision, now)
            elif isinstance(decision, CallWebhook):
                standing.call()
            else:
                _carry_on(standing, decision, now)
        except Unavailable:
            raise
        except Exception as error:  # noqa: BLE001 - it must not keep the others from going on
            _failed(standing, error, now)
        if standing.send is not None and not standing.execution.teste:
            pending[standing.contact_key] += 1

    async def _make(self, standing: Standing, decision: SendMessage, now: datetime) -> None:
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
                    _go_on(each, now)
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
            # Waited for: a statement that took too long may have it still.
            execution = await executions.lock(connection, key)
            if execution is None or not execution.due(now):
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
            journeys = await self.journeys.read(connection, {execution.key[:3]})
            status, journey = journeys[execution.key[:3]]
            standing = Standing(execution, journey, status)
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


def _passed(standing: Sequence[Standing]) -> list[PassedStep]:
    return [step for each in standing for step in each.passed]


def _hindered(taken: Sequence[Standing]) -> dict[JourneyKey, tuple[int, Hindered]]:
    """By journey, what it pauses for: what no credit ends, or else the message that a credit covers first."""
    found: dict[JourneyKey, tuple[int, Hindered]] = {}
    for each in taken:
        if each.hindered is None:
            continue
        key, hindered = each.execution.key[:3], (each.journey.revision, each.hindered)
        found[key] = min(found.get(key, hindered), hindered, key=lambda known: known[1].coins or 0)
    return found


def _go_on(standing: Standing, now: datetime) -> None:
    """It has sent, and goes on as far as nothing is to be read; its message is queued."""
    sent_in = standing.passed[-1].step_id
    standing.settled = False
    for _ in range(STEPS):
        step = standing.step
        if isinstance(step, SendStep | WebhookStep) or (isinstance(step, SignalCondition) and step.about != sent_in):
            return  # it is due still
        try:
            _carry_on(standing, decide(step, JUST_SENT.of(standing), now), now)
        except Exception as error:  # noqa: BLE001 - its message is sent
            _failed(standing, error, now)
        if standing.settled:
            return


def _failed(standing: Standing, error: Exception, now: datetime) -> None:
    _log_failure(standing.execution.key, error)
    _carry_on(standing, after_internal_failure(standing.execution.failures + 1, now), now)


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
