"""The calls of webhook steps as rows (C9.13): who wants one, who makes it, and what the last one came to.

Whoever makes a call claims its row before, and says what came of it in the commit that lets the execution go on. A
claim that nobody will answer for is released: the call is made once more, and its receiver sees the same key.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple

from recado.domain.contacts.consent import ConsentStatus
from recado.domain.journeys.journey import JourneyStatus
from recado.domain.journeys.webhook_calls import LastCall
from recado.domain.webhooks.webhook import SubscriptionKey
from recado.storage.core.statements.rows import Executor, affected, columns, reader
from recado.storage.core.statements.sql import load
from recado.storage.webhooks.webhooks import QUEUES

SQL: Final = load("step_calls")

RELEASED_AT_ONCE: Final = 1_000
_CALLED: Final = frozenset(status.value for status in QUEUES)
"""The states of subscriptions that are called; their deliveries are made in the same."""


class StepKey(NamedTuple):
    """A step of an execution."""

    organization_id: str
    execution_id: str
    step_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedCall:
    """A call that is to be made. `event_id`, `delivery_id`: for the first attempt; the later ones keep them."""

    organization_id: str
    env: str
    journey_id: str
    execution_id: str
    step_id: str
    webhook_id: str
    event_id: str
    delivery_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedCall(WantedCall):
    """A call that is under way since `claimed_at`. `made`: calls of the step that have ended before."""

    claimed_at: datetime
    made: int

    @property
    def key(self) -> StepKey:
        return StepKey(self.organization_id, self.execution_id, self.step_id)


@dataclass(frozen=True, slots=True)
class CallResult:
    """What became of a claimed call. `called`: it was made; `status`: of the answer, None: there was none.

    `refused`: its address may not be called. Neither: its execution decides once more.
    """

    call: ClaimedCall
    ended_at: datetime
    called: bool = False
    status: int | None = None
    refused: bool = False


@dataclass(frozen=True, slots=True)
class ToldCall:
    """What a call tells, and by what it is made or not. `entry`: JSON."""

    contact_id: str
    entry: str = field(repr=False)
    teste: bool
    journey_name: str
    versao: int
    journey_status: JourneyStatus
    contact_known: bool
    external_id: str | None
    opt_in_status: ConsentStatus | None


_read_claimed: Final = reader(ClaimedCall)


async def want(connection: Executor, calls: Sequence[WantedCall], now: datetime) -> None:
    """A call of each of these steps is to be made, unless one is already."""
    rows = [
        (
            each.organization_id, each.env, each.journey_id, each.execution_id, each.step_id, each.webhook_id,
            each.event_id, each.delivery_id,
        )
        for each in calls
    ]  # fmt: skip
    await connection.execute(SQL.want, *columns(rows, 8), now)


async def facts_of(
    executor: Executor, asked: Sequence[tuple[str, str, str, str, str]]
) -> list[tuple[LastCall | None, bool]]:
    """Of (organization, environment, execution, step, subscription) each: the last call, and whether one may be made.

    What is under way may be made: it is.
    """
    if not asked:
        return []
    rows = await executor.fetch(SQL.facts, *columns([(n, *each) for n, each in enumerate(asked)], 6))
    found: list[tuple[LastCall | None, bool]] = [(None, False)] * len(asked)
    for row in rows:
        last = LastCall(row["made"], row["status"], row["ended_at"]) if row["made"] else None
        callable_now = row["under_way"] or (not row["refused"] and row["subscription"] in _CALLED)
        found[row["n"]] = (last, callable_now)
    return found


async def waiting(executor: Executor, after: SubscriptionKey, most: int) -> list[SubscriptionKey]:
    """The next subscriptions after one of which calls are to be made."""
    rows = await executor.fetch(SQL.waiting, *after, most)
    return [SubscriptionKey(row["organization_id"], row["webhook_id"]) for row in rows]


async def claim(executor: Executor, rooms: Mapping[SubscriptionKey, int], now: datetime) -> list[ClaimedCall]:
    """As many calls of each subscription: they are under way from now on."""
    rows = [(*key, room) for key, room in rooms.items()]
    return [_read_claimed(row) for row in await executor.fetch(SQL.claim, *columns(rows, 3), now)]


async def release(executor: Executor, before: datetime | None) -> int:
    """Let calls be made once more that were claimed before a moment, or all of them; answers how many."""
    total = 0
    while True:
        found = affected(await executor.execute(SQL.release, before, RELEASED_AT_ONCE))
        total += found
        if found < RELEASED_AT_ONCE:
            return total


async def told(executor: Executor, calls: Sequence[ClaimedCall]) -> list[ToldCall | None]:
    """What each tells; None where its execution is over, or stands elsewhere."""
    rows = [
        (n, each.organization_id, each.env, each.journey_id, each.execution_id, each.step_id)
        for n, each in enumerate(calls)
    ]
    found: list[ToldCall | None] = [None] * len(calls)
    for row in await executor.fetch(SQL.told, *columns(rows, 6)):
        if row["contact_id"] is None or row["journey_name"] is None:
            continue
        consent = row["opt_in_status"]
        found[row["n"]] = ToldCall(
            contact_id=row["contact_id"],
            entry=row["entrada"],
            teste=row["teste"],
            journey_name=row["journey_name"],
            versao=row["versao"],
            journey_status=JourneyStatus(row["journey_status"]),
            contact_known=row["contact_known"],
            external_id=row["external_id"],
            opt_in_status=None if consent is None else ConsentStatus(consent),
        )
    return found


async def settle(connection: Executor, results: Sequence[CallResult], now: datetime) -> int:
    """Write what calls came to, and let their executions be due; answers how many.

    Where another has claimed the call since then, that one tells. Safe to run twice.
    """
    ordered = sorted(results, key=lambda result: result.call.key)
    keys = [
        (call.organization_id, call.env, call.journey_id, call.execution_id, call.step_id)
        for call in (result.call for result in ordered)
    ]
    held = {(row["organization_id"], row["id"]) for row in await connection.fetch(SQL.hold, *columns(keys, 5))}
    standing = [each for each in ordered if each.call.key[:2] in held]
    await forget(connection, [each.call.key for each in ordered if each.call.key[:2] not in held])
    if not standing:
        return 0
    rows = [
        (*each.call.key, each.call.claimed_at, each.called, each.status, each.ended_at, each.refused)
        for each in standing
    ]
    settled = await connection.fetch(SQL.settle, *columns(rows, 8))
    if settled:
        await connection.execute(SQL.wake, *columns([tuple(row) for row in settled], 4), now)
    return len(settled)


async def forget(connection: Executor, keys: Sequence[StepKey]) -> None:
    """These steps are passed, or their executions over."""
    if keys:
        await connection.execute(SQL.forget, *columns(sorted(keys), 3))
