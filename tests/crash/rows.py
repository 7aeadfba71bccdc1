"""What the database says of a round: read past the service, so that nothing of it is taken on trust."""

import mmap
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import asyncpg
from tests.waiting import until

from recado.storage.core.statements.rows import Executor
from recado.storage.dispatch.begun_calls import NAME, Fenced, FormerCalls

CHARGE = "charge"
TOTALS = """
    select key, accepted, queued, sent, delivered, read, failed, archived, held_coins, charged_coins from totals
    where env = 'live'
"""


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a message, as it was written in the commit of the move."""

    id: str
    type: str
    message_id: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the ledger."""

    id: str
    kind: str
    coins: int
    balance_after: int
    message_id: str | None = None


@dataclass(frozen=True, slots=True)
class Wallet:
    """The wallet in live. `ledger`: in its order; `units`: what counts for the tier of prices.

    `prices`, `held_by_rows`: coins by message, as the message and its row of the queue say.
    """

    balance: int
    held: int
    ledger: tuple[Entry, ...]
    prices: Mapping[str, int | None]
    held_by_rows: Mapping[str, int]
    units: int


@dataclass(frozen=True, slots=True)
class Counts:
    """What is counted of a batch or a campaign; the fields are those of the table `totals`."""

    accepted: int = 0
    queued: int = 0
    sent: int = 0
    delivered: int = 0
    read: int = 0
    failed: int = 0
    archived: int = 0
    held_coins: int = 0
    charged_coins: int = 0


@dataclass(frozen=True, slots=True)
class Untold:
    """A delivery that is not made yet. `told`: which, and what has become of it so far; `attempts`: those refused.

    `due_in`: seconds until the next attempt, below 0 since it was due; `pause`: seconds from the last attempt until the
    next one, None when there was none.
    """

    told: str
    attempts: int
    due_in: float
    pause: float | None


@dataclass(frozen=True, slots=True)
class Rows:
    """`claimed`: the messages still claimed, with the moment of their claim. `untold`: deliveries not made yet.

    `dropped`: deliveries given up. `wallet`: None where nothing is billed. `batches`: their status, by id;
    `totals`: by batch and campaign.
    """

    events: tuple[Event, ...] = ()
    claimed: Mapping[str, datetime] = field(default_factory=dict)
    untold: tuple[Untold, ...] = ()
    dropped: int = 0
    wallet: Wallet | None = None
    batches: Mapping[str, str] = field(default_factory=dict)
    totals: Mapping[str, Counts] = field(default_factory=dict)


UNTOLD = """
select
    format(
        '%s of %s, %s attempts, due in %s s, subscription %s; last: %s %s', id, event_id, attempts, round(due_in, 1),
        subscription_id, last_status, last_error
    ) as told,
    attempts, due_in::float8, extract(epoch from due_at - (history -> -1 ->> 'at')::timestamptz)::float8 as pause
from (select *, extract(epoch from due_at - clock_timestamp()) as due_in from delivery_queue) q
order by due_at
"""


async def read_rows(arguments: Mapping[str, Any]) -> Rows:
    """The rows as one moment sees them."""
    connection = await asyncpg.connect(**arguments)
    try:
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            events = await connection.fetch("select id, type, message_id from events where not test")
            claimed = await connection.fetch("select id, claimed_at from dispatch where claimed_epoch is not null")
            return Rows(
                tuple(Event(row["id"], row["type"], row["message_id"]) for row in events),
                {row["id"]: row["claimed_at"] for row in claimed},
                await read_untold(connection),
                await connection.fetchval("select count(*) from deliveries where status <> 'delivered'"),
                await _wallet(connection),
                {row["id"]: row["status"] for row in await connection.fetch("select id, status from batches")},
                {row["key"]: Counts(*row[1:]) for row in await connection.fetch(TOTALS)},
            )
    finally:
        await connection.close()


async def read_untold(executor: Executor) -> tuple[Untold, ...]:
    """The deliveries that are not made yet, the next one first."""
    return tuple(Untold(*row) for row in await executor.fetch(UNTOLD))


async def _wallet(connection: asyncpg.Connection) -> Wallet | None:
    wallet = await connection.fetchrow("select balance_coins, held_coins from wallets where env = 'live'")
    if wallet is None:
        return None
    ledger = await connection.fetch(
        "select id, kind, coins, balance_after, message_id from ledger where env = 'live' order by position"
    )
    prices = await connection.fetch("select id, price_coins from messages where env = 'live'")
    held = await connection.fetch("select id, coins from dispatch where env = 'live'")
    return Wallet(
        wallet["balance_coins"],
        wallet["held_coins"],
        tuple(Entry(*row) for row in ledger),
        {row["id"]: row["price_coins"] for row in prices},
        {row["id"]: row["coins"] for row in held},
        await connection.fetchval("select coalesce(sum(units), 0)::bigint from price_volumes"),
    )


async def claimed_by_the_dead(arguments: Mapping[str, Any]) -> dict[str, datetime]:
    """What was claimed (and when) and not settled when the service died, once its last commits have come through."""
    connection = await asyncpg.connect(**arguments)
    try:
        others = (
            "select count(*) from pg_stat_activity where application_name like 'recado%' and pid <> pg_backend_pid()"
        )

        async def alone() -> bool:
            return bool(await connection.fetchval(others) == 0)

        await until(alone, "the dead service's sessions have ended")
        rows = await connection.fetch(
            "select id, claimed_at from dispatch "
            "where claimed_epoch is not null and reason is distinct from 'uncertain'"
        )
        return {row["id"]: row["claimed_at"] for row in rows}
    finally:
        await connection.close()


def calls_of_the_dead(data_dir: Path) -> list[FormerCalls]:
    """What the dead service had noted of its calls: the owner, and processes beside it."""
    found = []
    for path in (data_dir / NAME, *data_dir.glob(f"{NAME}-*")):
        with path.open("rb") as file:
            notes = Fenced(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), 0).read()
        assert notes is not None
        found.append(notes)
    return found
