"""The queue: claims, their settlement, holds and releases, each one statement for many rows.

A row of `dispatch` is the lock of its message: every move of a queued or sending message touches it first. All moves
are guarded by the states that they may leave (C15.4); rows that another was faster with are left out of the answer.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

from recado.domain.message import MESSAGE_MACHINE, MessageEvent, MessageStatus
from recado.storage.numbers import NumberKey
from recado.storage.postgres import Database
from recado.storage.rows import Executor, affected, columns, pack, pack_moments, pack_numbers
from recado.storage.sql import load

SQL = load("dispatch")

_CLAIMABLE = list(MESSAGE_MACHINE.sources(MessageEvent.CLAIM))
_RETURNABLE = list(MESSAGE_MACHINE.sources(MessageEvent.RETURN_TO_QUEUE))
# A report may have been faster than the answer to the call: the departure is recorded then too.
_DEPARTED = [MessageStatus.SENDING, MessageStatus.SENT, MessageStatus.DELIVERED, MessageStatus.READ]
_FAILABLE = [MessageStatus.QUEUED, MessageStatus.SENDING]

BLOCK = 1_000

Settled = TypeVar("Settled", "Departed", "Failed", "Returned", "Uncertain")


@dataclass(slots=True, eq=False)
class Claim:
    """A row about to be claimed. `at`: when that was decided, which tells this claim of the row from every other."""

    organization_id: str
    id: str
    recipient_hash: int
    free_form: bool
    at: datetime


@dataclass(frozen=True, slots=True)
class PlannedReport:
    """A report that the sandbox will make (C29.4). `event`: its JSON text."""

    step: int
    due_at: datetime
    event: str


@dataclass(slots=True, eq=False)
class Departed:
    """The provider accepted the message; `sent_at` is the moment of its departure."""

    organization_id: str
    env: str
    channel: str
    id: str
    number_id: str
    provider_message_id: str
    sent_at: datetime
    template_category: str | None
    needs_lookup: bool
    settled_at: datetime
    planned: tuple[PlannedReport, ...] = ()


@dataclass(frozen=True, slots=True)
class Failed:
    """The message is not sent and will not be. `last_error`: `<code>: <text>`; `queued`: it fails before its call."""

    organization_id: str
    env: str
    channel: str
    id: str
    last_error: str
    failed_at: datetime
    queued: bool


@dataclass(frozen=True, slots=True)
class Returned:
    """The message goes back to the queue, unspent when the attempt does not count (C29.2)."""

    organization_id: str
    env: str
    channel: str
    id: str
    not_before: datetime | None
    reason: str | None
    last_error: str | None
    unspent: bool
    returned_at: datetime


@dataclass(frozen=True, slots=True)
class Uncertain:
    """The outcome of the call is unknown."""

    organization_id: str
    id: str
    number_id: str
    planned: tuple[PlannedReport, ...] = ()


@dataclass(frozen=True, slots=True)
class Held:
    """A gate of the message's own holds it back."""

    organization_id: str
    id: str
    not_before: datetime
    reason: str


CLAIMED, LOST, WINDOW_CLOSED = "claimed", "lost", "window_closed"


async def take_epoch(db: Executor, now: datetime) -> int:
    """Become the one process that may claim; earlier owners can claim nothing from now on."""
    epoch: int = await db.fetchval(SQL.take_epoch, now)
    return epoch


async def current_epoch(executor: Executor) -> int:
    """The epoch of the process that owns the numbers now."""
    epoch: int = await executor.fetchval(SQL.current_epoch)
    return epoch


async def claim(db: Database, rows: Sequence[Claim], epoch: int, now: datetime) -> list[str]:
    """queued → sending for the rows that are still to be had: `claimed`, `lost` or `window_closed` for each."""
    arguments = (
        pack([row.organization_id for row in rows]),
        pack([row.id for row in rows]),
        pack_numbers([row.recipient_hash for row in rows]),
        pack_numbers([int(row.free_form) for row in rows]),
        pack_moments([row.at for row in rows]),
    )
    left = {
        record["id"]: WINDOW_CLOSED if record["window_closed"] else LOST
        for record in await db.hot.fetch(SQL.claim, *arguments, epoch, now, _CLAIMABLE)
    }
    return [left.get(row.id, CLAIMED) for row in rows] if left else [CLAIMED] * len(rows)


