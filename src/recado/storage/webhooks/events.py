"""The outbox: what happened, and a queued delivery for each subscription that takes it, in the change's commit (C23.3).

`emit` writes one event inside a caller's transaction. For messages, `emission` says without a wait what would be
written if one moves, and `emit_batch` writes many. An event of a message stores none of its content; deliveries read it
from the message. Both answer whom to hint after the commit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson

from recado.domain.core.ids import DELIVERY, EVENT, IdSource, lowest_id
from recado.domain.core.timestamps import format_timestamp
from recado.domain.webhooks.webhook import SubscriptionKey
from recado.storage.core.crypto import KeyRing
from recado.storage.core.statements.rows import Executor, array, columns, in_blocks, pack, pack_moments
from recado.storage.core.statements.sql import load
from recado.storage.core.turn import others_run
from recado.storage.webhooks.sealed_phones import has_phones, sealed
from recado.storage.webhooks.webhooks import SQL as WEBHOOKS
from recado.storage.webhooks.webhooks import Subscription, Takers, takers_of

SQL = load("events")

KEPT = timedelta(days=30)  # events and deliveries (C23.3.4)
MOST_REPLAYED = 10_000
MOST_OF_A_MESSAGE = 1_000  # events by which its deliveries are found
PURGE_BLOCK = 5_000
PIECE = 100  # events that are written down in a row; to encrypt a phone takes some microseconds
FIRST_WITHIN = timedelta(seconds=1)
"""Of an event its first deliveries are made: their ids are minted right after its own."""


@dataclass(frozen=True, slots=True)
class Emission:
    """An event of a message that may happen in a batch, with its deliveries: (subscription, delivery) ids.

    `data`: what it says of other records than the message, as JSON text.
    """

    organization_id: str
    env: str
    event_id: str
    type: str
    channel: str
    message_id: str
    deliveries: tuple[tuple[str, str], ...]
    due_at: datetime
    data: str | None = None


def emission(
    takers: Takers,
    ids: IdSource,
    *,
    organization_id: str,
    env: str,
    type: str,  # noqa: A002
    channel: str,
    message_id: str,
    data: str | None = None,
) -> Emission | None:
    """What to write if the message moves; None when nobody takes the event."""
    subscriptions = takers.by_event.get(type)
    if subscriptions is None:
        return None
    event_id = ids.new(EVENT)
    deliveries = tuple((subscription_id, ids.new(DELIVERY)) for subscription_id in subscriptions)
    due_at = ids.moment_of(event_id)
    return Emission(organization_id, env, event_id, type, channel, message_id, deliveries, due_at, data)


async def emit_batch(executor: Executor, emissions: Sequence[Emission]) -> dict[SubscriptionKey, list[str]]:
    """Write the events of many messages; answers whom to hint after the commit, of which deliveries."""
    if not emissions:
        return {}
    await executor.execute(SQL.emit_batch, *columns_of(emissions), array([e.data for e in emissions]))
    return deliveries_of(emissions)


def columns_of(emissions: Sequence[Emission]) -> list[str]:
    """The columns of events, six, and of their deliveries, six more."""
    queued = [(e, subscription_id, delivery_id) for e in emissions for subscription_id, delivery_id in e.deliveries]
    return [
        pack([e.organization_id for e in emissions]),
        pack([e.event_id for e in emissions]),
        pack([e.env for e in emissions]),
        pack([e.type for e in emissions]),
        pack([e.channel for e in emissions]),
        pack([e.message_id for e in emissions]),
        pack([e.organization_id for e, _, _ in queued]),
        pack([subscription_id for _, subscription_id, _ in queued]),
        pack([delivery_id for _, _, delivery_id in queued]),
        pack([e.event_id for e, _, _ in queued]),
        pack([e.type for e, _, _ in queued]),
        pack_moments([e.due_at for e, _, _ in queued]),
    ]


def deliveries_of(emissions: Sequence[Emission]) -> dict[SubscriptionKey, list[str]]:
    """Their deliveries, by the subscription to be hinted at."""
    told: dict[SubscriptionKey, list[str]] = {}
    for e in emissions:
        for subscription_id, delivery_id in e.deliveries:
            told.setdefault(SubscriptionKey(e.organization_id, subscription_id), []).append(delivery_id)
    return told


async def emit(
    connection: Executor,
    ids: IdSource,
    *,
    organization_id: str,
    env: str,
    type: str,  # noqa: A002 - the name that it has in the envelope
    data: Mapping[str, Any],
    keys: KeyRing | None = None,
) -> list[SubscriptionKey]:
    """Write one event that stores its data, and its deliveries; answers whom to hint after the commit.

    Phones in `data` are given in the clear, and are encrypted with `keys`; without phones there need be none.
    """
    takers = takers_of(await connection.fetch(WEBHOOKS.of_environment, organization_id, env)).by_event.get(type)
    if takers is None:
        return []
    event_id = ids.new(EVENT)
    text = _stored(data, keys, organization_id, event_id)
    await connection.execute(SQL.insert, organization_id, event_id, env, type, None, None, text, False)
    rows = [(subscription_id, ids.new(DELIVERY), event_id, type) for subscription_id in takers]
    await connection.execute(SQL.queue, organization_id, ids.moment_of(event_id), False, *columns(rows, 4))
    return [SubscriptionKey(organization_id, subscription_id) for subscription_id in takers]


@dataclass(frozen=True, slots=True)
class RecordEvent:
    """What happened to a record. `data` is stored, phones in it encrypted (C30.5)."""

    organization_id: str
    env: str
    type: str
    data: Mapping[str, Any]


async def emit_records(
    connection: Executor, ids: IdSource, happened: Sequence[RecordEvent], keys: KeyRing | None = None
) -> list[SubscriptionKey]:
    """Write many events, in their order, and their deliveries; answers whom to hint after the commit.

    `keys`: with which phones are encrypted.
    """
    takers: dict[tuple[str, str], Takers] = {}
    for environment in sorted({(each.organization_id, each.env) for each in happened}):
        takers[environment] = takers_of(await connection.fetch(WEBHOOKS.of_environment, *environment))
    events, queued = [], []
    for number, each in enumerate(happened, start=1):
        if number % PIECE == 0:
            await others_run()
        subscriptions = takers[each.organization_id, each.env].by_event.get(each.type)
        if subscriptions is None:
            continue
        event_id = ids.new(EVENT)
        text = _stored(each.data, keys, each.organization_id, event_id)
        events.append((each.organization_id, event_id, each.env, each.type, text))
        queued += [
            (each.organization_id, subscription_id, ids.new(DELIVERY), event_id, each.type, ids.moment_of(event_id))
            for subscription_id in subscriptions
        ]
    if events:
        await connection.execute(SQL.insert_records, *columns(events, 5), *columns(queued, 6))
    return sorted({SubscriptionKey(row[0], row[1]) for row in queued})


async def insert_test(
    connection: Executor,
    *,
    organization_id: str,
    env: str,
    event_id: str,
    type: str,  # noqa: A002
    data: Mapping[str, Any],
) -> None:
    """Log the event of a test; it belongs to its one delivery and is never replayed."""
    text = _text(data)
    await connection.execute(SQL.insert, organization_id, event_id, env, type, None, None, text, True)


async def replay_one(
    connection: Executor, ids: IdSource, subscription: Subscription, event_id: str, event: str, now: datetime
) -> str:
    """Queue an event once more; answers the id of the new delivery."""
    delivery_id = ids.new(DELIVERY)
    row = [(subscription.id, delivery_id, event_id, event)]
    await connection.execute(SQL.queue, subscription.organization_id, now, True, *columns(row, 4))
    return delivery_id


async def replay_period(
    connection: Executor,
    ids: IdSource,
    subscription: Subscription,
    *,
    start: datetime,
    end: datetime,
    events: Sequence[str] | None,
    only_failed: bool,
    now: datetime,
) -> int:
    """Queue the events of [start, end) once more, oldest first, at most 10,000; answers how many.

    `events` None: all of them. Events older than the subscription are none of its business.
    """
    start = max(start, subscription.created_at)
    end = min(end, now + FIRST_WITHIN)  # nothing is younger; of the last moment of all there is none after
    if start >= end:
        return 0
    missed = await connection.fetch(
        SQL.missed,
        subscription.organization_id,
        subscription.id,
        lowest_id(EVENT, start),
        lowest_id(EVENT, end),
        None if events is None else list(events),
        lowest_id(DELIVERY, start),
        lowest_id(DELIVERY, end + FIRST_WITHIN),
        MOST_REPLAYED,
        not only_failed,
        subscription.env,
    )
    rows = [(subscription.id, ids.new(DELIVERY), row["id"], row["type"]) for row in missed]
    await connection.execute(SQL.queue, subscription.organization_id, now, True, *columns(rows, 4))
    return len(rows)


async def of_message(executor: Executor, organization_id: str, message_id: str, event: str | None) -> list[str]:
    """The ids of the events that tell of a message, or of those of a type: the newest first, `MOST_OF_A_MESSAGE`."""
    rows = await executor.fetch(SQL.of_message, organization_id, message_id, event, MOST_OF_A_MESSAGE)
    return [row["id"] for row in rows]


def _stored(data: Mapping[str, Any], keys: KeyRing | None, organization_id: str, event_id: str) -> str:
    if has_phones(data):
        if keys is None:
            raise ValueError("phones are stored encrypted, and there is no key")
        data = sealed(data, keys, organization_id=organization_id, event_id=event_id)
    return _text(data)


def _text(data: Mapping[str, Any]) -> str:
    return orjson.dumps(data, default=_default, option=orjson.OPT_PASSTHROUGH_DATETIME).decode()


def _default(value: object) -> str:
    if isinstance(value, datetime):
        return format_timestamp(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")


async def purge(executor: Executor, organization_id: str, now: datetime, *, block: int = PURGE_BLOCK) -> int:
    """Remove the events older than 30 days, in blocks; answers how many."""
    return await in_blocks(executor, SQL.purge, organization_id, lowest_id(EVENT, now - KEPT), block=block)
