"""Events of deleted contacts: found along their index, rewritten in blocks, and only those of the contact (C12.6)."""

from collections.abc import Mapping
from typing import Any

import orjson
import pytest
from tests.people import insert_people
from tests.plans import indexes, plan_for_any, plan_of, whole_tables

from recado.storage.contacts import contact_erasures
from recado.storage.contacts.contact_erasures import erase_events
from recado.storage.core.connections.postgres import Database
from recado.storage.core.upkeep.migrate import migrate, read_migrations

KEY = ("org_7", "test", "cnt_7")
INSERT = "insert into events (organization_id, id, env, type, data, test) values ($1, $2, $3, $4, $5::text::json, $6)"
# Of one organization: every tenth is of a contact, which has five.
FILL = """
insert into events (organization_id, id, env, type, channel, message_id, data)
    select 'org_7', 'evt_' || lpad(i::text, 21, '0'), 'test',
        case when i % 10 = 0 then 'contact.created' else 'message.sent' end,
        case when i % 10 <> 0 then 'chatapp' end, case when i % 10 <> 0 then 'msg_1' end,
        case when i % 10 = 0 then json_build_object('id', 'cnt_' || i / 10 % 4000, 'tags', json_build_array()) end
    from generate_series(1, 200000) i;
"""


async def insert(
    database: Database,
    number: int,
    *,
    key: tuple[str, str, str] = KEY,
    type: str = "contact.created",  # noqa: A002
    test: bool = False,
) -> str:
    """An event of a contact; answers its id."""
    event_id = f"evt_{number:021}"
    organization_id, env, contact_id = key
    data = orjson.dumps({"id": contact_id, "note": "secret", "at": 1}).decode()
    await database.execute(INSERT, organization_id, event_id, env, type, data, test)
    return event_id


def kept(type: str, data: Mapping[str, Any]) -> dict[str, Any]:  # noqa: A002
    return {name: value for name, value in data.items() if name != "note"}


async def told(database: Database) -> dict[str, str]:
    return {row["id"]: row["data"] for row in await database.fetch("select id, data from events")}


async def test_every_event_of_a_contact_is_rewritten_block_by_block_and_those_of_others_stay(
    database: Database,
) -> None:
    mine = [await insert(database, number) for number in range(5)]
    theirs = [
        await insert(database, 5, key=("org_8", "test", "cnt_7")),
        await insert(database, 6, key=("org_7", "live", "cnt_7")),
        await insert(database, 7, key=("org_7", "test", "cnt_8")),
        await insert(database, 8, type="apikey.created"),
    ]
    before = await told(database)
    await erase_events(database, KEY, kept=kept, limit=2)
    after = await told(database)
    assert {after[each] for each in mine} == {'{"id":"cnt_7","at":1}'}
    assert [after[each] for each in theirs] == [before[each] for each in theirs]


async def test_an_event_that_holds_no_more_than_is_kept_is_not_written_again(database: Database) -> None:
    await insert(database, 1)
    await erase_events(database, KEY, kept=kept)
    written = await database.fetchval("select xmin::text from events")
    await erase_events(database, KEY, kept=kept)
    assert await database.fetchval("select xmin::text from events") == written


@pytest.mark.parametrize("before", ["", FILL, FILL + "analyze events"], ids=["empty", "full", "counted"])
async def test_events_of_a_contact_are_found_along_their_index(database: Database, before: str) -> None:
    await database.execute(f"alter table events set (autovacuum_enabled = off); {before}")
    given = (*KEY, "", contact_erasures.EVENTS)
    sql = contact_erasures.SQL.events
    for found in (await plan_for_any(database, sql), await plan_of(database, sql, given)):
        assert (indexes(found), whole_tables(found)) == ({"events_contacts"}, set())
        assert "Sort" not in {node["Node Type"] for node in found}
        assert [node for node in found if "Index Cond" in node and "'id'" not in node["Index Cond"]] == []


@pytest.mark.parametrize("filled", [False, True], ids=["empty", "full"])
async def test_an_event_is_rewritten_by_its_whole_key_without_statistics(database: Database, filled: bool) -> None:
    await database.execute("alter table events set (autovacuum_enabled = off);" + (FILL if filled else ""))
    sql = contact_erasures.SQL.erase_events
    ids = [f"evt_{number:021}" for number in range(contact_erasures.EVENTS)]
    for found in (await plan_for_any(database, sql), await plan_of(database, sql, ("org_7", ids, "{}"))):
        assert (indexes(found), whole_tables(found)) == ({"events_pkey"}, set())
        assert [node for node in found if "Index Cond" in node and "= ANY" not in node["Index Cond"]] == []


async def test_events_of_contacts_that_were_deleted_before_are_looked_through_too(database: Database) -> None:
    shipped = read_migrations()
    before = next(index for index, each in enumerate(shipped) if each.name.endswith("_events_of_contacts"))
    await database.execute("drop schema public cascade; create schema public")
    await migrate(database, shipped[:before])
    (known,) = await insert_people(database, *KEY[:2], [{}])
    await insert(database, 1)
    await insert(database, 2, type="contact.opted_out")
    await insert(database, 3, key=(*KEY[:2], known))
    await insert(database, 4, key=(*KEY[:2], "cnt_of_a_sample"), test=True)
    await insert(database, 5, key=(*KEY[:2], "key_1"), type="apikey.created")
    await migrate(database, shipped)
    rows = await database.fetch("select organization_id, env, contact_id, after_id from contact_erasures")
    assert [tuple(row) for row in rows] == [(*KEY, "")]
