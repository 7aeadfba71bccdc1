"""Push messages that are past their time go with all that is theirs, in small pages, and nothing else does (C32)."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from recado.domain.core.ids import PUSH_MESSAGE, lowest_id
from recado.storage.core.connections.postgres import Database
from recado.storage.push import push_retention

NOW = datetime(2031, 6, 15, 12, tzinfo=UTC)
CONTENT_KEPT_FROM = datetime(2030, 6, 15, 12, tzinfo=UTC)
KEPT_FROM = datetime(2029, 6, 15, 12, tzinfo=UTC)
MOMENT = timedelta(milliseconds=1)
WHERE = ("org_" + "1" * 21, "test")
OTHER = ("org_" + "2" * 21, "test")
BLOCK = 2  # so that few rows are several pages
DEVICES = 5


async def store(
    database: Database, *moments: datetime, where: tuple[str, str] = WHERE, is_open: bool = False
) -> list[str]:
    """A message of each moment to five devices, with content; their ids."""
    ids = [lowest_id(PUSH_MESSAGE, at)[:-2] + f"{place:02}" for place, at in enumerate(moments)]
    for each in ids:
        await database.execute(
            "insert into push_messages (organization_id, env, id, status, open, origin, rate_kind, unit_coins, billed, "
            "reach, title, body, platforms, deep_link, image_url, actions, data, dispatch_key, due_at, updated_at) "
            "values ($1, $2, $3, 'completed', $4, 'api', 'rich', 4, true, 5, 'Hello', 'News', '{ios}', "
            "'https://a.example', 'https://a.example/i', '[{\"label\": \"Go\"}]', '{\"order\": 7}', '', now(), now())",
            *where, each, is_open,
        )  # fmt: skip
        await database.execute("insert into push_counts values ($1, $2, $3, 'ios', 5, 5, 0, 0, 0)", *where, each)
        for number in range(3):
            await database.execute(
                "insert into push_blocks values ($1, $2, $3, $4, 'app_1', 'ios', '{dev_1}', false)",
                *where,
                each,
                number,
            )
        for place in range(DEVICES):
            await database.execute(
                "insert into push_dispatches values ($1, $2, $3, $4, 'dev_1', 'app_1', 'ios', 'delivered', null, 1)",
                *where, each, place,
            )  # fmt: skip
    return ids


async def messages_in(database: Database, table: str, column: str = "message_id") -> Sequence[str]:
    return [row[0] for row in await database.fetch(f"select distinct {column} from {table} order by 1")]


async def test_a_message_goes_after_twenty_four_months_with_what_became_of_its_devices(database: Database) -> None:
    await store(database, *(KEPT_FROM - day * timedelta(days=1) - MOMENT for day in range(5)))
    young = await store(database, KEPT_FROM, KEPT_FROM + timedelta(days=300), NOW)
    others = await store(database, KEPT_FROM - timedelta(days=7), where=OTHER)
    await push_retention.purge(database, *WHERE, NOW, block=BLOCK)
    kept = sorted([*young, *others])
    assert await messages_in(database, "push_messages", "id") == kept
    for table in ("push_counts", "push_blocks", "push_dispatches"):
        assert await messages_in(database, table) == kept
    assert await database.fetchval("select count(*) from push_dispatches") == DEVICES * len(kept)


async def test_one_that_has_devices_left_stays_with_its_content(database: Database) -> None:
    old = await store(database, KEPT_FROM - MOMENT, is_open=True)
    await push_retention.clear_contents(database, *WHERE, NOW, block=BLOCK)
    await push_retention.purge(database, *WHERE, NOW, block=BLOCK)
    assert await messages_in(database, "push_dispatches") == old
    assert await database.fetchval("select title from push_messages") == "Hello"


async def test_a_round_that_was_broken_off_is_finished_by_the_next(database: Database) -> None:
    (old,) = await store(database, KEPT_FROM - MOMENT)
    await database.execute("delete from push_dispatches where place < 3")
    await database.execute("delete from push_blocks where number = 0")
    await push_retention.purge(database, *WHERE, NOW, block=BLOCK)
    for table, column in (("push_messages", "id"), ("push_counts", "message_id"), ("push_dispatches", "message_id")):
        assert old not in await messages_in(database, table, column)


async def test_what_was_shown_goes_after_twelve_months_and_the_numbers_stay(database: Database) -> None:
    old = await store(database, *(CONTENT_KEPT_FROM - day * timedelta(days=1) - MOMENT for day in range(5)))
    young = await store(database, CONTENT_KEPT_FROM, NOW)
    others = await store(database, CONTENT_KEPT_FROM - timedelta(days=9), where=OTHER)
    await push_retention.clear_contents(database, *WHERE, NOW, block=BLOCK)
    with_something = (
        "select id from push_messages where title is not null or body is not null or deep_link is not null "
        "or image_url is not null or data is not null or actions <> '[]' order by id"
    )
    assert [row["id"] for row in await database.fetch(with_something)] == sorted([*young, *others])
    assert await messages_in(database, "push_counts") == sorted([*old, *young, *others])
    before = await database.fetch("select xmin from push_messages")
    await push_retention.clear_contents(database, *WHERE, NOW, block=BLOCK)
    assert await database.fetch("select xmin from push_messages") == before  # nothing is written twice
