"""What is past its time goes, block by block, and nothing else does (C32)."""

import asyncio
import os
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from tests.waiting import until

from recado.domain.core.ids import AUDIT, MESSAGE, NUMBER, ORGANIZATION, IdSource, lowest_id
from recado.engine.clock import VirtualClock
from recado.storage.access.organizations import create_organization
from recado.storage.core.connections.postgres import Database
from recado.storage.core.upkeep import retention
from recado.storage.core.upkeep.partitions import ensure_partitions

NOW = datetime(2031, 6, 15, 12, tzinfo=UTC)
NUMBER_ID = NUMBER + "1" * 21
IDS = IdSource(VirtualClock(NOW), random.Random(8))
BLOCK = 2  # so that few rows are several pages


@pytest.fixture
async def organization(database: Database) -> str:
    """An organization, in a database without the months of the real present, which are long past at `NOW`."""
    await retention.drop_months(database, NOW)
    async with database.transaction() as connection:
        made = await create_organization(connection, IDS, name="Acme", now=NOW, random_bytes=os.urandom)
    return made.organization.id


async def store(database: Database, organization_id: str, *moments: datetime, direction: str = "outbound") -> list[str]:
    """A message of each moment, with content and known by its provider's id, or by both; their ids."""
    ids = []
    for place, at in enumerate(moments):
        await ensure_partitions(database, at, months_ahead=0)
        ids.append(lowest_id(MESSAGE, at)[:-2] + f"{place:02}")
        await database.execute(
            "insert into messages (organization_id, env, channel, id, direction, status, type, sender_id, recipient, "
            "recipient_hash, class, force, payload, template_vars, provider_message_id, updated_at) "
            "values ($1, 'test', 'chatapp', $2::text, $4, 'sent', 'text', $3, '+1', 1, 1, false, '{}', '[]', "
            "case when $4 = 'outbound' then 'p-' else '' end || $2::text, now())",
            organization_id, ids[-1], NUMBER_ID, direction,
        )  # fmt: skip
        known = (
            "insert into inbound_ids select organization_id, sender_id, id, id from messages where id = $1"
            if direction == "inbound"
            else "insert into provider_messages select case account when 'a' then 'p-' else '' end || id, account, "
            "'bridge', organization_id, env, channel, id from messages, unnest('{a,b}'::text[]) account where id = $1"
        )
        await database.execute(known, ids[-1])
    return ids


async def queue(database: Database, organization_id: str, message_id: str) -> None:
    await database.execute(
        "insert into dispatch (organization_id, id, env, channel, sender_id, class, owner, due_at, ttl_ms, expires_at, "
        "held_base_ms, force) values ($1, $2, 'test', 'chatapp', $3, 1, 'single', now(), 1, now(), 0, false)",
        organization_id, message_id, NUMBER_ID,
    )  # fmt: skip


async def with_content(database: Database) -> set[str]:
    found = "select id from messages where payload is not null and template_vars is not null"
    gone = "select count(*) from messages where (payload is null) <> (template_vars is null)"
    assert await database.fetchval(gone) == 0
    return {row["id"] for row in await database.fetch(found)}


async def column(database: Database, query: str) -> list[Any]:
    return [row[0] for row in await database.fetch(query)]


async def clear(database: Database, now: datetime = NOW) -> None:
    await retention.clear_contents(database, now, block=BLOCK)


async def test_content_goes_after_twelve_months_to_the_moment(database: Database, organization: str) -> None:
    border = datetime(2030, 6, 15, 12, tzinfo=UTC)
    moment = timedelta(milliseconds=1)
    old = await store(database, organization, *(border - day * timedelta(days=9) - moment for day in range(12)))
    other = await store(database, ORGANIZATION + "0" * 21, border - moment, direction="inbound")
    young = await store(database, organization, border, border + timedelta(days=40), NOW)
    assert await with_content(database) == {*old, *other, *young}
    await clear(database)
    assert await with_content(database) == set(young)
    await clear(database, NOW + moment)
    assert await with_content(database) == set(young[1:])


