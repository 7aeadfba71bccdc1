"""Idempotency keys as rows (C6.2)."""

import asyncio
from datetime import UTC, datetime, timedelta

from recado.domain.idempotency import InProgress, Reused, Started, Stored
from recado.storage.idempotency import IdempotencyKeys, purge
from recado.storage.postgres import Database

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OWNER = ("org_1", "test", b"k" * 32)
ASKED, OTHER = b"f" * 32, b"g" * 32


async def test_a_key_runs_once_and_answers_again(database: Database) -> None:
    keys = IdempotencyKeys(database)
    assert await keys.begin(*OWNER, ASKED, NOW) == Started()
    assert await keys.begin(*OWNER, ASKED, NOW) == InProgress()
    assert await keys.begin(*OWNER, OTHER, NOW) == Reused()
    await keys.finish(*OWNER, 201, b'{"id":1}')
    assert await keys.begin(*OWNER, ASKED, NOW) == Stored(201, b'{"id":1}')
    assert await keys.begin(*OWNER, OTHER, NOW) == Reused()
    await keys.finish(*OWNER, 500, b"{}")
    await keys.release(*OWNER)
    assert await keys.begin(*OWNER, ASKED, NOW) == Stored(201, b'{"id":1}')


async def test_a_key_belongs_to_its_organization_and_environment(database: Database) -> None:
    keys = IdempotencyKeys(database)
    for owner in (OWNER, ("org_2", "test", OWNER[2]), ("org_1", "live", OWNER[2]), ("org_1", "test", b"l" * 32)):
        assert await keys.begin(*owner, ASKED, NOW) == Started()


async def test_a_released_key_runs_again_with_another_request(database: Database) -> None:
    keys = IdempotencyKeys(database)
    await keys.begin(*OWNER, ASKED, NOW)
    await keys.release(*OWNER)
    assert await keys.begin(*OWNER, OTHER, NOW) == Started()


async def test_the_key_of_a_dead_process_is_free_after_a_minute_unless_it_made_a_row(database: Database) -> None:
    keys = IdempotencyKeys(database)
    await keys.begin(*OWNER, ASKED, NOW)
    assert await keys.begin(*OWNER, ASKED, NOW + timedelta(seconds=59)) == InProgress()
    assert await keys.begin(*OWNER, ASKED, NOW + timedelta(seconds=60)) == Started()
    await database.execute("update idempotency set message_id = 'msg_1'")
    assert await keys.begin(*OWNER, ASKED, NOW + timedelta(hours=1)) == InProgress()


async def test_a_key_is_new_again_after_a_day(database: Database) -> None:
    keys = IdempotencyKeys(database)
    await keys.begin(*OWNER, ASKED, NOW)
    await keys.finish(*OWNER, 201, b"{}")
    day = timedelta(hours=24)
    assert await keys.begin(*OWNER, ASKED, NOW + day - timedelta(seconds=1)) == Stored(201, b"{}")
    assert await keys.begin(*OWNER, OTHER, NOW + day) == Started()


async def test_of_many_at_once_one_runs(database: Database) -> None:
    keys = IdempotencyKeys(database)
    found = await asyncio.gather(*(keys.begin(*OWNER, ASKED, NOW) for _ in range(8)))
    assert sorted(type(one).__name__ for one in found) == ["InProgress"] * 7 + ["Started"]


async def test_old_keys_are_removed(database: Database) -> None:
    keys = IdempotencyKeys(database)
    for index in range(3):
        await keys.begin("org_1", "test", bytes([index]) * 32, ASKED, NOW + timedelta(hours=index))
    assert await purge(database, NOW + timedelta(hours=25)) == 2
    assert await database.fetchval("select count(*) from idempotency") == 1
