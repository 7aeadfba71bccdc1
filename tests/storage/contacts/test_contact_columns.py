"""What is written of a contact is what its table has, and a line of COPY stores what a statement does."""

import random
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from recado.domain.contacts.consent import ConsentStatus
from recado.domain.contacts.contact import FIELDS, Contact, Kind
from recado.domain.core.ids import CONTACT, IdSource, created_at
from recado.engine.clock import SystemClock
from recado.storage.contacts import contacts
from recado.storage.contacts.contact_columns import COLUMNS, SAVED, copy_new, line
from recado.storage.core.connections.postgres import Database

IDS = IdSource(SystemClock(), random.Random(7))
AT = datetime(2026, 2, 3, 4, 5, 6, 789_012, tzinfo=UTC)
KEPT_ELSEWHERE = {"last_interaction_at", "push_devices", "revision", "unreachable"}
TEXT = 'tab\t, line\n, back\\slash \\N, "quote", \x1e and \x1f, é'


def contact(serial: int, **values: Any) -> Contact:
    contact_id = IDS.new(CONTACT)
    return Contact(
        organization_id="org_1", env="test", id=contact_id, phone=f"+55119{serial:08}", phone_hash=b"\0\x1f\xff",
        updated_at=created_at(contact_id), **values,
    )  # fmt: skip


def full(serial: int) -> Contact:
    """One with a value in every column."""
    texts = {each.name: TEXT for each in FIELDS if each.kind is Kind.TEXT} | {"external_id": f"{TEXT}{serial}"}
    return contact(
        serial, **texts, email="o'b\\x@ex.com", avatar_url="https://x.y/\\a", source="api",
        cpf_cipher="c1", cnpj_cipher="c2", birth_date_cipher="c3", cpf_index=b"\x1e", cnpj_index=b"\x1f",
        attributes={TEXT: [TEXT, 1.5]}, tags=("São", 'a"b', "c\\d", "e,f"),
        external_ids={"integration_a": TEXT}, company_id="emp_1", company_role="outro",
        opt_in_status=ConsentStatus.DENIED, opt_in_source=TEXT, opt_in_at=AT, opt_in_ip="::1", opt_in_user_agent=TEXT,
        opt_in_revoked_at=AT, opt_in_revoked_reason=TEXT, chatapp_user_id="BR.1",
    )  # fmt: skip


async def test_each_column_of_the_table_is_written_or_has_a_place_where_it_is(database: Database) -> None:
    rows = await database.fetch("select column_name from information_schema.columns where table_name = 'contacts'")
    assert {row["column_name"] for row in rows} == COLUMNS.keys() | KEPT_ELSEWHERE
    assert {name for name in COLUMNS if getattr(full(0), name, True) is None} == set()


@pytest.mark.parametrize("make", [contact, full])
async def test_a_statement_and_a_line_of_copy_store_the_record_as_it_is(database: Database, make: Any) -> None:
    inserted, copied = make(1), make(2)
    assert await contacts.insert(database, [inserted], unless_opted_out=False) == {inserted.id}
    async with database.transaction() as connection:
        await copy_new(connection, [line(copied)])
    for each in (inserted, copied):
        assert await contacts.get(database, "org_1", "test", each.id) == each
    only = "id, phone, external_id, search, updated_at"
    first, second = await database.fetch(f"select to_jsonb(c) - '{{{only}}}'::text[] as c from contacts c")
    assert first == second


async def test_a_change_of_one_and_of_many_writes_the_same(database: Database) -> None:
    before = [contact(number) for number in range(3)]
    await contacts.insert(database, before, unless_opted_out=False)
    given = full(9)
    values = {name: getattr(given, name) for name in SAVED if hasattr(given, name) and name != "external_id"}
    after = [replace(each, **values) for each in before]
    saved = await contacts.save(database, before[0], after[0], AT)
    assert await contacts.save_many(database, "org_1", "test", after[1:], AT) == {each.id for each in after[1:]}
    stored = await contacts.by_ids(database, "org_1", "test", [each.id for each in before])
    assert stored == [replace(each, revision=2, updated_at=AT) for each in after]
    assert saved == stored[0]
    rows = await database.fetch("select email_key, tag_keys, array_length(tsvector_to_array(search), 1) from contacts")
    assert len({tuple(map(str, row)) for row in rows}) == 1
