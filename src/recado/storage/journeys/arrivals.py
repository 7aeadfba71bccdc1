"""Contacts that are to enter journeys by their lists, as rows that a trigger and an activation add (C9.7)."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from recado.storage.core.statements.rows import Executor, affected, pack_numbers, reader
from recado.storage.core.statements.skipping import groups
from recado.storage.core.statements.sql import load

SQL: Final = load(
    "arrivals",
    arriving=groups(
        "arriving", "journey_arrivals", ("organization_id", "env", "journey_id"), after="organization_id > $3"
    ),
    joining=groups("joining", "list_arrivals", ("organization_id",)),
)


@dataclass(frozen=True, slots=True)
class JourneyArrival:
    """One contact, for one journey."""

    id: int
    organization_id: str
    env: str
    journey_id: str
    contact_id: str


_read: Final = reader(JourneyArrival)


async def claim(connection: Executor, *, each: int, most: int, after: str = "") -> list[JourneyArrival]:
    """The oldest, locked: of organizations after `after`, and `most` in all.

    Up to `each` are of one journey, or more where few have any. Those of a journey that a person paused stay.
    """
    return [_read(row) for row in await connection.fetch(SQL.claim, each, most, after)]


async def claim_one(connection: Executor, arrival_id: int) -> list[JourneyArrival]:
    """This one, locked; none if it is done with, or another has it in hand."""
    return [_read(row) for row in await connection.fetch(SQL.claim_one, arrival_id)]


async def settle(connection: Executor, done: Collection[int]) -> None:
    """These have entered, or never will."""
    await connection.execute(SQL.entered, pack_numbers(sorted(done)))


async def arm(
    connection: Executor, organization_id: str, env: str, journey_id: str, list_id: str, now: datetime
) -> None:
    """A journey that this transaction activates takes in the members of its list, which it holds as it is."""
    await connection.execute(SQL.arm, organization_id, env, journey_id, list_id, now)


async def spread(executor: Executor, *, each: int, most: int) -> int:
    """Let who joined lists arrive at the journeys of those: `each` of an organization; answers how many there were."""
    return affected(await executor.execute(SQL.spread, each, most))


@dataclass(frozen=True, slots=True)
class Arming:
    """A journey that was activated. `after_id`: members of its list up to this one are among the arrivals."""

    organization_id: str
    env: str
    journey_id: str
    list_id: str
    after_id: str

    @property
    def key(self) -> tuple[str, str, str]:
        return (self.organization_id, self.env, self.journey_id)


_read_arming: Final = reader(Arming)


async def next_arming(executor: Executor, now: datetime) -> Arming | None:
    """The one that waits for longest, whose next turn is after those of all others; None when there is none."""
    row = await executor.fetchrow(SQL.next_arming, now)
    return None if row is None else _read_arming(row)


async def members_arrive(connection: Executor, arming: Arming, block: int) -> None:
    """Let the next members arrive, in a transaction: all of a list of `block`, in the order of joining, or a block."""
    size = await connection.fetchval(SQL.size, arming.organization_id, arming.env, arming.list_id)
    if size is None or (size <= block and not arming.after_id):
        await connection.execute(SQL.arrive_in_order, *arming.key, arming.list_id)
        await disarm(connection, arming)
        return
    row = await connection.fetchrow(SQL.arrive, *arming.key, arming.list_id, arming.after_id, block)
    if row["count"] < block:
        await disarm(connection, arming)
    else:
        await connection.execute(SQL.armed_up_to, *arming.key, row["last"])


async def disarm(connection: Executor, arming: Arming) -> None:
    """All members are among the arrivals, or the journey takes nobody in."""
    await connection.execute(SQL.disarm, *arming.key)
