"""Customer events that may bring contacts into journeys (C9.7), as rows that a trigger adds and a turn takes."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from recado.storage.core.statements.rows import Executor, columns, reader
from recado.storage.core.statements.skipping import groups
from recado.storage.core.statements.sql import load

SQL: Final = load(
    "event_entries",
    waiting=groups("waiting", "event_entries", ("organization_id",), after="organization_id > $3"),
)


@dataclass(frozen=True, slots=True)
class EventEntry:
    """One event. `after_journey_id`: journeys up to this one have been asked."""

    id: int
    organization_id: str
    env: str
    event_id: str
    after_journey_id: str


_read: Final = reader(EventEntry)


async def claim(connection: Executor, *, each: int, most: int, after: str = "") -> list[EventEntry]:
    """The oldest, locked: up to `each` of an organization after `after`, more where few have any, and `most` in all."""
    return [_read(row) for row in await connection.fetch(SQL.claim, each, most, after)]


async def claim_one(connection: Executor, entry_id: int) -> list[EventEntry]:
    """This one, locked; none if it is done with, or another has it in hand."""
    return [_read(row) for row in await connection.fetch(SQL.claim_one, entry_id)]


async def journeys_of(
    executor: Executor, asking: Sequence[tuple[EventEntry, str]], share: int
) -> list[tuple[int, str]]:
    """Which journeys are next for these events (with their names): place of the event, and journey, in order.

    So many of each organization.
    """
    given = columns([(each.organization_id, each.env, name, each.after_journey_id) for each, name in asking], 4)
    return [(row["n"] - 1, row["id"]) for row in await executor.fetch(SQL.journeys, *given, share)]


async def settle(connection: Executor, done: Collection[int], asked: Sequence[tuple[int, str]]) -> None:
    """These events are done with. `asked`: those that are not, and the last journey that was asked for each."""
    await connection.execute(SQL.done, sorted(done))
    if asked:
        await connection.execute(SQL.asked, *columns(asked, 2))
