"""The net under the hints: who is told, and how many numbers may start at once."""

import random
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from recado.actors.dispatch.due_poller import EVERY_NUMBER_EVERY, STARTING_AT_MOST, DuePoller
from recado.actors.dispatch.lane_messages import Heads, Look
from recado.domain.core.ids import MESSAGE, NUMBER, IdSource
from recado.domain.senders.sender import SenderKey
from recado.engine.clock import SystemClock, VirtualClock
from recado.storage.core.connections.postgres import Database
from recado.storage.dispatch import dispatch
from recado.storage.dispatch.dispatch import BLOCK, MOST_HEADS, OF_EACH, Head
from recado.storage.messages import messages
from recado.storage.messages.messages import NewMessage

ORGANIZATION = "org_" + "0" * 21
CLOCK = VirtualClock(SystemClock().now().replace(microsecond=0))
IDS = IdSource(CLOCK, random.Random(11))


COPY = """
insert into dispatch (organization_id, id, env, channel, sender_id, class, owner, due_at, not_before, reason, ttl_ms,
    expires_at, held_base_ms, force)
select organization_id, 'msg_' || g, env, channel, sender_id, class, owner, due_at, not_before - $2::interval,
    'scheduled', ttl_ms, expires_at, held_base_ms, force
from dispatch, generate_series(1, $3::int) g
where sender_id = $1
"""


OF_TEN_KINDS = """
with few as (delete from dispatch where sender_id = $1 and id !~ '^msg_[0-9]{2}$')
update dispatch
set
    class = right(id, 1)::int % 2, owner = 'btc_' || right(id, 1)::int % 5, force = id = 'msg_33',
    claimed_epoch = case when right(id, 1) = '1' then 1 end
where sender_id = $1 and id ~ '^msg_[0-9]{2}$'
"""


class Numbers:
    """The actors of numbers, as the poller sees them."""

    def __init__(self, db: Database) -> None:
        self.told: list[SenderKey] = []
        self.heads: dict[SenderKey, tuple[Head, ...]] = {}
        self.released: list[int] = []  # blocks before each of them was told
        self.rows_ready = 0
        self.in_memory: set[SenderKey] = set()
        self.starting = 0
        self.poller = DuePoller(
            db,
            clock=CLOCK,
            tell=self.tell,
            in_memory=self.in_memory.__contains__,
            starting=lambda: self.starting,
        )

    def tell(self, number: SenderKey, message: object) -> None:
        if isinstance(message, Heads):
            self.heads[number] = message.rows
            return
        assert message == Look()
        self.told.append(number)
        self.released.append(self.rows_ready)
        if number not in self.in_memory:
            self.starting += 1
        self.in_memory.add(number)

    async def look(self) -> set[SenderKey]:
        """The numbers told by one run."""
        self.told.clear()
        self.heads.clear()
        self.released.clear()
        await self.poller.work()
        return set(self.told)


async def stored(db: Database, *, held_for: timedelta | None = None) -> SenderKey:
    """A number with one message, ready or held."""
    sender_id, now = IDS.new(NUMBER), CLOCK.now()
    fields: dict[str, Any] = {
        "organization_id": ORGANIZATION, "env": "test", "channel": "chatapp", "id": IDS.new(MESSAGE),
        "sender_id": sender_id, "type": "template", "recipient": "+5511987654321", "recipient_hash": 1, "klass": 1,
        "force": False, "template_id": None, "payload": None, "template_vars": None, "metadata": None,
        "campaign_id": None, "scheduled_at": None, "due_at": now, "ttl": timedelta(hours=1), "held_base_ms": 0,
        "accepted_at": now,
    }  # fmt: skip
    assert await messages.accept(db, [NewMessage(**fields)]) == [messages.STORED]
    if held_for is not None:
        await db.execute(
            "update dispatch set not_before = $2, reason = 'retry' where sender_id = $1", sender_id, now + held_for
        )
    return SenderKey(ORGANIZATION, "test", "chatapp", sender_id)


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


async def test_a_number_in_memory_is_told_where_its_rows_begin_once_a_hint_had_its_time(database: Database) -> None:
    numbers = Numbers(database)
    number, held = await stored(database), await stored(database, held_for=timedelta(hours=1))
    numbers.in_memory |= {number, held}
    await numbers.look()
    assert numbers.heads == {}
    await copied(database, number, 49)
    await database.execute(OF_TEN_KINDS, number.sender_id)
    await CLOCK.advance(1)
    await numbers.look()
    # Of the ten pairs of class and owner the first row each, but of the one whose rows are claimed; and the forced one.
    assert {head.id for head in numbers.heads.pop(number)} == {f"msg_{n}" for n in (10, *range(12, 20), 33)}
    assert numbers.heads == {}


async def test_of_many_owners_some_are_told(database: Database) -> None:
    numbers = Numbers(database)
    number = await stored(database)
    numbers.in_memory.add(number)
    await copied(database, number, 2 * MOST_HEADS)
    await database.execute("update dispatch set owner = id")
    await CLOCK.advance(1)
    await numbers.look()
    assert len(numbers.heads[number]) == MOST_HEADS


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


async def test_a_number_is_started_after_the_first_block_that_holds_its_rows(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = Numbers(database)
    first, last = [await stored(database, held_for=timedelta()) for _ in range(2)]
    await copied(database, first, 3 * BLOCK, before=timedelta(seconds=1))
    release_due = dispatch.release_due

    async def counted(*arguments: Any) -> list[SenderKey]:
        if arguments[0] is database:  # other tests may have left a service that looks too
            numbers.rows_ready += 1
        return await release_due(*arguments)

    monkeypatch.setattr(dispatch, "release_due", counted)
    await numbers.look()

    begun = dict(zip(reversed(numbers.told), reversed(numbers.released), strict=True))
    assert begun == {first: 1, last: 1}  # and not after the four blocks, of which the other's rows fill three
    assert numbers.rows_ready > 1
    assert await database.fetchval("select count(*) from dispatch where not_before is not null") == 0


async def test_each_number_gets_some_of_its_rows_and_what_is_not_due_stays(database: Database) -> None:
    one, other = [await stored(database, held_for=timedelta()) for _ in range(2)]
    later = await stored(database, held_for=timedelta(hours=1))
    await database.execute("update dispatch set reason = 'scheduled'")
    await copied(database, one, 2 * OF_EACH)

    released = await dispatch.release_of_each(database, CLOCK.now())

    assert Counter(released) == {one: OF_EACH, other: 1}
    assert later not in released


async def copied(db: Database, number: SenderKey, count: int, *, before: timedelta = timedelta()) -> None:
    """More rows of a number, due a while before its first one."""
    await db.execute(COPY, number.sender_id, before, count)
    await db.execute("update dispatch set reason = 'scheduled' where not_before is not null")
