"""The plans of what is asked of contacts: every look-up and every list takes the index that is there for it."""

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from tests.storage.conftest import opened, read_only

from recado.domain.contacts.contact_search import search_mark
from recado.storage.contacts import contact_consents, contact_erasures, contact_reads, contacts, debtor_groups, opt_outs
from recado.storage.contacts.contact_reads import ContactFilter
from recado.storage.core.connections.postgres import Database
from recado.storage.dispatch import withdrawals

ORG, ENV = "org_7", "test"
MARK = search_mark(ORG, ENV)
NOW = datetime(2026, 3, 1, tzinfo=UTC)
FILL = f"""
insert into contacts (organization_id, env, id, phone, phone_hash, name, email, email_key, tags, tag_keys, source,
        external_id, company_id, opt_in_status, cpf_index, search, updated_at)
    select case when i % 4 = 0 then 'org_' || i % 50 else 'org_7' end, 'test', 'cnt_' || lpad(i::text, 21, '0'),
        '+55119' || lpad(i::text, 8, '0'), sha256(i::text::bytea), 'n', 'e' || i, 'e' || i,
        array['t' || i % 500, 'all'], array['t' || i % 500, 'all'],
        case when i % 1000 = 0 then 'manual' else 'import' end, 'x' || i, 'emp_' || i % 900,
        case when i % 1000 = 0 then 'denied' else 'unknown' end, sha256(i::text::bytea),
        array_to_tsvector(array['{MARK}n' || i, '{MARK}+55119' || lpad(i::text, 8, '0')]),
        now() - i * interval '1 minute'
    from generate_series(1, 20000) i;
insert into contact_consents (organization_id, env, contact_id, revision, to_status, at, date_given, recorded_at)
    select organization_id, env, id, 1, 'granted', now(), false, updated_at from contacts;
insert into opt_outs select organization_id, env, 'phone', phone_hash, now(), null from contacts;
insert into debtor_groups (organization_id, env, id, contact_id, position, company, company_key, phones)
    select organization_id, env, 'grp_' || id, id, 0, 'c', 'c', '{{}}' from contacts;
insert into contact_erasures select organization_id, env, id, '', now() + interval '1 day' from contacts;
insert into dispatch (organization_id, id, env, channel, sender_id, class, owner, due_at, ttl_ms, expires_at,
        held_base_ms, force, consent_hash)
    select 'org_7', 'msg_' || lpad(i::text, 21, '0'), 'test', 'chatapp', 'num_1', 1, 'single', now(), 1, now(), 0,
        false, case when i % 2 = 0 then i end
    from generate_series(1, 20000) i;
analyze;
"""


