"""Up to when what is kept may go: a clock that runs ahead is believed after a day, and not before (C32)."""

import random
from datetime import UTC, datetime, timedelta

import pytest
from tests.acme import acme

from recado.actors.jobs.clock_confirmation import ClockConfirmation
from recado.domain.core.ids import AUDIT, IdSource, lowest_id
from recado.engine.clock import VirtualClock
from recado.storage.core.connections.postgres import Database
from recado.storage.senders.numbers import Number

NOW = datetime(2031, 6, 15, 12, tzinfo=UTC)
A_DAY = 86_400.0  # seconds


class SetClock(VirtualClock):
    """A clock that a test can set, as an operator or a restored machine does."""

    def __init__(self) -> None:
        super().__init__(NOW)
        self.ahead = timedelta(0)

    def now(self) -> datetime:
        return super().now() + self.ahead


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
async def number(database: Database, clock: SetClock) -> Number:
    return (await acme(database, clock, IdSource(clock, random.Random(5)))).number


async def note(database: Database, number: Number, at: datetime, by: str = "audit") -> None:
    """Something was done then."""
    if by == "audit":
        await database.execute(
            "insert into audit (organization_id, id, actor_type, actor_id, action, details) "
            "values ($1, $2, 'system', 'system', 'number.create', '{}')",
            number.organization_id, lowest_id(AUDIT, at),
        )  # fmt: skip
    elif by == "number":
        await database.execute(
            "insert into sender_minutes values ($1, $2, $3, 1, 0, 0)", number.organization_id, number.id, at
        )
    else:
        await database.execute(
            "insert into callbacks (channel, adapter, sha256, body, received_at) "
            "values ('chatapp', 'cloud', $1, '', $2)",
            str(at).encode(), at,
        )  # fmt: skip


async def test_with_nothing_older_stored_nothing_may_go_for_a_day(
    database: Database, clock: SetClock, number: Number
) -> None:
    confirmation = ClockConfirmation(database, clock=clock)
    assert await confirmation.confirmed_until() is None
    await clock.advance(A_DAY - 1)
    assert await confirmation.confirmed_until() is None
    await clock.advance(1)
    assert await confirmation.confirmed_until() == NOW + timedelta(days=1)


@pytest.mark.parametrize("by", ["audit", "number", "callback"])
async def test_at_first_what_the_database_tells_of_is_believed_and_not_the_last_day_of_it(
    database: Database, clock: SetClock, number: Number, by: str
) -> None:
    confirmation = ClockConfirmation(database, clock=clock)
    for days in (400, 40, 3):
        await note(database, number, NOW - timedelta(days=days), by)
    await note(database, number, NOW - timedelta(hours=23), by)  # by the clock that is in question
    assert await confirmation.confirmed_until() == NOW - timedelta(days=3)
    await clock.advance(7_200)
    assert await confirmation.confirmed_until() == NOW - timedelta(hours=23)


async def test_of_all_that_was_done_the_last_counts(database: Database, clock: SetClock, number: Number) -> None:
    confirmation = ClockConfirmation(database, clock=clock)
    for days, by in enumerate(("callback", "number", "audit"), 3):
        await note(database, number, NOW - timedelta(days=days), by)
    assert await confirmation.confirmed_until() == NOW - timedelta(days=3)
    await database.execute("delete from callbacks")
    assert await confirmation.confirmed_until() == NOW - timedelta(days=4)


async def test_a_clock_that_is_set_ahead_is_not_believed_for_another_day(
    database: Database, clock: SetClock, number: Number
) -> None:
    confirmation = ClockConfirmation(database, clock=clock)
    await clock.advance(10 * A_DAY)
    right = clock.now()
    assert await confirmation.confirmed_until() == right
    await note(database, number, right)

    clock.ahead = timedelta(days=700)
    assert await confirmation.confirmed_until() == right
    await clock.advance(A_DAY - 1)
    assert await confirmation.confirmed_until() == right

    clock.ahead = timedelta(0)  # somebody has seen it
    await clock.advance(2)
    assert await confirmation.confirmed_until() == right
    await clock.advance(A_DAY)
    assert await confirmation.confirmed_until() == clock.now() == right + timedelta(days=2, seconds=1)


async def test_a_clock_that_is_kept_right_in_small_steps_is_believed(database: Database, clock: SetClock) -> None:
    confirmation = ClockConfirmation(database, clock=clock)
    for _ in range(25):
        clock.ahead += timedelta(seconds=50)
        await clock.advance(3_600)
        await confirmation.confirmed_until()
    assert await confirmation.confirmed_until() == clock.now()


async def test_a_clock_that_was_set_and_is_not_followed_is_not_believed(database: Database, clock: SetClock) -> None:
    confirmation = ClockConfirmation(database, clock=clock)
    await clock.advance(A_DAY)
    assert await confirmation.confirmed_until() == clock.now()
    clock.set_by = -timedelta(days=700)  # as it should be: the present is years ahead
    assert await confirmation.confirmed_until() is None
    await clock.advance(2 * A_DAY)
    assert await confirmation.confirmed_until() is None
