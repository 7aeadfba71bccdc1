"""What is read of journeys, and of what they refer to, is found by indexes before anyone counted the rows (C9.14)."""

import pytest
from tests.plans import indexes, plan_for_any, plan_of, whole_tables
from tests.storage.journeys.rows import QUEUE

from recado.storage.core.connections.postgres import Database
from recado.storage.dispatch import overtaken
from recado.storage.journeys import hindrances, journey_queues
from recado.storage.journeys.journeys import SQL

REFERRED = ("static_lists", "segments", "numbers", "webhook_subscriptions", "templates", "email_templates")
TEMPLATES = """
insert into templates (organization_id, id, env, number_id, name, language, category, status, components, version,
        revision, updated_at)
    select 'org_7', 'tpl_' || lpad(i::text, 21, '0'), 'test', 'num_7', i::text, 'pt-BR', 'utility', 'draft', '[]', 1, 1,
        now()
    from generate_series(1, 20000) i;
"""
LISTS = """
insert into static_lists (organization_id, env, id, name, name_key, updated_at)
    select 'org_7', 'test', 'lst_' || lpad(i::text, 21, '0'), i::text, i::text, now() from generate_series(1, 20000) i;
"""
EMAILS = """
insert into email_templates (organization_id, env, id, name, name_key, subject, html, variables, placeholders, status,
        version, created_by_id, revision, updated_at)
    select 'org_7', 'test', 'etpl_' || lpad(i::text, 21, '0'), i::text, i::text, 'a', 'a', '[]', '{}', 'active',
        1, 'key_1', 1, now()
    from generate_series(1, 20000) i;
"""
ROWS = """
insert into journeys (organization_id, env, id, chain_id, status, name, fuso_horario, gatilho, inicio, reentrada,
        intervalo_reentrada_horas, passos, canais, fluxo, uses, updated_at)
    select 'org_7', 'test', 'jrn_' || lpad(i::text, 21, '0'), 'jrn_' || lpad(i::text, 21, '0'), 'arquivada', 'a', 'UTC',
        '{}', 'a', 'nunca', 24, '[]', '{}', '{}', '{}', now()
    from generate_series(1, 20000) i;
"""


async def test_what_a_journey_refers_to_is_looked_up_by_its_ids(database: Database) -> None:
    await database.execute(TEMPLATES)
    await database.execute(LISTS)  # whatever the tests before left of what the server knows of them
    await database.execute(EMAILS)
    await database.execute("analyze templates, static_lists, email_templates")
    found = await plan_for_any(database, SQL.references)
    assert whole_tables(found) == set()
    assert indexes(found) == {*(f"{table}_pkey" for table in REFERRED), "email_senders_default"}
    held = await plan_for_any(database, SQL.hold_used)
    assert whole_tables(held) == set()
    assert indexes(held) == {f"{table}_pkey" for table in REFERRED if table != "webhook_subscriptions"}


@pytest.mark.parametrize("rows", ["", ROWS], ids=["empty", "full"])
async def test_who_adds_a_journey_looks_at_few_others(database: Database, rows: str) -> None:
    if rows:
        await database.execute(rows)
        await database.execute("analyze journeys")
    count = await plan_for_any(database, SQL.count_of_environment)
    assert (whole_tables(count), indexes(count)) == (set(), {"journeys_not_archived"})
    users = await plan_for_any(database, SQL.users_of)
    assert (whole_tables(users), indexes(users)) == (set(), {"journeys_not_archived"})
    versions = await plan_for_any(database, SQL.versions)
    assert (whole_tables(versions), indexes(versions)) == (set(), {"journeys_versions"})