async def test_the_subject_of_an_email_goes_with_the_content_and_its_size_stays(
    database: Database, organization: str
) -> None:
    await store(database, organization, NOW - timedelta(days=400))
    details = '{"subject": "Your order", "bodyBytes": 7}'
    await database.execute(
        "update messages set payload = null, template_vars = null, details = $1::text::jsonb", details
    )
    await clear(database)
    assert await database.fetchval("select details::text from messages") == '{"bodyBytes": 7}'


async def test_what_has_still_to_be_sent_keeps_its_content_until_it_left(database: Database, organization: str) -> None:
    old = await store(database, organization, *(datetime(2030, 2, day, tzinfo=UTC) for day in range(1, 6)))
    await queue(database, organization, old[2])
    await clear(database)
    assert await with_content(database) == {old[2]}
    await database.execute("delete from dispatch")
    await clear(database)
    assert await with_content(database) == set()


async def test_a_month_without_content_is_not_read_again(database: Database, organization: str) -> None:
    (finished, begun) = await store(
        database, organization, datetime(2030, 5, 31, tzinfo=UTC), datetime(2030, 6, 1, tzinfo=UTC)
    )
    await clear(database)
    await database.execute("update messages set payload = '{}', template_vars = '[]'")
    await clear(database)
    assert await with_content(database) == {finished}
    assert begun not in await with_content(database)


async def months(database: Database) -> set[str]:
    rows = await database.fetch("select relname from pg_class where relname ~ '^messages_20(28|29|30|31)_..$'")
    return {row["relname"] for row in rows}


async def test_months_go_whole_after_twenty_four_with_what_finds_their_messages(
    database: Database, organization: str
) -> None:
    await store(database, organization, *(datetime(2029, 5, day, tzinfo=UTC) for day in range(1, 8)))
    await store(database, organization, datetime(2029, 4, 1, tzinfo=UTC), direction="inbound")
    last = datetime(2029, 6, 1, tzinfo=UTC)
    kept = await store(database, organization, last)
    kept += await store(database, organization, last + timedelta(hours=1), direction="inbound")
    before = await months(database)
    gone = ["messages_2029_03", "messages_2029_04", "messages_2029_05"]
    assert await retention.drop_months(database, NOW, block=BLOCK) == gone
    assert before - await months(database) == set(gone)
    assert await column(database, "select id from messages order by id") == kept
    assert await column(database, "select distinct message_id from provider_messages") == kept[:1]
    assert await column(database, "select message_id from inbound_ids") == kept[1:]
    assert await retention.drop_months(database, NOW, block=BLOCK) == []


async def test_a_month_of_which_something_has_still_to_be_sent_stays(database: Database, organization: str) -> None:
    (waiting,) = await store(database, organization, datetime(2029, 2, 1, tzinfo=UTC))
    await queue(database, organization, waiting)
    assert await retention.drop_months(database, NOW) == ["messages_2029_01"]
    assert await column(database, "select distinct message_id from provider_messages") == [waiting]
    await database.execute("delete from dispatch")
    assert await retention.drop_months(database, NOW) == ["messages_2029_02"]


async def test_a_month_that_was_detached_already_is_dropped_all_the_same(database: Database, organization: str) -> None:
    await store(database, organization, datetime(2029, 2, 1, tzinfo=UTC))
    await database.execute("alter table messages detach partition messages_2029_02")
    assert await retention.drop_months(database, NOW) == ["messages_2029_01", "messages_2029_02"]
    assert await column(database, "select message_id from provider_messages") == []


async def test_a_month_whose_detachment_ends_by_itself_is_dropped_all_the_same(
    database: Database, organization: str
) -> None:
    await store(database, organization, datetime(2029, 2, 1, tzinfo=UTC))

    class Listed:
        """Months are listed, and then a detachment that was broken off comes to its end in the server."""

        async def fetch(self, statement: str) -> Any:
            listed = await database.fetch(statement)
            await database.execute("alter table messages detach partition messages_2029_02")
            return listed

        def __getattr__(self, name: str) -> Any:
            return getattr(database, name)

    dropped = await retention.drop_months(cast("Database", Listed()), NOW)
    assert dropped == ["messages_2029_01", "messages_2029_02"]