async def departed(executor: Executor, rows: Sequence[Departed]) -> set[str]:
    """sending → sent, with the departure and the counters of its minute; answers the ids that another had settled."""

    async def run(some: Sequence[Departed]) -> list[Mapping[str, Any]]:
        return await _left(
            executor,
            SQL.sent,
            pack([row.organization_id for row in some]),
            pack([row.env for row in some]),
            pack([row.channel for row in some]),
            pack([row.id for row in some]),
            pack([row.number_id for row in some]),
            [row.provider_message_id for row in some],
            pack_moments([row.sent_at for row in some]),
            pack([row.template_category for row in some]),
            pack_numbers([int(row.needs_lookup) for row in some]),
            some[-1].settled_at,
            _DEPARTED,
            *_planned(some),
        )

    return await _settle(rows, run)


async def failed(executor: Executor, rows: Sequence[Failed]) -> set[str]:
    """queued or sending → failed; answers the ids that another had settled."""

    async def run(some: Sequence[Failed]) -> list[Mapping[str, Any]]:
        arguments = columns(
            [
                (row.organization_id, row.env, row.channel, row.id, row.last_error, row.failed_at, row.queued)
                for row in some
            ],
            7,
        )
        return await _left(executor, SQL.failed, *arguments, _FAILABLE)

    return await _settle(rows, run)


async def returned(db: Database, rows: Sequence[Returned], epoch: int) -> None:
    """sending → queued, for rows that this process claimed."""

    async def run(some: Sequence[Returned]) -> list[Mapping[str, Any]]:
        arguments = columns(
            [
                (
                    row.organization_id,
                    row.env,
                    row.channel,
                    row.id,
                    row.not_before,
                    row.reason,
                    row.last_error,
                    row.unspent,
                )
                for row in some
            ],
            8,
        )
        return await _left(db.hot, SQL.returned, *arguments, epoch, some[-1].returned_at, _RETURNABLE)

    await _settle(rows, run)


async def uncertain(db: Database, rows: Sequence[Uncertain]) -> None:
    """Mark calls of unknown outcome: they stay `sending`."""

    async def run(some: Sequence[Uncertain]) -> list[Mapping[str, Any]]:
        arguments = columns([(row.organization_id, row.id) for row in some], 2)
        return await _left(db.hot, SQL.uncertain, *arguments, *_planned(some))

    await _settle(rows, run)


async def hold(db: Database, rows: Sequence[Held]) -> None:
    """Take rows out of the ready index until their moment comes."""
    arguments = columns([(row.organization_id, row.id, row.not_before, row.reason) for row in rows], 4)
    await db.hot.fetch(SQL.hold, *arguments)


async def hold_template(db: Database, organization_id: str, number_id: str, template_id: str) -> int:
    """Hold one block of the ready rows that wait for this template; answers how many."""
    return len(await db.fetch(SQL.hold_template, organization_id, number_id, template_id, BLOCK))


async def release(
    executor: Executor, organization_id: str, number_id: str, reason: str, template_id: str | None = None
) -> int:
    """Make one block of the rows that wait for this reason ready again; answers how many."""
    return len(await executor.fetch(SQL.release, organization_id, number_id, reason, template_id, BLOCK))


async def release_due(executor: Executor, now: datetime) -> list[NumberKey]:
    """Make one block of the rows whose moment has come ready; answers the number of each."""
    return [_number(row) for row in await executor.fetch(SQL.release_due, now, BLOCK)]


async def ready_numbers(executor: Executor) -> list[NumberKey]:
    """Every number with a row ready."""
    return [_number(row) for row in await executor.fetch(SQL.ready_numbers)]


async def refill(
    executor: Executor, organization_id: str, number_id: str, klass: int, after_owner: str, limit: int
) -> list[Mapping[str, Any]]:
    """The next ready rows of a class, by owner, due time and id."""
    rows: list[Mapping[str, Any]] = await executor.fetch(
        SQL.refill, organization_id, number_id, klass, after_owner, limit
    )
    return rows


async def forced(executor: Executor, organization_id: str, number_id: str) -> list[Mapping[str, Any]]:
    """Ready rows that a caller forced."""
    rows: list[Mapping[str, Any]] = await executor.fetch(SQL.forced, organization_id, number_id, BLOCK)
    return rows


