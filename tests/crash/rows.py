"""What the database says of a round: read past the service, so that nothing of it is taken on trust."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import asyncpg
from tests.waiting import until


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a message, as it was written in the commit of the move."""

    id: str
    type: str
    message_id: str


@dataclass(frozen=True, slots=True)
class Rows:
    """`claimed`: the messages still claimed, with the moment of their claim. `untold`: deliveries not made yet.
    `dropped`: deliveries given up."""

    events: tuple[Event, ...] = ()
    claimed: Mapping[str, datetime] = field(default_factory=dict)
    untold: int = 0
    dropped: int = 0


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
                await connection.fetchval("select count(*) from delivery_queue"),
                await connection.fetchval("select count(*) from deliveries where status <> 'delivered'"),
            )
    finally:
        await connection.close()


async def claimed_by_the_dead(arguments: Mapping[str, Any]) -> frozenset[str]:
    """What was claimed and not settled when the service died, once its last commits have come through."""
    connection = await asyncpg.connect(**arguments)
    try:
        others = "select count(*) from pg_stat_activity where application_name = 'recado' and pid <> pg_backend_pid()"

        async def alone() -> bool:
            return bool(await connection.fetchval(others) == 0)

        await until(alone, 10, "the dead service's sessions have ended")
        rows = await connection.fetch(
            "select id from dispatch where claimed_epoch is not null and reason is distinct from 'uncertain'"
        )
        return frozenset(row["id"] for row in rows)
    finally:
        await connection.close()
