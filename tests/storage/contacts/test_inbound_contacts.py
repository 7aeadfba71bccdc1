"""Contacts of people who write, as rows: found and locked by phone, moved on, renamed (C28)."""

import asyncio
from datetime import UTC, datetime, timedelta

import orjson
import pytest
from tests.people import contact_id, insert_people, phone
from tests.waiting import until_locked_out

from recado.domain.contacts.contact import Contact
from recado.domain.contacts.contact_search import search_mark, search_query
from recado.storage.contacts import inbound_contacts
from recado.storage.core.connections.postgres import Database

ORG, ENV = "org_7", "test"
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


async def locked(database: Database, *numbers: int) -> list[Contact]:
    async with database.transaction() as connection:
        found = await inbound_contacts.locked(connection, [(ORG, ENV, phone(number)) for number in numbers])
    assert all(person == (each.organization_id, each.env, each.phone) for person, each in found.items())
    return list(found.values())


async def test_contacts_are_found_by_phone_within_their_environment(database: Database) -> None:
    await insert_people(database, ORG, ENV, [{}, {}, {}])
    await insert_people(database, ORG, "live", [{"phone": phone(9)}], first=9)
    assert [each.id for each in await locked(database, 3, 1, 3, 9, 500)] == [contact_id(1), contact_id(3)]
    assert await locked(database) == []


async def test_whoever_is_locked_waits_for_the_first_to_end(database: Database) -> None:
    await insert_people(database, ORG, ENV, [{}])
    async with database.transaction() as connection:
        await inbound_contacts.locked(connection, [(ORG, ENV, phone(1))])
        second = asyncio.ensure_future(locked(database, 1))
        await until_locked_out(database)
        await connection.execute("update contacts set name = 'Ana'")
    assert [each.name for each in await second] == ["Ana"]


async def test_an_interaction_moves_on_only_and_raises_no_revision(database: Database) -> None:
    await insert_people(database, ORG, ENV, [{"unreachable": ["sms", "chatapp"]}, {}])
    first, second = await locked(database, 1, 2)
    await inbound_contacts.touch(database, "chatapp", [(first, NOW), (second, NOW)])
    await inbound_contacts.touch(database, "chatapp", [(first, NOW - timedelta(1)), (second, NOW + timedelta(1))])
    rows = await database.fetch(
        "select last_interaction_at, unreachable, revision, updated_at from contacts order by id"
    )
    assert [tuple(row) for row in rows] == [
        (NOW, ["sms"], 1, first.updated_at),
        (NOW + timedelta(1), [], 1, second.updated_at),
    ]


async def test_who_answers_by_sms_or_rcs_is_reached_by_both(database: Database) -> None:
    await insert_people(database, ORG, ENV, [{"unreachable": ["rcs", "chatapp", "sms"], "last_interaction_at": NOW}])
    (contact,) = await locked(database, 1)
    await inbound_contacts.touch(database, "sms", [(contact, NOW - timedelta(1))])
    assert await database.fetchval("select unreachable from contacts") == ["chatapp"]


async def test_a_new_profile_name_is_a_revision_and_is_found(database: Database) -> None:
    await insert_people(database, ORG, ENV, [{"name": "Ana"}, {}])
    first, second = await locked(database, 1, 2)
    (renamed,) = await inbound_contacts.rename(database, [(first, "Conceição \x1f Lima")], NOW)
    assert await locked(database, 1, 2) == [renamed, second]
    assert (renamed.revision, renamed.updated_at, renamed.name) == (2, NOW, "Ana")
    for term in ("conc", "lima", "ana", phone(1)):
        found = await database.fetchval(
            "select id from contacts where search @@ $1::text::tsquery", search_query(search_mark(ORG, ENV), term)
        )
        assert found == first.id
    assert await inbound_contacts.rename(database, [], NOW) == []


@pytest.mark.parametrize("analyzed", [True, False])
async def test_the_look_up_takes_the_index_of_phones(database: Database, analyzed: bool) -> None:
    await insert_people(database, ORG, ENV, [{} for _ in range(3_000)])
    if analyzed:
        await database.execute("analyze contacts")
    explain = f"explain (analyze, format json) {inbound_contacts.SQL.locked.rstrip().rstrip(';')}"
    plan = orjson.loads(await database.fetchval(explain, [ORG] * 2, [ENV] * 2, [phone(1), phone(2_000)]))
    text = orjson.dumps(plan).decode()
    assert "contacts_phone" in text
    assert "Seq Scan" not in text
    assert "contacts_pkey" in text
