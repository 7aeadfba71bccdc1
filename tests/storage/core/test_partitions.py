"""Partitions: a message lies in the table of the month of its id, and the tables are there before the month."""

import asyncio
from datetime import UTC, datetime, timedelta, timezone

import asyncpg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.domain.core.ids import MESSAGE, lowest_id
from recado.storage.core.connections.postgres import Database
from recado.storage.core.upkeep.partitions import ensure_partitions, lacks_partition, partition

INSERT = """
insert into messages (organization_id, env, channel, id, direction, status, type, recipient, recipient_hash, class,
    force, updated_at)
values ('org_1', 'test', 'chat_app', $1, 'outbound', 'queued', 'text', '+1', 1, 1, false, $2)
returning tableoid::regclass::text
"""


async def store(database: Database, at: datetime) -> str:
    table: str = await database.fetchval(INSERT, lowest_id(MESSAGE, at), at)
    return table


async def test_months_from_the_last_one_on_are_made_once(database: Database) -> None:
    now = datetime(2031, 12, 31, 23, 59, tzinfo=UTC)
    expected = ["messages_2031_11", "messages_2031_12", "messages_2032_01", "messages_2032_02"]
    assert await ensure_partitions(database, now) == expected
    assert await ensure_partitions(database, now) == []
    assert await ensure_partitions(database, now + timedelta(minutes=1)) == ["messages_2032_03"]


async def test_a_message_lies_in_the_month_of_its_id_to_the_millisecond(database: Database) -> None:
    await ensure_partitions(database, datetime(2031, 3, 15, tzinfo=UTC), months_ahead=0)
    month = datetime(2031, 3, 1, tzinfo=UTC)
    assert await store(database, month) == "messages_2031_03"
    assert await store(database, month - timedelta(milliseconds=1)) == "messages_2031_02"
    assert await store(database, datetime(2031, 3, 31, 23, 59, 59, 999_000, tzinfo=UTC)) == "messages_2031_03"


async def test_a_row_of_a_month_that_is_not_there_is_told_from_a_broken_check(database: Database) -> None:
    with pytest.raises(asyncpg.CheckViolationError) as missing:
        await store(database, datetime(2040, 1, 1, tzinfo=UTC))
    assert lacks_partition(missing.value)
    await database.execute("create table t (a integer check (a > 0))")
    with pytest.raises(asyncpg.CheckViolationError) as broken:
        await database.execute("insert into t values (0)")
    assert not lacks_partition(broken.value)


async def test_two_processes_may_make_partitions_at_once(database: Database) -> None:
    now = datetime(2033, 5, 1, tzinfo=UTC)
    made = await asyncio.gather(*(ensure_partitions(database, now) for _ in range(4)))
    assert sorted(map(len, made)) == [0, 0, 0, 4]


async def test_partitions_are_made_while_other_months_are_read_and_written(database: Database) -> None:
    now = datetime(2034, 5, 1, tzinfo=UTC)
    await ensure_partitions(database, now, months_ahead=0)
    async with database.transaction() as connection:
        await connection.fetchval(INSERT, lowest_id(MESSAGE, now), now)
        await connection.fetch("select * from messages")
        async with asyncio.timeout(60):
            assert await ensure_partitions(database, now, months_ahead=1) == ["messages_2034_06"]


async def test_a_partition_has_the_indexes_of_the_table_and_room_for_updates_in_place(database: Database) -> None:
    await ensure_partitions(database, datetime(2035, 1, 1, tzinfo=UTC), months_ahead=0)
    count = "select count(*) from pg_index where indrelid = $1::text::regclass"
    assert await database.fetchval(count, "messages_2035_01") == await database.fetchval(count, "messages") > 1
    options = await database.fetchval("select reloptions from pg_class where relname = 'messages_2035_01'")
    assert options == ["fillfactor=50"]


@given(st.datetimes(min_value=datetime(2020, 1, 1), max_value=datetime(2200, 1, 1)), st.integers(-14, 14))
def test_months_follow_each_other_without_gap_or_overlap(local: datetime, hours: int) -> None:
    at = local.replace(tzinfo=timezone(timedelta(hours=hours)))
    _, low, high = partition(at)
    assert low <= lowest_id(MESSAGE, at.replace(microsecond=0)) < high
    assert partition(at, 1)[1] == high
    assert partition(at, -1)[2] == low
