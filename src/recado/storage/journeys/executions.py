"""Executions as rows (C9.10, C9.15): those that are due, what became of them in a turn, and their trails.

Who moves one holds its row locked: the turn that it is due in, or whoever cancels it. Executions are locked before
messages, and those before wallets.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter, itemgetter
from typing import Any, Final, NamedTuple

import asyncpg
import orjson

from recado.domain.core.ids import Identified
from recado.domain.journeys.execution import (
    Awaited,
    EndReason,
    ExecutionOrigin,
    ExecutionStatus,
    TrailResult,
)
from recado.domain.journeys.graph import StepKind
from recado.domain.journeys.journey import JourneyStatus
from recado.domain.journeys.outcomes import EndExecution
from recado.domain.journeys.step_numbers import StepCount, counted_result
from recado.storage.core.statements.rows import (
    Executor,
    affected,
    columns,
    pack,
    pack_moments,
    pack_numbers,
    pack_some,
    reader,
)
from recado.storage.core.statements.skipping import groups
from recado.storage.core.statements.sql import load
from recado.storage.journeys import execution_counts, states, step_calls, step_counts, step_outcomes
from recado.storage.journeys.execution_counts import JourneyKey, Move
from recado.storage.journeys.step_calls import StepKey
from recado.storage.journeys.step_counts import StepChanges

_JOURNEY: Final = ("organization_id", "env", "journey_id")
_ORGANIZATION: Final = ("organization_id",)
SQL: Final = load(
    "executions",
    held=groups("held", "executions", _JOURNEY, where="overslept"),
    arriving=groups("arriving", "journey_arrivals", _JOURNEY),
    waiting=groups("waiting", "executions", _ORGANIZATION, where="wake_at is not null", also=("wake_at",)),
    waiting_after=groups(
        "waiting",
        "executions",
        _ORGANIZATION,
        where="wake_at is not null",
        after="organization_id > $5",
        also=("wake_at",),
    ),
    telling=groups("telling", "execution_signals", _ORGANIZATION, after="organization_id > $3"),
)

ERASE_BLOCK: Final = 1_000

Packer = Callable[[Any], Any]
"""Makes one parameter of a column."""

ExecutionKey = tuple[str, str, str, str]
"""Organization, environment, journey, execution."""


@dataclass(slots=True)
class Execution(Identified):
    """A contact's way through a journey. `step_id`: where it stands, since `arrived_at`, or stood at its end.

    `passed`: how many steps it has behind it. `wake_at`: when it is looked at again; None: when something happens, or
    never. `awaited`: what for, and until when, if anybody knows. `overslept`: it was due while its journey was paused.
    `failures`: of the step, in a row. `hurried`: a test that leaves waits out. `place`: of its row, while it is locked.

    A move makes a new one. It is not frozen, as that would double what it costs to make one.
    """

    organization_id: str
    env: str
    journey_id: str
    id: str
    chain_id: str
    versao: int
    contact_id: str
    origem: ExecutionOrigin
    teste: bool
    hurried: bool
    entrada: Mapping[str, Any] = field(repr=False)
    started_at: datetime
    step_id: str
    arrived_at: datetime
    wake_at: datetime | None
    status: ExecutionStatus = ExecutionStatus.ATIVA
    motivo: EndReason | None = None
    passed: int = 0
    awaited: Awaited | None = None
    awaited_until: datetime | None = None
    overslept: bool = False
    failures: int = 0
    ended_at: datetime | None = None
    place: str | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def key(self) -> ExecutionKey:
        return (self.organization_id, self.env, self.journey_id, self.id)

    def due(self, now: datetime) -> bool:
        """Whether a turn is to take it."""
        return self.status is ExecutionStatus.ATIVA and self.wake_at is not None and self.wake_at <= now

    def moved_to(self, step_id: str, now: datetime) -> "Execution":
        """It comes to this step, which decides at once."""
        return self._at(step_id, now, now, passed=self.passed + 1)

    def waiting(self, what: Awaited, until: datetime | None) -> "Execution":
        """It stays in its step, and is looked at again then, or when something happens."""
        return self._at(self.step_id, self.arrived_at, until, what, until)

    def again_at(self, at: datetime) -> "Execution":
        """It is looked at again then, whatever it waits for."""
        again = self._at(self.step_id, self.arrived_at, at, self.awaited, self.awaited_until, failures=self.failures)
        again.overslept = self.overslept
        return again

    def failed(self, at: datetime, failures: int) -> "Execution":
        """Its step failed for a cause of our own, and is tried again at `at`."""
        return self._at(self.step_id, self.arrived_at, at, failures=failures)

    def put_off(self) -> "Execution":
        """It was due, but its journey is paused: it goes on with that."""
        held = self._at(self.step_id, self.arrived_at, None, Awaited.RESUME, failures=self.failures)
        held.overslept = True
        return held

    def roused(self, now: datetime) -> "Execution":
        """Its journey goes on, and it is due."""
        return self._at(self.step_id, self.arrived_at, now, failures=self.failures)

    def ended(self, reason: EndReason, now: datetime) -> "Execution":
        """It is over."""
        over = self._at(self.step_id, self.arrived_at, None, failures=self.failures)
        over.status, over.motivo, over.ended_at = EndExecution(reason).status, reason, now
        return over

    def _at(
        self,
        step_id: str,
        arrived_at: datetime,
        wake_at: datetime | None,
        awaited: Awaited | None = None,
        until: datetime | None = None,
        *,
        passed: int | None = None,
        failures: int = 0,
    ) -> "Execution":
        """One that is under way, there."""
        moved = Execution(
            self.organization_id,
            self.env,
            self.journey_id,
            self.id,
            self.chain_id,
            self.versao,
            self.contact_id,
            self.origem,
            self.teste,
            self.hurried,
            self.entrada,
            self.started_at,
            step_id,
            arrived_at,
            wake_at,
            ExecutionStatus.ATIVA,
            None,
            self.passed if passed is None else passed,
            awaited,
            until,
            False,
            failures,
        )
        moved.place = self.place
        return moved


class PassedStep(NamedTuple):
    """One line of a trail, as it is stored. `place`: on the way, from 0 on. `detail`: why a send was left out.

    `channel`: of the message. `journey_id`: whose failures it counts among, and `capped_contact_id`: whom it counts for
    toward caps of frequency; None: it does not.
    """

    organization_id: str
    execution_id: str
    step_id: str
    env: str
    kind: str
    at: datetime
    place: int
    result: str
    detail: str | None = None
    message_id: str | None = None
    channel: str | None = None
    capped_contact_id: str | None = None
    journey_id: str | None = None


@dataclass(frozen=True, slots=True)
class TrailStep:
    """A passed step, as callers see it."""

    step_id: str
    tipo: str
    at: datetime
    resultado: str
    detalhe: str | None
    message_id: str | None


class PassedBefore(Exception):
    """A step was to be passed a second time: the transaction must be undone."""


read: Final = reader(
    Execution,
    status=ExecutionStatus,
    motivo=EndReason,
    origem=ExecutionOrigin,
    awaited=Awaited,
    entrada=orjson.loads,
)
_read_step: Final = reader(TrailStep)

_ACTIVE: Final = ExecutionStatus.ATIVA.value
_STATE: Final[Mapping[str, Packer]] = {
    "status": pack, "motivo": pack_some, "step_id": pack, "arrived_at": pack_moments, "wake_at": pack_moments,
    "awaited": pack_some, "awaited_until": pack_moments, "overslept": pack_numbers, "failures": pack_numbers,
    "ended_at": pack_moments, "passed": pack_numbers,
}  # fmt: skip
"""What moves, and how many values of it travel."""

_SAVED: Final[Mapping[str, Packer]] = {"place": pack, "id": pack, **_STATE}
_BEGUN: Final[Mapping[str, Packer]] = {
    "organization_id": pack, "env": pack, "journey_id": pack, "id": pack, **_STATE, "chain_id": pack,
    "versao": pack_numbers, "contact_id": pack, "origem": pack, "teste": pack_numbers, "hurried": pack_numbers,
    "started_at": pack_moments,
}  # fmt: skip
_LINES: Final[Sequence[Packer]] = (
    pack, pack, pack, pack, pack, pack_moments, pack_numbers, list, pack_some, pack_some, pack_some, pack_some,
    pack_some,
)  # fmt: skip
"""How lines of trails travel. The name of a branch, which may be a result, holds whatever it is given."""
_PLACE: Final = attrgetter("place")
_LINE: Final = itemgetter(0, 1, 2)
_ENTERED: Final = StepCount.ENTERED.value  # a text: that of the enumeration takes three times as long to look up


class WaitingWork(NamedTuple):
    """Of what there is something to do. `pauses`: what was due in one that is over; `executions`: what is due."""

    signals: bool
    pauses: bool
    events: bool
    arrivals: bool
    executions: bool


async def waiting(executor: Executor, now: datetime) -> WaitingWork:
    """Of what there is something to do now."""
    return WaitingWork(*await executor.fetchrow(SQL.waiting, now))


async def claim_due(connection: Executor, now: datetime, *, each: int, most: int, after: str = "") -> list[Execution]:
    """Some that are due, locked: `most` in all, of organizations after `after`.

    Each has up to `each` places; where few organizations have something due, they share all places.
    """
    rows = await connection.fetch(SQL.claim_due, now, each, most, _ACTIVE, after)
    return [_locked(row) for row in rows]


async def claim(connection: Executor, key: ExecutionKey, now: datetime) -> Execution | None:
    """This one, locked, if it is due still and nobody else has it in hand."""
    row = await connection.fetchrow(SQL.claim, *key, now, _ACTIVE)
    return None if row is None else _locked(row)


def _locked(row: Mapping[str, Any]) -> Execution:
    """One whose row this transaction has locked: it is saved at its place."""
    execution = read(row)
    execution.place = row["place"]
    return execution


async def begin(connection: Executor, new: Sequence[Execution], passed: Sequence[PassedStep] = ()) -> None:
    """Store executions that begin, as they stand after what they passed already."""
    await _pass(connection, passed)
    if new:
        entered_with = pack([orjson.dumps(each.entrada).decode() if each.entrada else "{}" for each in new])
        await connection.execute(SQL.begin, *_packed(new, _BEGUN), entered_with)
        await step_counts.add(connection, counted_steps(new, passed, begun=True))
        counted = [each for each in new if not each.teste]
        moves: list[Move] = [(each.key[:3], None, each.status) for each in counted]
        await execution_counts.add(connection, moves)


async def save(connection: Executor, changed: Sequence[Execution], passed: Sequence[PassedStep]) -> None:
    """Write what became of executions that this transaction has locked while they were under way, and what they passed.

    Raises PassedBefore: what the steps did must not be done twice.
    """
    await _pass(connection, passed)
    if changed:
        if affected(await connection.execute(SQL.save, *_packed(changed, _SAVED))) != len(changed):
            raise RuntimeError("executions were to be saved that this transaction has not locked")
        await step_calls.forget(connection, _calls_over(changed, passed))
        await step_counts.add(connection, counted_steps(changed, passed))
        ended = [each for each in changed if each.status is not ExecutionStatus.ATIVA and not each.teste]
        if not ended:
            return
        await execution_counts.add(connection, [(each.key[:3], ExecutionStatus.ATIVA, each.status) for each in ended])
        # One that takes no entries is over with its last execution (C9.11.3).
        for journey in await emptied(connection, {each.key[:3] for each in ended}):
            await states.archive_emptied(connection, journey, max(each.ended_at for each in ended if each.ended_at))


def _packed(executions: Sequence[Execution], columns: Mapping[str, Packer]) -> list[Any]:
    return [packed([getattr(each, name) for each in executions]) for name, packed in columns.items()]


async def _pass(connection: Executor, passed: Sequence[PassedStep]) -> None:
    if passed:
        try:
            lines = zip(*sorted(passed, key=_LINE), strict=True)
            await connection.execute(SQL.passed, *[packed(line) for packed, line in zip(_LINES, lines, strict=True)])
        except asyncpg.UniqueViolationError:
            raise PassedBefore from None


def _calls_over(changed: Sequence[Execution], passed: Sequence[PassedStep]) -> list[StepKey]:
    """The steps whose calls are over: webhook steps that were passed, and those at which executions ended."""
    over = {
        StepKey(each.organization_id, each.execution_id, each.step_id)
        for each in passed
        if each.kind == StepKind.WEBHOOK
    }
    over |= {
        StepKey(each.organization_id, each.id, each.step_id)
        for each in changed
        if each.motivo is not None and each.motivo is not EndReason.FINISHED  # which is at a step `fim`
    }
    return list(over)


def counted_steps(changed: Sequence[Execution], passed: Sequence[PassedStep], *, begun: bool = False) -> StepChanges:
    """What these moves add to the numbers of steps; those of tests nothing (C9.10). `begun`: they have just entered."""
    ways: defaultdict[tuple[str, str], list[PassedStep]] = defaultdict(list)
    for step in passed:
        ways[step.organization_id, step.execution_id].append(step)
    found: defaultdict[JourneyKey, defaultdict[tuple[str, str], int]] = defaultdict(_numbers)
    for execution in changed:
        if execution.teste:
            continue
        way: Sequence[PassedStep] = ways.get((execution.organization_id, execution.id), ())
        if len(way) > 1:
            way = sorted(way, key=_PLACE)
        here = bool(way) and way[-1].step_id == execution.step_id
        over = execution.status is not ExecutionStatus.ATIVA
        counts = found[execution.organization_id, execution.env, execution.journey_id]
        for step in way:
            ended = over and step.step_id == execution.step_id
            counts[step.step_id, counted_result(step.kind, step.result, ended=ended)] += 1
        for step in way if begun else way[1:]:  # else to the first of them it had come before
            counts[step.step_id, _ENTERED] += 1
        if (way or begun) and not here:
            counts[execution.step_id, _ENTERED] += 1
        if over and not here:
            failed = execution.status is ExecutionStatus.ERRO
            left = counted_result("", TrailResult.ERROR, ended=True) if failed else StepCount.LEFT
            counts[execution.step_id, left] += 1
    return found


def _numbers() -> defaultdict[tuple[str, str], int]:
    return defaultdict(int)


async def emptied(executor: Executor, journeys: Collection[JourneyKey]) -> list[JourneyKey]:
    """Of these journeys those that take no entries and have no execution under way, no test either (C9.11.3)."""
    rows = await executor.fetch(SQL.emptied, *columns(sorted(journeys), 3))
    return [(row["organization_id"], row["env"], row["journey_id"]) for row in rows]


@dataclass(frozen=True, slots=True)
class HeardSignals:
    """What was heard of. `count`: 0 when nothing is left that could be done now; `after`: the last organization."""

    count: int
    after: str = ""


async def hear(connection: Executor, now: datetime, *, each: int, most: int, after: str = "") -> HeardSignals:
    """Let those be due of whom the oldest signals tell: `each` of an organization after `after`, `most` in all.

    One whose execution somebody has in hand stays: what that turn reads may be older. So does one of more than `each`
    executions, and what would make more than `most` due.
    """
    rows = await connection.fetch(SQL.signals, each, most, after)
    if not rows:
        return HeardSignals(0)
    await step_outcomes.hear(connection, rows, now)
    given = [
        (n, row["organization_id"], row["env"], row["journey_id"], row["message_id"], row["contact_id"])
        for n, row in enumerate(rows)
    ]
    found = await connection.fetch(SQL.signalled, *columns(given, 6), Awaited.SIGNAL.value, now, each, most)
    about = [(row["n"], (row["organization_id"], row["env"], row["journey_id"], row["id"])) for row in found]
    keys = sorted({key for _, key in about})
    free = [_locked(row) for row in await connection.fetch(SQL.lock_free, *columns(keys, 4))] if keys else []
    await save(connection, [execution.again_at(now) for execution in free], [])
    missed = set(keys) - {execution.key for execution in free}
    left = {n for n, key in about if key in missed}
    left |= {n for n, count in Counter(n for n, _ in about).items() if count >= each}  # there may be more
    if len(found) == most:
        left |= set(range(about[-1][0], len(rows)))
    await connection.execute(SQL.forget_signals, [row["id"] for n, row in enumerate(rows) if n not in left])
    last = rows[-1]["organization_id"] if len(rows) == most else ""
    return HeardSignals(len(free) or len(rows) - len(left), last)


async def rouse(connection: Executor, now: datetime, *, each: int, most: int) -> int:
    """Let those be due whose journey goes on after a pause, so many of each journey; answers how many there were."""
    rows = await connection.fetch(SQL.overslept, each, most, JourneyStatus.ATIVA.value)
    await save(connection, [_locked(row).roused(now) for row in rows], [])
    return len(rows)


async def lock(connection: Executor, key: ExecutionKey) -> Execution | None:
    """Whatever its state; nobody else changes it until this transaction ends."""
    row = await connection.fetchrow(SQL.lock, *key)
    if row is None:
        return None
    execution = read(row)
    execution.place = await connection.fetchval(SQL.place, *key)
    return execution


async def messages_of(executor: Executor, organization_id: str, execution_ids: Sequence[str]) -> list[str]:
    """The ids of the messages that these executions made, in order."""
    rows = await executor.fetch(SQL.messages_of, organization_id, list(execution_ids))
    return [row["message_id"] for row in rows]


async def get(executor: Executor, key: ExecutionKey) -> Execution | None:
    row = await executor.fetchrow(SQL.by_id, *key)
    return None if row is None else read(row)


async def trail(executor: Executor, organization_id: str, execution_id: str) -> list[TrailStep]:
    """The steps that it passed, in their order."""
    return [_read_step(row) for row in await executor.fetch(SQL.steps_of, organization_id, execution_id)]


async def tests_from(executor: Executor, journey: JourneyKey, first_id: str, most: int) -> int:
    """How many tests of a journey began with this id or later, counted up to `most`."""
    count: int = await executor.fetchval(SQL.tests_from, *journey, first_id, most)
    return count


async def of_contacts(executor: Executor, organization_id: str, env: str, contact_ids: Sequence[str]) -> int:
    """How many executions of these contacts are under way."""
    count: int = await executor.fetchval(SQL.of_contacts, organization_id, env, list(contact_ids))
    return count


async def erase_contact(executor: Executor, organization_id: str, env: str, contact_id: str) -> None:
    """Take out of the executions of a deleted contact what it was entered with, in blocks (C12.6)."""
    where, after = (organization_id, env), ""
    while rows := await executor.fetch(SQL.next_of_contact, *where, contact_id, after, ERASE_BLOCK):
        await executor.execute(SQL.erase, *where, *columns([(row["journey_id"], row["id"]) for row in rows], 2))
        after = rows[-1]["id"]


async def external_ids(
    executor: Executor, organization_id: str, env: str, contact_ids: Sequence[str]
) -> dict[str, str]:
    """By contact, what customers know it by; those without are missing."""
    rows = await executor.fetch(SQL.external_ids, organization_id, env, list(contact_ids))
    return {row["id"]: row["external_id"] for row in rows}
