"""What became of claimed messages, written in batches: sent, failed, back in the queue, or unknown (C15.4).

Each settlement touches the row of `dispatch` first, which is the lock of its message, and carries what belongs in the
same commit: counters, look-up rows, the sandbox's reports.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

from recado.domain.channels.policies import states_after, states_before
from recado.domain.channels.policy import Deadline
from recado.domain.messages.message import Cause, MessageEvent, MessageStatus
from recado.storage.core.connections.postgres import Database
from recado.storage.core.statements.months import ALL_MONTHS, Months
from recado.storage.core.statements.moves import Money, Moved, left
from recado.storage.core.statements.rows import (
    Executor,
    array,
    columns,
    in_order,
    pack,
    pack_moments,
    pack_numbers,
    pack_some,
)
from recado.storage.core.statements.sql import load
from recado.storage.dispatch.dispatch import SQL
from recado.storage.messages.reached_recipients import ANSWERED, any_shared

PARTS = load("departures")


def sent(*, accounts: int, following: str, answer: str, planned: str = PARTS.planned, **parts: str) -> str:
    """The statement that records departures, with these parts; `accounts`: the place of the last four parameters."""
    statement = SQL.sent.replace("{planned}", planned).replace("{following}", following).replace("{answer}", answer)
    for place, name in enumerate(("accounts", "adapters", "gateways", "waits"), accounts):
        statement = statement.replace(f"{{{name}}}", f"${place}")
    for name, part in parts.items():
        statement = statement.replace(f"{{{name}}}", part)
    return statement


SENT = sent(accounts=23, following="", answer=PARTS.moved)
SENT_FROM_SHARED = sent(accounts=23, following=",\n" + ANSWERED, answer=PARTS.moved)
"""Where some have a sender that organizations share."""

_RETURNABLE = states_before(MessageEvent.RETURN_TO_QUEUE)
# A report, of a failure too, may have been faster than the answer to the call: the departure is recorded then as well.
# What a caller has put away since stays as it is.
_DEPARTED = [
    *states_before(MessageEvent.ACCEPTED),
    *(state for state in states_after(MessageStatus.SENT) if state != MessageStatus.ARCHIVED),
]
_FAILABLE = [MessageStatus.QUEUED, MessageStatus.SENDING]

Ended = TypeVar("Ended", "Departed", "Failed")
Unsettled = TypeVar("Unsettled", "Returned", "Uncertain")


@dataclass(frozen=True, slots=True)
class PlannedReport:
    """A report that the sandbox will make (C29.4). `event`: its JSON text."""

    step: int
    due_at: datetime
    event: str


@dataclass(frozen=True, slots=True)
class Capture:
    """What a departure captures when that is less than its message holds: coins, and what they count as."""

    coins: int
    units: int
    price_kind: str | None


class LookUps(NamedTuple):
    """What finds a message by the id that its provider names it by, alone: the provider's (`theirs`), or ours.

    `account`, `adapter`: of its send.
    """

    account: str
    adapter: str
    theirs: bool
    ours: bool


@dataclass(slots=True, eq=False)
class Departed:
    """The provider accepted the message; `sent_at` is the moment of its departure.

    `look_ups` None: whatever names it tells whose it is.
    `capture` None: all that it holds is captured. The rest is released, unless one of its `deadlines` holds it.
    `adjusted`: of one that had left before by another way, what is charged besides (C25.2); else None.
    `gateway`: what it left through, where senders share it.
    `waits`: milliseconds by reason, as JSON, of what it waited for (C34.4).
    `totaled`: it may belong to a batch or a campaign, whose totals follow.
    """

    organization_id: str
    env: str
    channel: str
    id: str
    sender_id: str
    provider_message_id: str
    sent_at: datetime
    template_category: str | None
    look_ups: LookUps | None
    settled_at: datetime
    planned: tuple[PlannedReport, ...] = ()
    deadlines: Sequence[Deadline] = ()
    capture: Capture | None = None
    gateway: str | None = None
    waits: str | None = None
    adjusted: int | None = None
    totaled: bool = True


@dataclass(frozen=True, slots=True)
class Failed:
    """The message is not sent and will not be. `queued`: it fails before its call.

    What waits for its repeat may have left: in the queue it does not fail, but becomes uncertain. `called_at`: when the
    last call began, of a message whose outcome stayed unknown; a report that still comes makes it `sentAt`.
    `sender_id`: for the figures of its sender, where it is at hand.
    """

    organization_id: str
    env: str
    channel: str
    id: str
    cause: Cause
    failed_at: datetime
    queued: bool
    called_at: datetime | None = None
    sender_id: str | None = None


@dataclass(frozen=True, slots=True)
class Returned:
    """The message goes back to the queue, unspent when the attempt does not count (C29.2).

    `claimed_at`: the moment of the claim that ends. A later claim of the same message is left alone. `repeat_of`: that
    of its call, when the outcome is unknown and it is given to the provider again: so long the message stays `sending`.
    """

    organization_id: str
    env: str
    channel: str
    id: str
    claimed_at: datetime | None
    not_before: datetime | None
    reason: str | None
    last_error: str | None
    unspent: bool
    returned_at: datetime
    repeat_of: datetime | None = None


@dataclass(frozen=True, slots=True)
class Onward:
    """The message goes on by another way of its channel, as its provider refused it: it is queued for that sender.

    `claimed_at`: of the claim that ends; `details`: JSON text of what changes in its own.
    """

    organization_id: str
    env: str
    channel: str
    id: str
    claimed_at: datetime | None
    sender_id: str
    details: str
    units: int
    at: datetime


@dataclass(frozen=True, slots=True)
class Uncertain:
    """The outcome of the call that began at `departed_at` is unknown."""

    organization_id: str
    id: str
    sender_id: str
    departed_at: datetime
    planned: tuple[PlannedReport, ...] = ()


async def departed(executor: Executor, rows: Sequence[Departed], *, months: Months = ALL_MONTHS) -> Iterator[Moved]:
    """sending → sent, with the departure and the counters of its minute; answers what this moved, for anyone who asks.

    What a report had settled before is not among them.
    """

    async def run(some: Sequence[Departed]) -> list[Mapping[str, Any]]:
        ids, arguments = [row.id for row in some], [*columns_of(some), None, *captures_of(some), *look_ups_of(some)]
        return await months.fetch(executor, SENT_FROM_SHARED if any_shared(some) else SENT, ids, *arguments)

    return (_departed(row, record) for row, record in await _twice(rows, run))


async def failed(executor: Executor, rows: Sequence[Failed], *, months: Months = ALL_MONTHS) -> list[Moved]:
    """queued or sending → failed; answers what this moved."""

    async def run(some: Sequence[Failed]) -> list[Mapping[str, Any]]:
        arguments = columns(
            [
                (row.organization_id, row.env, row.channel, row.id, row.cause.last_error, row.failed_at, row.queued)
                for row in some
            ],
            7,
        )
        calls = array([row.called_at for row in some])
        causes = ([row.cause.code for row in some], [row.cause.certain for row in some])
        return await months.fetch(executor, SQL.failed, arguments[3], *arguments, _FAILABLE, calls, *causes)

    return [
        left(
            record,
            row.env,
            row.channel,
            MessageStatus.QUEUED.value if row.queued else MessageStatus.SENDING.value,
            MessageStatus.FAILED.value,
        )
        for row, record in await _twice(rows, run)
    ]


async def returned(executor: Executor, rows: Sequence[Returned], epoch: int, *, months: Months = ALL_MONTHS) -> None:
    """sending → queued, for rows that the owner of this epoch claimed; what may have left stays `sending`."""

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
                    row.claimed_at,
                    row.repeat_of,
                )
                for row in some
            ],
            10,
        )
        returned_at = max(row.returned_at for row in some)
        return await months.fetch(
            executor, SQL.returned, arguments[3], *arguments[:9], epoch, returned_at, _RETURNABLE, arguments[9]
        )

    await _settle(rows, run)


async def onward(executor: Executor, rows: Sequence[Onward], epoch: int, *, months: Months = ALL_MONTHS) -> list[str]:
    """Queue what the owner of this epoch claimed for another sender; answers the ids of those that are."""
    ordered = sorted(rows, key=in_order)
    keys = [(row.organization_id, row.env, row.channel, row.id) for row in ordered]
    ways = [(row.claimed_at, row.sender_id, row.details, row.units, row.at) for row in ordered]
    found = await months.fetch(
        executor, SQL.onward, [row.id for row in ordered], *columns(keys, 4), *columns(ways, 5), epoch
    )
    return [row["id"] for row in found]


async def uncertain(db: Database, rows: Sequence[Uncertain]) -> None:
    """Mark calls of unknown outcome: they stay `sending`."""

    async def run(some: Sequence[Uncertain]) -> list[Mapping[str, Any]]:
        organization_ids, ids, moments = columns([(row.organization_id, row.id, row.departed_at) for row in some], 3)
        return await _rows(db.hot, SQL.uncertain, organization_ids, ids, *_planned(some), moments)

    await _settle(rows, run)


async def _twice(
    rows: Sequence[Ended], run: Callable[[Sequence[Ended]], Awaitable[list[Mapping[str, Any]]]]
) -> list[tuple[Ended, Mapping[str, Any]]]:
    """Settle a batch, and once more what it did not: a row that another statement was changing at the same moment.

    Answers what left the queue. The rest is settled already, by a report that was faster.
    """
    by_id = {row.id: row for row in rows}
    ordered = sorted(rows, key=in_order)
    settled: list[Mapping[str, Any]] = await run(ordered)
    if len(settled) < len(by_id):
        done = {record["id"] for record in settled}
        settled = settled + await run([row for row in ordered if row.id not in done])
    return [(by_id[record["id"]], record) for record in settled]


async def _settle(
    rows: Sequence[Unsettled], run: Callable[[Sequence[Unsettled]], Awaitable[list[Mapping[str, Any]]]]
) -> None:
    """As `_twice`, for statements that answer the rows that they left."""
    ordered = sorted(rows, key=in_order)
    left_alone = {record["id"] for record in await run(ordered)}
    if left_alone:
        await run([row for row in ordered if row.id in left_alone])


async def _rows(executor: Executor, statement: str, *arguments: Any) -> list[Mapping[str, Any]]:
    rows: list[Mapping[str, Any]] = await executor.fetch(statement, *arguments)
    return rows


def columns_of(rows: Sequence[Departed]) -> list[Any]:
    """The first 17 parameters of `sent`."""
    return [
        pack([row.organization_id for row in rows]),
        pack([row.env for row in rows]),
        pack([row.channel for row in rows]),
        pack([row.id for row in rows]),
        pack([row.sender_id for row in rows]),
        [row.provider_message_id for row in rows],
        pack_moments([row.sent_at for row in rows]),
        pack([row.template_category for row in rows]),
        pack_numbers([0 if row.look_ups is None else row.look_ups.theirs + 2 * row.look_ups.ours for row in rows]),
        max(row.settled_at for row in rows),
        _DEPARTED,
        *_planned(rows),
    ]


def captures_of(rows: Sequence[Departed]) -> list[str | None]:
    """The parameters 19 to 22 of `sent`; nothing where all capture what they hold."""
    captures = [row.capture for row in rows]
    if captures.count(None) == len(captures):
        return [None] * 4
    return [
        pack([None if each is None else str(each.coins) for each in captures]),
        pack([None if each is None else str(each.units) for each in captures]),
        pack([None if each is None else each.price_kind for each in captures]),
        pack_numbers([int(any(each.holds_rest for each in row.deadlines)) for row in rows]),
    ]


def _departed(row: Departed, record: Mapping[str, Any]) -> Moved:
    moved = left(record, row.env, row.channel, MessageStatus.SENDING.value, MessageStatus.SENT.value)
    if row.capture is not None:
        moved.money = Money(captured=record["captured"], kept=record["kept"], adjusted=row.adjusted or 0)
    return moved


def look_ups_of(rows: Sequence[Departed]) -> list[str | None]:
    """The last four parameters of `sent`: accounts, adapters, gateways and waits."""
    return [
        pack_some([None if row.look_ups is None else row.look_ups.account for row in rows]),
        pack_some([None if row.look_ups is None else row.look_ups.adapter for row in rows]),
        pack_some([row.gateway for row in rows]),
        pack_some([row.waits for row in rows]),
    ]


def _planned(rows: Sequence[Departed] | Sequence[Uncertain]) -> list[str]:
    reports = [(row, report) for row in rows for report in row.planned]
    return [
        pack([row.organization_id for row, _ in reports]),
        pack([row.id for row, _ in reports]),
        pack_numbers([report.step for _, report in reports]),
        pack_moments([report.due_at for _, report in reports]),
        pack([row.sender_id for row, _ in reports]),
        pack([report.event for _, report in reports]),
    ]