@pytest.fixture(scope="module")
def prepared(postgres: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Contacts of 50 organizations, most of them of one, with what belongs to them."""
    with read_only(postgres, lambda db: db.execute(FILL)) as arguments:
        yield arguments


@pytest.fixture
async def filled(prepared: dict[str, Any]) -> AsyncIterator[Database]:
    async with opened(prepared) as db:
        yield db


def nodes(plan: Any) -> list[Any]:
    """A plan and everything below it."""
    return [plan, *(node for child in plan.get("Plans", []) for node in nodes(child))]


async def indexes(db: Database, sql: str, arguments: Any) -> set[str]:
    """The indexes that a statement reads; a table that it reads as a whole stands there by its own name."""
    (plan,) = orjson.loads(await db.fetchval(f"explain (format json) {sql}", *arguments))
    every = nodes(plan["Plan"])
    whole = {node["Relation Name"] for node in every if node["Node Type"] == "Seq Scan"}
    return {node["Index Name"] for node in every if "Index Name" in node} | whole


async def test_every_look_up_takes_its_index(filled: Database) -> None:
    one = (ORG, ENV)
    names = ([0], [ORG], [ENV], ["phone"], [b"x" * 32])
    asked: list[tuple[str, tuple[Any, ...], str]] = [
        (contacts.SQL.by_id, (*one, "cnt_7"), "contacts_pkey"),
        (contacts.SQL.by_phones, (*one, ["+5511900000007"]), "contacts_phone"),
        (contacts.SQL.by_external_ids, (*one, ["x7"]), "contacts_external_id"),
        (contacts.SQL.by_email, (*one, "e7"), "contacts_email"),
        (opt_outs.SQL.entries, names, "opt_outs_pkey"),
        (contact_consents.SQL.of_contact, (*one, "cnt_7", 1_000, NOW, 100), "contact_consents_pkey"),
        (contact_consents.SQL.purge, (NOW,), "contact_consents_age"),
        (debtor_groups.SQL.of_contacts, (*one, ["cnt_7"]), "debtor_groups_contact"),
        (contact_erasures.SQL.due, (NOW, 10), "contact_erasures_due"),
    ]
    for sql, arguments, index in asked:
        assert await indexes(filled, sql, arguments) == {index}, sql


async def test_a_batch_of_new_contacts_probes_the_registry_and_finds_holders_by_their_keys(filled: Database) -> None:
    given = (["org_7"], ["test"], ["cnt_1"], ["+5511900000007"], ["x7"])
    assert await indexes(filled, contacts.SQL.holders, given) == {"contacts_phone", "contacts_external_id"}


async def test_a_refusal_finds_queued_messages_by_their_recipient(filled: Database) -> None:
    refused = (["org_7"], ["test"], [7], ["msg_9"])
    asked = [
        (withdrawals.SQL.opted_out, (*refused, NOW, "opted_out: x", ["queued"], 500, False, "opted_out")),
        (withdrawals.SQL.left, (*refused, 1_000)),
    ]
    for sql, arguments in asked:
        found = await indexes(filled, sql, arguments)
        assert "dispatch_consent" in found
        assert "dispatch" not in found


async def test_a_list_is_read_along_the_index_of_its_filter(filled: Database) -> None:
    filters: list[tuple[dict[str, Any], str]] = [
        ({}, "contacts_pkey"),
        ({"opt_in_status": "denied"}, "contacts_opt_in"),
        ({"source": "manual"}, "contacts_source"),
        ({"external_id": "x7"}, "contacts_external_id"),
        ({"company_id": "emp_7"}, "contacts_company"),
        ({"document": ("cpf_index", b"x" * 32)}, "contacts_cpf"),
        ({"updated_since": NOW}, "contacts_updated"),
    ]
    for wanted, index in filters:
        asked = ContactFilter(organization_id=ORG, env=ENV, **wanted)
        assert await indexes(filled, *contact_reads.page_query(asked, limit=51)) == {index, "contacts_pkey"}, wanted
        if index not in {"contacts_pkey", "contacts_updated"}:  # most of the table is counted there
            assert await indexes(filled, *contact_reads.count_query(asked)) == {index}


async def test_a_search_takes_its_index_for_the_few_and_the_order_for_the_many(filled: Database) -> None:
    few: list[tuple[dict[str, Any], str]] = [
        ({"q": "n77"}, "contacts_search"),
        ({"q": "+55 11 90000-77"}, "contacts_search"),
        ({"tag": "T7"}, "contacts_tags"),
    ]
    for wanted, index in few:
        asked = ContactFilter(organization_id=ORG, env=ENV, **wanted)
        assert await indexes(filled, *contact_reads.search_query(asked, limit=51)) == {index, "contacts_pkey"}, wanted
    many = ContactFilter(organization_id=ORG, env=ENV, tag="all")
    assert await indexes(filled, *contact_reads.page_query(many, limit=51)) == {"contacts_pkey"}


async def test_many_matches_are_listed_in_order_and_said_to_be_many(filled: Database) -> None:
    for wanted in ({"q": "n"}, {"tag": "all"}):
        page = await contact_reads.list_page(filled, ContactFilter(organization_id=ORG, env=ENV, **wanted), limit=3)
        assert (page.total, page.estimated, page.more) == (10_001, True, True)
        assert [int(contact.id[4:]) for contact in page.items] == [19_999, 19_998, 19_997]
    few = await contact_reads.list_page(filled, ContactFilter(organization_id=ORG, env=ENV, q="n1999"), limit=3)
    assert (few.total, few.estimated) == (9, False)