async def rescue(executor: Executor, epoch: int, claimed_before: datetime) -> int:
    """Mark uncertain what an older epoch, or a call that never came back, left `sending`; answers how many."""
    return len(await executor.fetch(SQL.rescue, epoch, claimed_before))


async def to_give_up(executor: Executor, claimed_before: datetime) -> list[Mapping[str, Any]]:
    """One block of messages whose outcome stayed unknown too long."""
    rows: list[Mapping[str, Any]] = await executor.fetch(SQL.give_up, claimed_before, BLOCK)
    return rows


async def expiring(executor: Executor, now: datetime) -> list[Mapping[str, Any]]:
    """One block of rows whose time to live may have run out."""
    rows: list[Mapping[str, Any]] = await executor.fetch(SQL.expiring, now, BLOCK)
    return rows


async def prolong(executor: Executor, rows: Sequence[tuple[str, str, datetime]]) -> int:
    """Move the expiry of (organization, id, expiry)."""
    return affected(await executor.execute(SQL.prolong, *columns(rows, 3)))


async def crashed(executor: Executor, organization_id: str, message_id: str) -> Mapping[str, Any] | None:
    """Count a failure of the actor with this row in hand; `crashes`, `env`, `channel`."""
    row: Mapping[str, Any] | None = await executor.fetchrow(SQL.crashed, organization_id, message_id)
    return row


async def state(executor: Executor, organization_id: str, message_id: str) -> Mapping[str, Any] | None:
    """The row of a queued or sending message."""
    row: Mapping[str, Any] | None = await executor.fetchrow(SQL.state, organization_id, message_id)
    return row


async def ahead(
    executor: Executor, organization_id: str, number_id: str, klass: int, due_at: datetime, message_id: str
) -> int:
    """Ready rows of the class before this one, counted up to 10,001."""
    count: int = await executor.fetchval(SQL.ahead, organization_id, number_id, klass, due_at, message_id, 10_001)
    return count


async def uncertain_of_number(
    executor: Executor, organization_id: str, number_id: str, since: datetime
) -> list[datetime]:
    """When the messages of the number whose outcome is unknown were claimed, since then."""
    rows = await executor.fetch(SQL.uncertain_of_number, organization_id, number_id, since)
    return [row["claimed_at"] for row in rows]


async def day_minutes(
    executor: Executor, organization_id: str, number_id: str, now: datetime
) -> list[tuple[datetime, int]]:
    """(minute, sent) of the last 24 hours."""
    rows = await executor.fetch(SQL.day_minutes, organization_id, number_id, now - timedelta(hours=24, minutes=1))
    return [(row["minute"], row["sent"]) for row in rows]


async def tier_recipients(
    executor: Executor, organization_id: str, number_id: str, now: datetime
) -> list[tuple[int, datetime]]:
    """(recipient hash, last business-initiated message) of the last 24 hours, oldest first."""
    rows = await executor.fetch(SQL.tier_recipients, organization_id, number_id, now - timedelta(hours=24))
    return [(row["recipient_hash"], row["last_at"]) for row in rows]


async def _settle(
    rows: Sequence[Settled], run: Callable[[Sequence[Settled]], Awaitable[list[Mapping[str, Any]]]]
) -> set[str]:
    """Settle a batch, and once more what it left: a row that another statement was changing at the same moment.

    What is left then is settled already, by a report that was faster: its ids are the answer.
    """
    left = {record["id"] for record in await run(rows)}
    if left:
        left = {record["id"] for record in await run([row for row in rows if row.id in left])}
    return left


async def _left(executor: Executor, statement: str, *arguments: Any) -> list[Mapping[str, Any]]:
    rows: list[Mapping[str, Any]] = await executor.fetch(statement, *arguments)
    return rows


def _number(row: Mapping[str, Any]) -> NumberKey:
    return (row["organization_id"], row["env"], row["number_id"])


def _planned(rows: Sequence[Departed] | Sequence[Uncertain]) -> list[str]:
    reports = [(row, report) for row in rows for report in row.planned]
    return [
        pack([row.organization_id for row, _ in reports]),
        pack([row.id for row, _ in reports]),
        pack_numbers([report.step for _, report in reports]),
        pack_moments([report.due_at for _, report in reports]),
        pack([row.number_id for row, _ in reports]),
        pack([report.event for _, report in reports]),
    ]
