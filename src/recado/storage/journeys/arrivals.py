"""Contacts that are to enter journeys by their lists, as rows that a trigger and an activation add (C9.7)."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from recado.storage.core.rows import Executor, reader
from recado.storage.core.sql import load

SQL: Final = load("arrivals")


@dataclass(frozen=True, slots=True)
class Arrival:
    """One contact, for one journey."""

    id: int
    organization_id: str
    env: str
    journey_id: str
    contact_id: str


_read: Final = reader(Arrival)


async def claim(connection: Executor, *, each: int, most: int, after: str = "") -> list[Arrival]:
    """The oldest, locked: up to `each` of a journey of organizations after `after`, and `most` in all.

    Those of a journey that a person paused stay.
    """
    return [_read(row) for row in await connection.fetch(SQL.claim, each, most, after)]


async def claim_one(connection: Executor, arrival_id: int) -> list[Arrival]:
    """This one, locked; none if it is done with, or another has it in hand."""
    return [_read(row) for row in await connection.fetch(SQL.claim_one, arrival_id)]


async def settle(connection: Executor, done: Collection[int]) -> None:
    """These have entered, or never will."""
    await connection.execute(SQL.entered, sorted(done))


async def arm(connection: Executor, organization_id: str, env: str, journey_id: str, list_id: str) -> None:
    """A journey that this transaction activates takes in the members of its list, which stays as it is until then."""
    await connection.execute(SQL.arm, organization_id, env, journey_id, list_id)


async def arm_next(connection: Executor) -> bool:
    """Let the members of a list arrive at one journey that was activated; False when there is none."""
    row = await connection.fetchrow(SQL.next_arming)
    if row is None:
        return False
    await connection.execute(SQL.armed, row["organization_id"], row["env"], row["journey_id"], row["list_id"])
    return True
