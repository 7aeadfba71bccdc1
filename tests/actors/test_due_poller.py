"""The net under the hints: who is told, and how many numbers may start at once."""

import random
from datetime import timedelta
from typing import Any

from recado.actors.due_poller import EVERY_NUMBER_EVERY, STARTING_AT_MOST, DuePoller
from recado.actors.number_messages import Look
from recado.domain.ids import MESSAGE, NUMBER, IdSource
from recado.engine.clock import SystemClock, VirtualClock
from recado.storage import messages
from recado.storage.messages import NewMessage
from recado.storage.numbers import NumberKey
from recado.storage.postgres import Database

ORGANIZATION = "org_" + "0" * 21
CLOCK = VirtualClock(SystemClock().now().replace(microsecond=0))
IDS = IdSource(CLOCK, random.Random(11))


class Numbers:
    """The actors of numbers, as the poller sees them."""

    def __init__(self, db: Database) -> None:
        self.told: list[NumberKey] = []
        self.in_memory: set[NumberKey] = set()
        self.starting = 0
        self.poller = DuePoller(
            db,
            clock=CLOCK,
            tell=self.tell,
            in_memory=self.in_memory.__contains__,
            starting=lambda: self.starting,
        )

    def tell(self, number: NumberKey, message: object) -> None:
        assert message == Look()
        self.told.append(number)
        self.in_memory.add(number)

    async def look(self) -> set[NumberKey]:
        """The numbers told by one run."""
        self.told.clear()
        await self.poller.work()
        assert len(self.told) == len(set(self.told))
        return set(self.told)


async def stored(db: Database, *, held_for: timedelta | None = None) -> NumberKey:
    """A number with one message, ready or held."""
    number_id, now = IDS.new(NUMBER), CLOCK.now()
    fields: dict[str, Any] = {
        "organization_id": ORGANIZATION, "env": "test", "channel": "chatapp", "id": IDS.new(MESSAGE),
        "number_id": number_id, "type": "template", "recipient": "+5511987654321", "recipient_hash": 1, "klass": 1,
        "force": False, "template_id": None, "payload": None, "template_vars": None, "metadata": None,
        "campaign_id": None, "scheduled_at": None, "due_at": now, "ttl": timedelta(hours=1), "held_base_ms": 0,
        "accepted_at": now,
    }  # fmt: skip
    assert await messages.accept(db, [NewMessage(**fields)]) == [messages.STORED]
    if held_for is not None:
        await db.execute(
            "update dispatch set not_before = $2, reason = 'retry' where number_id = $1", number_id, now + held_for
        )
    return (ORGANIZATION, "test", number_id)


async def test_a_number_with_ready_rows_is_told_until_it_is_in_memory_and_seldom_then(database: Database) -> None:
    numbers = Numbers(database)
    number = await stored(database)
    told = [await numbers.look() for _ in range(EVERY_NUMBER_EVERY + 1)]
    assert told == [{number}] + [set()] * (EVERY_NUMBER_EVERY - 1) + [{number}]


async def test_a_number_in_memory_is_told_at_once_when_a_row_becomes_due(database: Database) -> None:
    numbers = Numbers(database)
    number = await stored(database, held_for=timedelta(seconds=5))
    numbers.in_memory.add(number)
    assert await numbers.look() == set()
    await CLOCK.advance(6)
    assert await numbers.look() == {number}
    assert await numbers.look() == set()


async def test_only_so_many_numbers_start_at_once_and_the_others_later(database: Database) -> None:
    numbers = Numbers(database)
    waiting = {await stored(database) for _ in range(5)}
    numbers.starting = STARTING_AT_MOST - 2
    first = await numbers.look()
    assert len(first) == 2
    numbers.starting = STARTING_AT_MOST
    assert await numbers.look() == set()
    numbers.starting = 0
    assert await numbers.look() == waiting - first


async def test_rows_that_become_due_do_not_start_more_numbers_than_may_start(database: Database) -> None:
    numbers = Numbers(database)
    for _ in range(3):
        await stored(database, held_for=timedelta())
    numbers.starting = STARTING_AT_MOST - 1
    assert len(await numbers.look()) == 1
