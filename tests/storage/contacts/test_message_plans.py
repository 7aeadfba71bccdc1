"""Statements that rewrite many messages find each by its whole key, also in a month that nobody has counted yet."""

import pytest
from tests.plans import indexes, plan_for_any, plan_of, whole_tables

from recado.storage.contacts import contact_erasures
from recado.storage.core.connections.postgres import Database
from recado.storage.messages import replacements

FILL = """
insert into messages (organization_id, env, channel, id, direction, status, type, recipient, recipient_hash, class,
        force, contact_id, updated_at)
    select 'org_7', 'test', 'chatapp', $1::text || lpad(i::text, 13, '0'), 'outbound', 'read', 'text', '+1', i, 1,
        false, 'cnt_1', now()
    from generate_series(1, 20000) i
"""
STATEMENTS = {
    contact_erasures.SQL.erase: "'org_7', 'test', array['chatapp'], array['ID'], '{}'",
    replacements.SQL.replace: "array['org_7'], array['test'], array['chatapp'], array['ID'], '{}', array['ID'], now()",
}
KEY = ("organization_id", "env", "channel", "id)")


@pytest.fixture
async def month(database: Database) -> str:
    """How ids of a month begin of which there are no statistics."""
    (first, *_) = await database.fetch(
        "select relname, substring(pg_get_expr(relpartbound, oid) from $$FROM .'(.*?)'$$) as lowest from pg_class"
        " where relispartition and relkind = 'r' order by relname limit 1"
    )
    await database.execute(f"alter table {first['relname']} set (autovacuum_enabled = off)")
    return str(first["lowest"][:12])


@pytest.mark.parametrize("filled", [False, True], ids=["empty", "full"])
@pytest.mark.parametrize("sql", STATEMENTS, ids=["erase", "replace"])
async def test_a_rewritten_message_is_found_by_its_whole_key_without_statistics(
    database: Database, month: str, sql: str, filled: bool
) -> None:
    if filled:
        await database.execute(FILL, month)
    for pool in (database, database.hot):
        found = await plan_for_any(pool, sql, STATEMENTS[sql].replace("ID", f"{month}{7:013}"))
        looked_up = [node["Index Cond"] for node in found if "Index Name" in node]
        assert [condition for condition in looked_up if not all(column in condition for column in KEY)] == []
        assert len(looked_up) == 1  # the other months are left out
        assert whole_tables(found) == set()


async def test_messages_of_a_deleted_contact_are_read_along_their_index_without_statistics(
    database: Database, month: str
) -> None:
    await database.execute(FILL, month)
    asked = ("org_7", "test", "cnt_1", month, 1_000)
    found = await plan_of(database, contact_erasures.SQL.block, asked)
    assert whole_tables(found) == set()
    assert [name for name in indexes(found) if "contact_id" not in name] == []
    assert "Sort" not in {node["Node Type"] for node in found}