async def test_a_drop_that_waits_for_a_reader_holds_up_nobody_and_is_finished_later(
    database: Database, organization: str
) -> None:
    await store(database, organization, datetime(2029, 2, 1, tzinfo=UTC), NOW)
    async with database.transaction() as reading:
        await reading.fetch("select * from messages")
        dropping = asyncio.create_task(retention.drop_months(database, NOW))

        async def half_detached() -> bool:
            return bool(await database.fetchval("select exists (select from pg_inherits where inhdetachpending)"))

        await until(half_detached, "the drop waits for the reader")
        async with asyncio.timeout(60):
            (new,) = await store(database, organization, NOW + timedelta(minutes=1))
        dropping.cancel()
        with pytest.raises(asyncio.CancelledError):
            await dropping
    assert await retention.drop_months(database, NOW) == ["messages_2029_01", "messages_2029_02"]
    assert new in await column(database, "select id from messages")


async def fill(database: Database, table: str, organization_id: str, ages: Sequence[timedelta]) -> None:
    await database.execute(
        f"insert into {table} select $1, $2, n, at from unnest($3::timestamptz[]) with ordinality as g (at, n)",
        organization_id, NUMBER_ID, [NOW - age for age in ages],
    )  # fmt: skip


async def test_recipients_and_windows_go_when_they_count_no_more(database: Database, organization: str) -> None:
    hour = timedelta(hours=1)
    ages = [26 * hour, hour, 90 * hour, 24 * hour, 26 * hour, 25 * hour, 400 * hour]
    for table in ("tier_recipients", "chat_windows"):
        await fill(database, table, organization, ages)
        await fill(database, table, ORGANIZATION + "0" * 21, ages)
    await retention.purge_windows(database, NOW, block=BLOCK)
    for table in ("tier_recipients", "chat_windows"):
        rows = await column(database, f"select recipient_hash from {table} order by organization_id, recipient_hash")
        assert rows == [2, 4, 6, 2, 4, 6]


async def test_a_recipient_that_is_written_to_at_this_moment_is_not_waited_for(
    database: Database, organization: str
) -> None:
    await fill(database, "tier_recipients", organization, [timedelta(days=3)] * 3)
    async with database.transaction() as connection:
        await connection.execute("update tier_recipients set last_at = $1 where recipient_hash = 2", NOW)
        async with asyncio.timeout(60):
            await retention.purge_windows(database, NOW, block=BLOCK)
    assert await column(database, "select recipient_hash from tier_recipients") == [2]


async def test_minutes_of_numbers_go_with_the_messages_that_they_count(database: Database, organization: str) -> None:
    sender_id = await database.fetchval("select id from numbers where organization_id = $1 limit 1", organization)
    border = datetime(2029, 6, 15, 12, tzinfo=UTC)
    await database.execute(
        "insert into sender_minutes select $1, $2, $3::timestamptz + n * interval '1 minute', 1, 0, 0 "
        "from generate_series(-5, 1) n",
        organization, sender_id, border,
    )  # fmt: skip
    assert await retention.purge_minutes(database, NOW, block=BLOCK) == 5
    assert await column(database, "select min(minute) from sender_minutes") == [border]


async def test_audit_entries_go_after_five_years(database: Database, organization: str) -> None:
    border = datetime(2026, 6, 15, 12, tzinfo=UTC)
    await database.execute("delete from audit")
    for at in (*(border - timedelta(days=days, milliseconds=1) for days in range(5)), border, NOW):
        await database.execute(
            "insert into audit (organization_id, id, actor_type, actor_id, action, details) "
            "values ($1, $2, 'system', 'system', 'number.delete', '{}')",
            organization, lowest_id(AUDIT, at),
        )  # fmt: skip
    assert await retention.purge_audit(database, organization, NOW, block=BLOCK) == 5
    assert await column(database, "select id from audit order by id") == [lowest_id(AUDIT, at) for at in (border, NOW)]
