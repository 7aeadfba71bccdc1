"""Contacts that refuse, and the messages of one that is deleted, are found by their keys before anyone counted them."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from tests.plans import indexes, plan_for_any, whole_tables
from tests.storage.conftest import opened, read_only

from recado.storage.contacts import contacts
from recado.storage.core.connections.postgres import Database
from recado.storage.dispatch import withdrawals

CONTACTS = """
insert into contacts (organization_id, env, id, phone, phone_hash, email, email_key, source, opt_in_status, search,
        updated_at)
    select 'org_7', 'test', 'cnt_' || lpad(i::text, 21, '0'), '+55119' || lpad(i::text, 8, '0'), '', 'a', 'a', 'api',
        'unknown', '', now() + i * interval '1 second'
    from generate_series(1, 20000) i;
"""
QUEUE = """
insert into dispatch (organization_id, id, env, channel, sender_id, class, owner, due_at, ttl_ms, expires_at,
        held_base_ms, force)
    select 'org_7', 'msg_' || lpad(i::text, 21, '0'), 'test', 'chatapp', 'num_1', 1, 'single', now(), 1, now(), 0, false
    from generate_series(1, 20000) i;
"""


@pytest.fixture(scope="module", params=["", CONTACTS + QUEUE], ids=["empty", "full"])
def prepared(postgres: dict[str, Any], request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """For all of them: statements are planned and not run."""

    async def fill(db: Database) -> None:
        for table in ("contacts", "dispatch"):
            await db.execute(f"alter table {table} set (autovacuum_enabled = off)")
        if request.param:
            await db.execute(request.param)

    with read_only(postgres, fill) as arguments:
        yield arguments


@pytest.fixture
async def uncounted(prepared: dict[str, Any]) -> AsyncIterator[Database]:
    async with opened(prepared) as db:
        yield db


@pytest.mark.parametrize(
    ("sql", "index", "condition"),
    [
        (contacts.SQL.by_email, "contacts_email", "email_key = $3"),
        (contacts.SQL.lock, "contacts_pkey", "<= g.id"),
        (contacts.SQL.by_ids, "contacts_pkey", "<= g.id"),
        (contacts.SQL.save_contacts, "contacts_pkey", ">= g.id"),
    ],
    ids=["by_email", "lock", "by_ids", "save_contacts"],
)
async def test_contacts_that_refuse_are_found_by_the_index_that_names_them(
    uncounted: Database, sql: str, index: str, condition: str
) -> None:
    found = await plan_for_any(uncounted, sql)
    assert (indexes(found), whole_tables(found)) == ({index}, set())
    assert [node for node in found if "Index Cond" in node and condition not in node["Index Cond"]] == []


async def test_what_waits_for_who_refuses_is_found_by_the_index_that_names_them(uncounted: Database) -> None:
    for sql in (withdrawals.SQL.opted_out, withdrawals.SQL.left):
        found = await plan_for_any(uncounted, sql)
        conditions = {node["Index Name"]: node["Index Cond"] for node in found if "Index Cond" in node}
        assert "consent_hash = g.consent_hash" in conditions["dispatch_consent"]
        assert whole_tables(found) <= {"withdrawals"}  # mostly empty


async def test_the_next_of_each_group_are_found_by_skipping_along_the_key(database: Database) -> None:
    await database.execute(
        "insert into withdrawals select 'org_' || i % 3, 'test', 'opted_out', i::text, 'msg_1' "
        "from generate_series(1, 20000) i"
    )
    await database.execute("analyze withdrawals")
    found = await plan_for_any(database, withdrawals.SQL.next, "100")
    assert (indexes(found), whole_tables(found)) == ({"withdrawals_pkey"}, set())


async def test_a_deleted_contacts_messages_are_found_by_its_id_in_their_order(uncounted: Database) -> None:
    found = await plan_for_any(uncounted, withdrawals.SQL.waiting_of_contact)
    assert {node["Node Type"] for node in found} <= {"Limit", "Append", "Merge Append", "Index Scan"}
    assert whole_tables(found) == set()


async def test_a_deleted_contacts_messages_leave_the_queue_by_their_keys(uncounted: Database) -> None:
    found = await plan_for_any(uncounted, withdrawals.SQL.of_contact)
    queue = [node for node in found if node.get("Relation Name") == "dispatch" and "Index Name" in node]
    assert {node["Index Name"] for node in queue} <= {"dispatch_pkey", "dispatch_repeats"}  # few wait for a repeat
    by_key = [node["Index Cond"] for node in queue if node["Index Name"] == "dispatch_pkey"]
    assert by_key
    assert all("(id)::text = ANY" in condition for condition in by_key)
    assert whole_tables(found) == set()