@pytest.mark.parametrize("rows", ["", ROWS], ids=["empty", "full"])
async def test_who_moves_journeys_looks_at_those_that_are_not_archived(database: Database, rows: str) -> None:
    if rows:
        await database.execute(rows)
        await database.execute("analyze journeys")
    moved = await plan_for_any(database, SQL.supersede)
    assert (whole_tables(moved), indexes(moved)) == (set(), {"journeys_not_archived"})
    resumed = await plan_for_any(database.hot, SQL.go_on)
    assert (whole_tables(resumed), indexes(resumed)) == (set(), {"journeys_pkey"})
    chain = await plan_for_any(database, SQL.lock_chain)
    assert (whole_tables(chain), indexes(chain)) == (set(), {"journeys_not_archived", "journeys_pkey"})
    for statement in (SQL.pause_itself, SQL.archive_emptied):
        moved = await plan_for_any(database, statement)
        assert whole_tables(moved) == set()
        assert indexes(moved) <= {"journeys_pkey", "journeys_by_status"}  # the keys of both end with the id


HINDRANCES = {
    "take_failures": {"journey_failures_pkey"},
    "without_coins": {"journeys_without_coins", "wallets_pkey"},
    "label": {"templates_pkey", "email_templates_pkey", "numbers_pkey"},
}


@pytest.mark.parametrize("rows", ["", ROWS], ids=["empty", "full"])
async def test_what_journeys_pause_for_and_go_on_by_is_found_by_indexes(database: Database, rows: str) -> None:
    if rows:
        await database.execute(rows)
        await database.execute("analyze journeys")
    for name, expected in HINDRANCES.items():
        found = await plan_for_any(database.hot, getattr(hindrances.SQL, name))
        assert (name, whole_tables(found), indexes(found)) == (name, set(), expected)
    some = await plan_of(database.hot, hindrances.SQL.any_failures, [])
    assert (whole_tables(some), indexes(some)) == (set(), {"journey_failures_pkey"})
    failing = await plan_for_any(database.hot, hindrances.SQL.failing)
    assert whole_tables(failing) == set()
    assert {"execution_steps_of_message", "execution_steps_of_journey", "journeys_pkey"} <= indexes(failing)


@pytest.mark.parametrize("rows", ["", ROWS], ids=["empty", "full"])
async def test_replaced_versions_are_found_by_an_index_of_their_own(database: Database, rows: str) -> None:
    if rows:
        await database.execute(rows)
        await database.execute("analyze journeys")
    over = await plan_for_any(database.hot, SQL.archive_idle)
    assert whole_tables(over) == set()
    assert {"journeys_superseded", "executions_active"} <= indexes(over)
    assert indexes(over) <= {"journeys_superseded", "executions_active", "journeys_pkey"}
    still = await plan_for_any(database, journey_queues.SQL.stood_still)
    assert (whole_tables(still), indexes(still)) == (set(), {"journeys_stood_still"})


@pytest.mark.parametrize("rows", ["", ROWS + QUEUE], ids=["empty", "full"])
async def test_what_a_journey_has_queued_is_found_by_its_index(database: Database, rows: str) -> None:
    if rows:
        await database.execute(rows)
        await database.execute("analyze journeys, dispatch")
    senders = await plan_for_any(database, journey_queues.SQL.senders)
    assert (whole_tables(senders), indexes(senders)) == (set(), {"dispatch_of_journeys"})
    tests = await plan_for_any(database, SQL.queued_tests)
    assert (whole_tables(tests), indexes(tests)) == (set(), {"dispatch_of_journeys", "executions_tests"})
    held = await plan_for_any(database, journey_queues.SQL.hold)
    assert (whole_tables(held), indexes(held)) == (set(), {"dispatch_of_journeys", "dispatch_pkey", "journeys_pkey"})


@pytest.mark.parametrize("rows", ["", ROWS + QUEUE], ids=["empty", "full"])
async def test_whether_a_journey_still_holds_a_row_is_looked_up_for_each(database: Database, rows: str) -> None:
    if rows:
        await database.execute(rows)
        await database.execute("update dispatch set not_before = 'infinity', reason = 'owner_paused'")
        await database.execute("analyze journeys, dispatch")
    released = await plan_for_any(database, overtaken.SQL.release)
    assert whole_tables(released).isdisjoint({"dispatch", "journeys", "withdrawals"})
    asked = [node for node in released if node.get("Relation Name") in {"journeys", "withdrawals"}]
    assert [node["Index Name"] for node in asked] == ["journeys_pkey", "withdrawals_pkey"]
    assert all("owner" in node["Index Cond"] for node in asked)
