"""Opens and clicks of e-mails in their rows: the first moment stays, and each is found by its key (C10.2.9)."""

import asyncio
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from tests.message_rows import insert_messages, message_id
from tests.plans import indexes, plan_for_any, whole_tables
from tests.waiting import until_locked_out

from recado.domain.email.public_tokens import EmailKey
from recado.storage.core.connections.postgres import Database
from recado.storage.core.upkeep.partitions import ensure_partitions
from recado.storage.email import opens
from recado.storage.email.opens import Opened
from recado.storage.messages import message_reads

ORGANIZATION = "org_" + "0" * 21
NOW = datetime.now(UTC).replace(microsecond=0)
LATER = NOW + timedelta(minutes=1)


def key(number: int, env: str = "test") -> EmailKey:
    return EmailKey(ORGANIZATION, env, message_id(NOW, number))


async def stored(database: Database, *numbers: int, **changes: Any) -> None:
    row = {"channel": "email", "recipient": "ana@example.com", **changes}
    await insert_messages(database, ORGANIZATION, "test", [{**row, "id": key(number).message_id} for number in numbers])


async def opened(database: Database, moments: dict[EmailKey, list[datetime]]) -> dict[EmailKey, Opened]:
    async with database.hot.transaction() as connection:
        return await opens.record(connection, moments)


async def moments_of(database: Database, column: str) -> list[datetime | None]:
    return [row[0] for row in await database.fetch(f"select {column} from messages order by id")]


async def test_the_first_open_stays_and_is_told_once(database: Database) -> None:
    await stored(database, 1, 2, campaign_id="spring")
    found = await opened(database, {key(2): [NOW, LATER], key(1): [LATER]})
    assert found == {key(1): Opened("delivered", True, "spring"), key(2): Opened("delivered", True, "spring")}
    assert await moments_of(database, "opened_at") == [LATER, NOW]
    assert await moments_of(database, "updated_at") == [LATER, NOW]
    found = await opened(database, {key(1): [LATER + timedelta(minutes=1)]})
    assert found == {key(1): Opened("delivered", False, "spring")}
    assert await moments_of(database, "opened_at") == [LATER, NOW]


async def test_the_record_of_a_message_holds_both_moments(database: Database) -> None:
    await stored(database, 1, channel="sms")  # a channel that has a policy
    await database.execute("update messages set opened_at = $1, clicked_at = $2", NOW, LATER)
    message = await message_reads.get(database, ORGANIZATION, "test", key(1).message_id)
    assert message is not None
    assert (message.opened_at, message.clicked_at) == (NOW, LATER)


async def test_what_is_no_email_of_theirs_is_left_out(database: Database) -> None:
    await stored(database, 1)
    await stored(database, 2, channel="sms")
    assert await opened(database, {key(2): [NOW], key(3): [NOW], key(1, "live"): [NOW]}) == {}
    assert await moments_of(database, "opened_at") == [None, None]


async def test_the_first_click_stays(database: Database) -> None:
    await stored(database, 1, 2)
    for moment in (NOW, LATER):
        async with database.hot.transaction() as connection:
            await opens.note_clicks(connection, {key(1): moment})
    assert await moments_of(database, "clicked_at") == [NOW, None]


async def test_opens_and_clicks_of_one_month_name_its_table(database: Database) -> None:
    await ensure_partitions(database, NOW)
    await stored(database, 1)
    asked: list[str] = []

    async def fetch(query: str, /, *arguments: Any) -> Any:
        asked.append(query)
        return await database.fetch(query, *arguments)

    connection: Any = SimpleNamespace(fetch=fetch)
    assert await opens.record(connection, {key(1): [NOW]}, months=database.months) == {
        key(1): Opened("delivered", True, None)
    }
    await opens.note_clicks(connection, {key(1): LATER}, months=database.months)
    assert [f"messages_{NOW:%Y_%m}" in query for query in asked] == [True] * 5
    assert await database.fetchrow("select opened_at, clicked_at from messages") == (NOW, LATER)
    old = EmailKey(ORGANIZATION, "test", message_id(NOW - timedelta(days=400), 1))
    asked.clear()
    await opens.record(connection, {key(1): [NOW], old: [NOW]}, months=database.months)
    assert ["messages /*month*/" in query for query in asked] == [True]


async def test_an_open_counts_also_on_a_message_that_another_changes_meanwhile(database: Database) -> None:
    await stored(database, 1, status="sent")
    async with database.transaction() as connection:
        await connection.execute("update messages set status = 'delivered'")
        recording = asyncio.create_task(opened(database, {key(1): [NOW]}))
        await until_locked_out(database)
    await recording
    row = await database.fetchrow("select status, opened_at from messages")
    assert tuple(row) == ("delivered", NOW)


async def test_whom_an_email_went_to_is_found_by_its_key(database: Database) -> None:
    await stored(database, 1)
    assert await opens.recipient(database, key(1)) == "ana@example.com"
    assert await opens.recipient(database, key(2)) is None


@pytest.mark.parametrize("name", ["found", "lock", "open", "click", "recipient"])
async def test_messages_are_found_by_their_keys_alone(database: Database, name: str) -> None:
    """Also by a plan that was made while the table was empty."""
    await stored(database, 1)
    found = await plan_for_any(database.hot, getattr(opens.SQL, name))
    assert not whole_tables(found)
    assert all(each.endswith("_pkey") for each in indexes(found))
