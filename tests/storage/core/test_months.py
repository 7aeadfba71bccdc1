"""Statements for messages of one month name its table; any other is run for all months (C2.1)."""

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.domain.core.ids import MESSAGE, IdSource, lowest_id
from recado.engine.clock import SystemClock, VirtualClock
from recado.storage.core.connections.batch import Batcher
from recado.storage.core.connections.postgres import Database
from recado.storage.core.statements.months import ANY_MONTH, Months
from recado.storage.core.upkeep.partitions import ensure_partitions, partition, partition_repair
from recado.storage.messages import messages
from recado.storage.messages.messages import NewMessage

ORGANIZATION = "org_" + "0" * 21
WHERE = f"select tableoid::regclass::text as table from {ANY_MONTH} where id = any($1)"
MAY = datetime(2034, 5, 17, tzinfo=UTC)


def new(at: datetime) -> NewMessage:
    fields: dict[str, Any] = {
        "organization_id": ORGANIZATION, "env": "test", "channel": "chatapp",
        "id": IdSource(VirtualClock(at), random.Random(4)).new(MESSAGE), "sender_id": "num_" + "0" * 21,
        "type": "template", "recipient": "+5511987654321", "recipient_hash": 1, "klass": 1, "force": False,
        "template_id": None, "payload": None, "template_vars": None, "metadata": None, "campaign_id": None,
        "scheduled_at": None, "due_at": at, "ttl": timedelta(hours=1), "held_base_ms": 0, "accepted_at": at,
    }  # fmt: skip
    return NewMessage(**fields)


class Asked:
    """A database that remembers which statements it was asked."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.statements: list[str] = []

    async def fetch(self, query: str, /, *arguments: Any) -> Any:
        self.statements.append(query)
        return await self._database.fetch(query, *arguments)


async def test_a_batch_of_one_month_names_its_table_and_one_of_two_none(database: Database) -> None:
    await ensure_partitions(database, MAY)
    asked: Any = Asked(database)
    one, other = new(MAY), new(MAY + timedelta(days=20))
    await messages.accept(asked, [one], months=database.months)
    await messages.accept(asked, [other], months=database.months)
    found = await database.months.fetch(asked, WHERE, [one.id, other.id], [one.id, other.id])
    assert sorted(row["table"] for row in found) == ["messages_2034_05", "messages_2034_06"]
    assert ["into messages_2034_05 (" in text for text in asked.statements] == [True, False, False]
    assert ["into messages_2034_06 (" in text for text in asked.statements] == [False, True, False]
    assert asked.statements[-1] == WHERE


async def test_a_month_that_nobody_made_sure_of_is_not_named(database: Database) -> None:
    await ensure_partitions(database, MAY)
    await ensure_partitions(database, MAY + timedelta(days=365))
    assert database.months.table([lowest_id(MESSAGE, MAY)]) is None
    assert database.months.table([lowest_id(MESSAGE, MAY + timedelta(days=365))]) == "messages_2035_05"
    assert database.months.table([]) is None


@given(st.integers(-40, 80), st.integers(-40, 80))
def test_two_messages_have_a_table_when_both_lie_between_its_bounds(first: int, second: int) -> None:
    months = Months()
    months.know([partition(MAY, offset) for offset in (-1, 0, 1)])
    moments = [MAY + timedelta(days=days) for days in (first, second)]
    names = {f"messages_{at:%Y_%m}" for at in moments}
    known = names <= {"messages_2034_04", "messages_2034_05", "messages_2034_06"}
    expected = names.pop() if len(names) == 1 and known else None
    assert months.table([lowest_id(MESSAGE, at) for at in moments]) == expected


async def test_when_a_table_is_gone_the_next_try_is_for_all_months(database: Database) -> None:
    await ensure_partitions(database, MAY)
    stored = new(MAY)
    await messages.accept(database, [stored], months=database.months)
    assert [row["table"] for row in await database.months.fetch(database, WHERE, [stored.id], [stored.id])]
    await database.execute("drop table messages_2034_05")
    with pytest.raises(asyncpg.UndefinedTableError):
        await database.months.fetch(database, WHERE, [stored.id], [stored.id])
    assert await database.months.fetch(database, WHERE, [stored.id], [stored.id]) == []


@pytest.mark.parametrize("known", [True, False], ids=["named", "not_named"])
async def test_a_batch_whose_month_is_gone_or_not_made_yet_makes_it_and_is_stored(
    database: Database, known: bool
) -> None:
    clock = VirtualClock(MAY)
    await ensure_partitions(database, MAY)
    if not known:
        await ensure_partitions(database, SystemClock().now())
    await database.execute("drop table messages_2034_05")

    async def run(batch: Any) -> Any:
        return await messages.accept(database.hot, batch, months=database.months)

    batcher: Batcher[NewMessage, Any] = Batcher(
        "test", run, clock=SystemClock(), repair=partition_repair(database, clock)
    )
    await batcher.start()
    message = new(MAY)
    assert await batcher.put(message) is messages.STORED
    await batcher.stop()
    assert await database.fetchval("select id from messages_2034_05") == message.id
    assert database.months.table([message.id]) == "messages_2034_05"
