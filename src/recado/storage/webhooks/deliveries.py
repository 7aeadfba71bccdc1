"""Deliveries: the queue of those that are open, the log of those that are settled, and both as one list (C23.3).

Nothing is claimed: the one actor of a subscription keeps in mind which deliveries it has in hand. When its process dies
they are still in the queue, and are made once more: at least once.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from recado.domain.core.ids import DELIVERY, EVENT, MESSAGE, Identified, created_at, lowest_id
from recado.domain.webhooks.webhook import MAX_AGE, SubscriptionKey
from recado.storage.core.connections.read_limit import in_time
from recado.storage.core.statements.months import ALL_MONTHS, Months
from recado.storage.core.statements.rows import Executor, array, in_blocks, pack, pack_moments, pack_numbers, reader
from recado.storage.core.statements.sql import load
from recado.storage.webhooks.events import FIRST_WITHIN, KEPT, PURGE_BLOCK, of_message

SQL = load("deliveries")

PENDING, DELIVERED, DROPPED = "pending", "delivered", "dropped"
BLOCK = 1_000


@dataclass(slots=True)  # not frozen: thousands a second are made, and a frozen one takes three times as long
class Told:
    """An event and the message that it is about, as the rows have them now. JSON columns are texts, but `details`."""

    event_id: str
    env: str
    type: str
    channel: str | None
    message_id: str | None
    data: str | None
    test: bool
    direction: str | None
    message_type: str | None
    recipient: str | None
    sender_id: str | None
    contact_id: str | None
    contact_external_id: str | None
    campaign_id: str | None
    template_id: str | None
    batch_id: str | None
    metadata: str | None
    provider_message_id: str | None
    scheduled_at: datetime | None
    sent_at: datetime | None
    delivered_at: datetime | None
    read_at: datetime | None
    failed_at: datetime | None
    message_attempts: int | None
    message_error: str | None
    payload: str | None
    details: Mapping[str, Any] | None = None
    units: int | None = None
    failure_code: str | None = None


@dataclass(slots=True, eq=False)
class Due:
    """A delivery to be made. `attempts`: those made before."""

    id: str
    attempts: int
    told: Told


@dataclass(slots=True, eq=False)
class Result:
    """What became of an attempt. `outcome` None: tried again at `due_at`. `attempt`: its JSON, for the history."""

    key: SubscriptionKey
    id: str
    attempts: int  # before this one
    outcome: str | None
    at: datetime
    status: int | None
    error: str | None
    attempt: str
    due_at: datetime | None


@dataclass(frozen=True, slots=True)
class Delivery(Identified):
    """A delivery as lists show it. `history`: one object for each attempt; `message_id`: what its event tells of."""

    id: str
    event_id: str
    event: str
    status: str
    attempts: int
    last_status: int | None
    last_error: str | None
    next_attempt_at: datetime | None
    settled_at: datetime | None
    history: Sequence[Mapping[str, Any]]
    message_id: str | None


DUE, DUE_OF, TOLD = (SQL.telling.replace("{found}", found) for found in (SQL.due, SQL.due_of, SQL.never_queued))

OF_QUEUE, OF_LOG = (SQL.of_event.replace("{deliveries}", table) for table in ("delivery_queue", "deliveries"))
PAGE_OF_EVENTS = SQL.page_of_events.replace("{of_queue}", OF_QUEUE).replace("{of_log}", OF_LOG)
DROP_OLD, DROP_UNTOLD = (SQL.drop.replace("{id}", which) for which in ("id", "event_id"))

read_told = reader(Told)
read = reader(Delivery)


async def due(
    executor: Executor,
    key: SubscriptionKey,
    at: datetime,
    in_hand: Collection[str],
    limit: int,
    months: Months = ALL_MONTHS,
) -> tuple[list[Due], bool]:
    """The next deliveries due at `at` beside those in hand, and whether there may be more."""
    reach = limit + len(in_hand)
    rows = await _told_in(months, executor, DUE, key, at, reach, list(in_hand))
    return [_due(row) for row in rows], len(rows) >= limit


async def due_of(
    executor: Executor, key: SubscriptionKey, at: datetime, ids: Sequence[str], months: Months = ALL_MONTHS
) -> list[Due]:
    """Those of these deliveries that are in the queue and due at `at`."""
    return [_due(row) for row in await _told_in(months, executor, DUE_OF, key, at, pack(ids))]


async def _told_in(
    months: Months, executor: Executor, statement: str, key: SubscriptionKey, at: datetime, *arguments: object
) -> Sequence[Mapping[str, Any]]:
    """Deliveries with what they tell.

    Most tell of messages of the month of `at`, whose table alone is opened; the rest are read once more.
    """
    this_month = [lowest_id(MESSAGE, at)]
    whole = months.table(this_month) is None
    rows = await months.fetch(executor, statement, this_month, *key, at, *arguments)
    if whole:
        return rows
    missed = [row["id"] for row in rows if row["message_id"] is not None and row["direction"] is None]
    if not missed:
        return rows
    found = {row["id"]: row for row in await executor.fetch(DUE_OF, *key, at, pack(missed))}
    gone = set(missed).difference(found)  # out of the queue since, as a move takes it: of these only half is known
    return [found.get(row["id"], row) for row in rows if row["id"] not in gone]


def _due(row: Mapping[str, Any]) -> Due:
    return Due(row["id"], row["attempts"], read_told(row))


async def waiting(executor: Executor, now: datetime) -> list[SubscriptionKey]:
    """The subscriptions whose actors have something to do now."""
    rows = await executor.fetch(SQL.waiting, now, now - MAX_AGE)
    return [SubscriptionKey(row["organization_id"], row["subscription_id"]) for row in rows]


async def settle(executor: Executor, results: Sequence[Result]) -> None:
    """Write the results of attempts; running it twice changes nothing more."""
    await executor.execute(
        SQL.settle,
        pack([result.key.organization_id for result in results]),
        pack([result.key.subscription_id for result in results]),
        pack([result.id for result in results]),
        pack([result.outcome for result in results]),
        pack_moments([result.at for result in results]),
        pack([None if result.status is None else str(result.status) for result in results]),
        array([result.error for result in results]),
        pack([result.attempt for result in results]),
        pack_moments([result.due_at for result in results]),
        pack_numbers([result.attempts for result in results]),
    )


async def drop_all(executor: Executor, key: SubscriptionKey, now: datetime, reason: str, *, before: datetime) -> None:
    """Give up the pending deliveries that were made before a moment, in blocks."""
    before_id = lowest_id(DELIVERY, before)
    await in_blocks(executor, DROP_OLD, *key, before_id, now, reason, block=BLOCK)


async def drop_untold(executor: Executor, key: SubscriptionKey, now: datetime) -> None:
    """Give up the pending deliveries of events older than 30 days, which were replayed late: nothing could be told."""
    before_id = lowest_id(EVENT, now - KEPT)
    await in_blocks(executor, DROP_UNTOLD, *key, before_id, now, "its event is past its time", block=BLOCK)


async def insert_settled(
    executor: Executor, key: SubscriptionKey, told: Told, result: Result, history: Sequence[Mapping[str, Any]]
) -> None:
    """Log a delivery that was made outside the queue."""
    await executor.execute(
        SQL.insert_settled,
        *key,
        result.id,
        told.event_id,
        told.type,
        result.outcome,
        result.at,
        result.status,
        result.error,
        list(history),
    )


async def list_page(
    executor: Executor,
    key: SubscriptionKey,
    now: datetime,
    *,
    status: str | None = None,
    event: str | None = None,
    start: datetime | None = None,
    end: datetime | None = None,
    message_id: str | None = None,
    before_id: str | None = None,
    limit: int,
) -> list[Delivery]:
    """Newest first, made in [start, end), and not older than 30 days; `message_id`: of events that tell of it.

    Raises `Unavailable` when the database does not find these in five seconds.
    """
    oldest = now - KEPT
    first = lowest_id(DELIVERY, oldest if start is None else max(start, oldest))
    last = f"{DELIVERY}~" if end is None else lowest_id(DELIVERY, end)
    before = last if before_id is None else min(last, before_id)
    if message_id is None:
        return [read(row) for row in await executor.fetch(SQL.page, *key, first, before, status, event, limit)]
    async with in_time("narrow it with an event"):
        told = await of_message(executor, key[0], message_id, event)
        made = [created_at(event_id) for event_id in told]
        firsts = [lowest_id(DELIVERY, at) for at in made]
        ends = [lowest_id(DELIVERY, at + FIRST_WITHIN) for at in made]
        about = (*key, first, before, status, limit, told, firsts, ends)
        return [read(row) for row in await executor.fetch(PAGE_OF_EVENTS, *about)]


async def get(executor: Executor, key: SubscriptionKey, delivery_id: str, now: datetime) -> Delivery | None:
    """One delivery, pending or settled, not older than 30 days."""
    if created_at(delivery_id) < now - KEPT:
        return None
    rows = await executor.fetch(SQL.page, *key, delivery_id, f"{delivery_id}~", None, None, 1)
    return read(rows[0]) if rows else None


async def told(executor: Executor, organization_id: str, event_id: str) -> Told | None:
    """What an event tells."""
    row = await executor.fetchrow(TOLD, organization_id, event_id)
    return read_told(row) if row else None


async def purge(executor: Executor, key: SubscriptionKey, now: datetime, *, block: int = PURGE_BLOCK) -> int:
    """Remove the settled deliveries older than 30 days, in blocks; answers how many."""
    return await in_blocks(executor, SQL.purge, *key, lowest_id(DELIVERY, now - KEPT), block=block)
