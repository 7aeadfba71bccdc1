"""Idempotency keys as rows (C6.2)."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
from tests.people import insert_people
from tests.plans import indexes, plan_for_any, whole_tables
from tests.waiting import until_locked_out

from recado.domain.core.idempotency import (
    LOCK,
    LONG_LOCK,
    AnswerLost,
    AnswerStored,
    Beginning,
    Erased,
    InProgress,
    KeyHeld,
    Reused,
)
from recado.storage.contacts import contacts
from recado.storage.core.connections.postgres import Connection, Database
from recado.storage.core.idempotency import SQL, IdempotencyKeys, erase, hold_keys, keep_answers, purge
from recado.storage.core.shares.callers import before_commit
from recado.storage.core.upkeep.migrate import migrate, read_migrations

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OWNER = ("org_1", "test", b"k" * 32)
ASKED, OTHER = b"f" * 32, b"g" * 32


ANSWER = b'{"id":1}'
SECOND = timedelta(seconds=1)


def nothing() -> None:
    """What work notes of itself that tells nothing more than its commit."""


async def held(keys: IdempotencyKeys, now: datetime = NOW, fingerprint: bytes = ASKED) -> KeyHeld:
    found = await keys.begin(*OWNER, fingerprint, now)
    assert isinstance(found, KeyHeld)
    return found


async def begin(keys: IdempotencyKeys, now: datetime = NOW, fingerprint: bytes = ASKED) -> Beginning:
    return await keys.begin(*OWNER, fingerprint, now)


async def test_a_key_runs_once_and_answers_again(database: Database) -> None:
    keys = IdempotencyKeys(database)
    hold = await held(keys)
    assert hold == KeyHeld(*OWNER, NOW)
    assert await begin(keys) == InProgress()
    assert await begin(keys, fingerprint=OTHER) == Reused()
    await keys.finish(hold, 201, ANSWER, None)
    assert await begin(keys) == AnswerStored(201, ANSWER)
    assert await begin(keys, fingerprint=OTHER) == Reused()
    await keys.finish(hold, 500, b"{}", None)
    await keys.release(hold)
    assert await begin(keys) == AnswerStored(201, ANSWER)


async def test_a_key_belongs_to_its_organization_and_environment(database: Database) -> None:
    keys = IdempotencyKeys(database)
    for owner in (OWNER, ("org_2", "test", OWNER[2]), ("org_1", "live", OWNER[2]), ("org_1", "test", b"l" * 32)):
        assert await keys.begin(*owner, ASKED, NOW) == KeyHeld(*owner, NOW)


async def test_a_released_key_runs_again_with_another_request(database: Database) -> None:
    keys = IdempotencyKeys(database)
    await keys.release(await held(keys))
    await held(keys, fingerprint=OTHER)


async def test_the_key_of_a_dead_process_is_free_after_a_minute_unless_it_made_a_row(database: Database) -> None:
    keys = IdempotencyKeys(database)
    await held(keys)
    assert await begin(keys, NOW + LOCK - SECOND) == InProgress()
    await held(keys, NOW + LOCK)
    await database.execute("update idempotency set message_id = 'msg_1'")
    assert await begin(keys, NOW + timedelta(hours=1)) == InProgress()


async def test_a_key_is_held_as_long_as_its_request_may_run(database: Database) -> None:
    keys = IdempotencyKeys(database)
    await keys.begin(*OWNER, ASKED, NOW, lock=LONG_LOCK)
    assert await keys.begin(*OWNER, ASKED, NOW + LONG_LOCK - SECOND, lock=LONG_LOCK) == InProgress()
    assert isinstance(await keys.begin(*OWNER, ASKED, NOW + LONG_LOCK, lock=LONG_LOCK), KeyHeld)


async def test_who_lost_a_key_leaves_it_to_whoever_has_it_now(database: Database) -> None:
    keys = IdempotencyKeys(database)
    lost = await held(keys)
    mine = await held(keys, NOW + LOCK)
    await keys.release(lost)
    await keys.finish(lost, 200, b"{}", None)
    assert await begin(keys, NOW + 2 * LOCK - SECOND) == InProgress()
    await keys.finish(mine, 201, ANSWER, None)
    assert await begin(keys) == AnswerStored(201, ANSWER)


async def test_a_key_whose_work_is_committed_is_not_free_after_a_minute_and_its_loss_is_told(
    database: Database,
) -> None:
    keys = IdempotencyKeys(database)
    hold = await held(keys)
    with keys.noting_commit(hold, nothing):
        async with database.transaction() as connection:
            await connection.execute("select 1")
    await keys.release_uncommitted(hold)
    assert await begin(keys, NOW + LOCK - SECOND) == InProgress()  # it may be answering
    assert await begin(keys, NOW + LOCK) == AnswerLost()
    assert await begin(keys, NOW + LOCK, fingerprint=OTHER) == Reused()
    await keys.finish(hold, 201, ANSWER, None)
    assert await begin(keys, NOW + LOCK) == AnswerStored(201, ANSWER)


async def test_a_key_whose_answer_is_lost_is_resumed_by_one_and_tells_what_was_made(database: Database) -> None:
    keys = IdempotencyKeys(database)
    hold = await held(keys)
    with keys.noting_commit(hold, lambda: "first"):
        async with database.transaction() as connection:
            await connection.execute("select 1")
    assert await begin(keys, NOW + LOCK) == AnswerLost("first")
    assert await keys.resume(*OWNER, NOW + LOCK - SECOND) is None
    mine = await keys.resume(*OWNER, NOW + LOCK)
    assert mine == KeyHeld(*OWNER, NOW + LOCK)
    assert await keys.resume(*OWNER, NOW + LOCK) is None
    assert await begin(keys, NOW + LOCK) == InProgress()
    await keys.finish(hold, 200, b"{}", None)  # of a request that no longer has the key
    with keys.noting_commit(mine, nothing):
        async with database.transaction() as connection:
            await connection.execute("select 1")
    await keys.release_uncommitted(mine)
    assert await begin(keys, NOW + 2 * LOCK) == AnswerLost("first")
    await keys.finish(mine, 200, ANSWER, None)
    assert await begin(keys, NOW + 2 * LOCK) == AnswerStored(200, ANSWER)


@pytest.mark.parametrize("finished", ["before", "after", "never"])
async def test_an_answer_that_nobody_was_shown_is_taken_back_whenever_it_comes(
    database: Database, finished: str
) -> None:
    keys = IdempotencyKeys(database)
    hold = await held(keys)
    with keys.noting_commit(hold, lambda: "first"):
        async with database.transaction() as connection:
            await connection.execute("select 1")
    if finished == "before":
        await keys.finish(hold, 200, ANSWER, None)
    await keys.take_back(hold, "first")
    if finished == "after":
        await keys.finish(hold, 200, ANSWER, None)
    assert await begin(keys, NOW + LOCK - SECOND) == InProgress()
    assert await begin(keys, NOW + LOCK + SECOND) == AnswerLost("first")
    mine = await keys.resume(*OWNER, NOW + LOCK + SECOND)
    assert mine is not None
    await keys.take_back(hold, "first")  # of a request that no longer has the key
    await keys.finish(mine, 200, ANSWER, None)
    assert await begin(keys, NOW + LOCK + SECOND) == AnswerStored(200, ANSWER)


async def test_what_is_not_committed_is_not_taken_back(database: Database) -> None:
    keys = IdempotencyKeys(database)
    hold = await held(keys)
    await keys.take_back(hold, "first")
    await held(keys, NOW + LOCK)


async def test_a_key_whose_work_was_rolled_back_or_done_outside_is_freed(database: Database) -> None:
    keys = IdempotencyKeys(database)
    hold = await held(keys)
    with pytest.raises(ZeroDivisionError), keys.noting_commit(hold, nothing):
        async with database.transaction():
            raise ZeroDivisionError
    async with database.transaction() as connection:
        await connection.execute("select 1")
    await keys.release_uncommitted(hold)
    await held(keys, NOW + SECOND, OTHER)


async def test_a_key_is_freed_only_when_a_commit_under_way_came_to_nothing(database: Database) -> None:
    keys = IdempotencyKeys(database)
    hold = await held(keys)
    async with database.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        with keys.noting_commit(hold, nothing):
            note = before_commit.get()
            assert note is not None
            await note(connection)
        freed = asyncio.create_task(keys.release_uncommitted(hold))
        await until_locked_out(database)
        await transaction.commit()
    await freed
    assert await begin(keys, NOW + LOCK) == AnswerLost()


async def test_many_keys_are_held_and_their_answers_kept_in_one_commit(database: Database) -> None:
    keys = IdempotencyKeys(database)
    owners = [
        (organization, "test", bytes([number]) * 32) for number in range(3) for organization in ("org_2", "org_1")
    ]
    found = [await keys.begin(*owner, ASKED, NOW) for owner in owners]
    held_ones = [each for each in found if isinstance(each, KeyHeld)]
    await keys.release(held_ones[0])
    later = await keys.begin(*owners[1], ASKED, NOW + LOCK)  # its first request died
    async with database.transaction() as connection:
        assert await hold_keys(connection, []) == set()
        assert await hold_keys(connection, held_ones) == set(held_ones[2:])
        freeing = asyncio.create_task(keys.release_uncommitted(held_ones[2]))
        await until_locked_out(database)
        await keep_answers(connection, [(each, AnswerStored(201, each.key_hash)) for each in held_ones[2:]])
        await keep_answers(connection, [(each, AnswerStored(500, b"")) for each in held_ones[2:]])
    await freeing
    for owner in owners[2:]:
        assert await keys.begin(*owner, ASKED, NOW) == AnswerStored(201, owner[2])
    assert await keys.begin(*owners[0], ASKED, NOW) == KeyHeld(*owners[0], NOW)
    assert later == KeyHeld(*owners[1], NOW + LOCK)


async def test_many_keys_are_found_by_their_index(database: Database) -> None:
    for sql in (SQL.hold_keys, SQL.keep_answers):
        found = await plan_for_any(database.hot, sql)
        assert (whole_tables(found), indexes(found)) == (set(), {"idempotency_pkey"})


async def test_a_key_is_new_again_after_a_day(database: Database) -> None:
    keys = IdempotencyKeys(database)
    await keys.finish(await held(keys), 201, b"{}", None)
    day = timedelta(hours=24)
    assert await begin(keys, NOW + day - SECOND) == AnswerStored(201, b"{}")
    await held(keys, NOW + day, OTHER)


async def test_of_many_at_once_one_runs(database: Database) -> None:
    keys = IdempotencyKeys(database)
    found = await asyncio.gather(*(begin(keys) for _ in range(8)))
    assert sorted(type(one).__name__ for one in found) == ["InProgress"] * 7 + ["KeyHeld"]


async def test_old_keys_are_removed(database: Database) -> None:
    keys = IdempotencyKeys(database)
    for index in range(3):
        await keys.begin("org_1", "test", bytes([index]) * 32, ASKED, NOW + timedelta(hours=index))
    assert await purge(database, NOW + timedelta(hours=25)) == 2
    assert await database.fetchval("select count(*) from idempotency") == 1


# Answers that show a contact (C12.6) ----------------------------------------------------------------------------------


async def delete(connection: Connection, contact_id: str) -> None:
    contact = await contacts.get_locked(connection, *OWNER[:2], contact_id)
    assert contact is not None
    await contacts.delete(connection, contact)
    await erase(connection, *OWNER[:2], contact_id)


async def left(database: Database) -> list[bytes | None]:
    """Whatever is kept of answers and of what was asked."""
    rows = await database.fetch("select body, fingerprint from idempotency")
    return [value for row in rows for value in row if value]


async def test_the_answer_that_shows_a_contact_goes_with_it_and_the_key_stays_used(database: Database) -> None:
    keys = IdempotencyKeys(database)
    gone, stays = await insert_people(database, *OWNER[:2], [{}, {}])
    await keys.finish(await held(keys), 201, ANSWER, gone)
    other = await keys.begin("org_1", "test", b"o" * 32, ASKED, NOW)
    assert isinstance(other, KeyHeld)
    await keys.finish(other, 201, ANSWER, stays)
    async with database.transaction() as connection:
        await delete(connection, gone)
    assert await begin(keys) == Erased(201, gone)
    assert await begin(keys, fingerprint=OTHER) == Erased(201, gone)
    assert await keys.begin("org_1", "test", b"o" * 32, ASKED, NOW) == AnswerStored(201, ANSWER)
    assert await left(database) == [ANSWER, ASKED]
    await held(keys, NOW + timedelta(hours=24))


async def test_the_answer_of_one_organization_stays_when_another_deletes_the_same_id(database: Database) -> None:
    keys = IdempotencyKeys(database)
    (mine,) = await insert_people(database, *OWNER[:2], [{}])
    await keys.finish(await held(keys), 201, ANSWER, mine)
    for owner in (("org_2", "test"), ("org_1", "live")):
        await erase(database, *owner, mine)
    assert await begin(keys) == AnswerStored(201, ANSWER)


async def test_an_answer_is_not_kept_when_its_contact_is_deleted_before(database: Database) -> None:
    keys = IdempotencyKeys(database)
    (gone,) = await insert_people(database, *OWNER[:2], [{}])
    hold = await held(keys)
    async with database.transaction() as connection:
        await delete(connection, gone)
    await keys.finish(hold, 201, ANSWER, gone)
    assert await begin(keys) == Erased(201, gone)
    assert await left(database) == []


async def test_an_answer_waits_for_the_deletion_of_its_contact_and_is_then_not_kept(database: Database) -> None:
    keys = IdempotencyKeys(database)
    (gone,) = await insert_people(database, *OWNER[:2], [{}])
    hold = await held(keys)
    async with database.transaction() as connection:
        await delete(connection, gone)
        finishing = asyncio.ensure_future(keys.finish(hold, 201, ANSWER, gone))
        await until_locked_out(database)
    await finishing
    assert await begin(keys) == Erased(201, gone)
    assert await left(database) == []


async def test_a_deletion_waits_for_the_answer_that_shows_its_contact_and_then_erases_it(database: Database) -> None:
    keys = IdempotencyKeys(database)
    (gone,) = await insert_people(database, *OWNER[:2], [{}])
    hold = await held(keys)

    async def deletion() -> None:
        async with database.transaction() as connection:
            await delete(connection, gone)

    async with database.transaction() as connection:
        await IdempotencyKeys(connection).finish(hold, 201, ANSWER, gone)
        deleting = asyncio.ensure_future(deletion())
        await until_locked_out(database)
    await deleting
    assert await begin(keys) == Erased(201, gone)
    assert await left(database) == []


async def test_a_deletion_leaves_a_key_alone_that_is_begun_anew_at_the_same_moment(database: Database) -> None:
    keys = IdempotencyKeys(database)
    (gone,) = await insert_people(database, *OWNER[:2], [{}])
    await keys.finish(await held(keys), 201, ANSWER, gone)
    a_day_later = NOW + timedelta(hours=24)
    async with database.transaction() as connection:
        await IdempotencyKeys(connection).begin(*OWNER, OTHER, a_day_later)
        erasing = asyncio.ensure_future(erase(database, *OWNER[:2], gone))
        await until_locked_out(database)
    await erasing
    assert await begin(keys, a_day_later, OTHER) == InProgress()
    assert await begin(keys, a_day_later) == Reused()


async def test_an_answer_is_kept_while_its_contact_changes(database: Database) -> None:
    keys = IdempotencyKeys(database)
    (stays,) = await insert_people(database, *OWNER[:2], [{}])
    hold = await held(keys)
    async with database.transaction() as connection:
        await connection.execute("update contacts set name = 'Ana' where id = $1", stays)
        await keys.finish(hold, 201, ANSWER, stays)
    assert await begin(keys) == AnswerStored(201, ANSWER)


@pytest.mark.long
async def test_answers_that_were_kept_before_keys_knew_their_contacts_go_with_them_too(database: Database) -> None:
    shipped = read_migrations()
    before = next(index for index, migration in enumerate(shipped) if migration.name == "0012_kept_answers")
    await database.execute("drop schema public cascade; create schema public")
    await migrate(database, shipped[:before])
    known, other = await insert_people(database, *OWNER[:2], [{}, {}])
    gone = known[:-1] + "x"
    metadata = {"contactId": other}
    bodies: dict[bytes, tuple[dict[str, Any] | None, str | None]] = {
        b"contact": ({"id": known, "phone": "+55"}, known),
        b"message": ({"id": "msg_1", "contactId": known, "metadata": metadata}, known),
        b"deleted": ({"id": gone, "phone": "+55"}, gone),
        b"alone": ({"id": "msg_2", "to": "+55"}, None),
        b"opt-out": ({"contactId": known}, None),
        b"none": (None, None),
    }
    for key, (body, _) in bodies.items():
        answer = orjson.dumps({"body": body, "revision": None})
        await database.execute(
            "insert into idempotency (organization_id, env, key_hash, fingerprint, created_at, status, body) "
            "values ('org_1', 'test', $1, 'f', $2, 201, $3)",
            key, NOW, answer,
        )  # fmt: skip
    await migrate(database, shipped)
    rows = {row["key_hash"]: row for row in await database.fetch("select * from idempotency")}
    assert {key: row["subject_id"] for key, row in rows.items()} == {key: shown for key, (_, shown) in bodies.items()}
    assert [key for key, row in rows.items() if row["body"] is None] == [b"deleted"]
    assert rows[b"deleted"]["fingerprint"] == b""
    async with database.transaction() as connection:
        await connection.reload_schema_state()  # its statements were prepared for the tables of another test
        await delete(connection, known)
    rows = {row["key_hash"]: row for row in await database.fetch("select * from idempotency where body is not null")}
    assert set(rows) == {b"alone", b"opt-out", b"none"}
