"""What moves executions finds its rows by indexes, however many wait, and before anyone counted them (C9.15)."""

import pytest
from tests.plans import indexes, plan_for_any, whole_tables

from recado.storage.core.connections.postgres import Database
from recado.storage.core.statements.sql import Queries
from recado.storage.journeys import (
    arrivals,
    doors,
    entries,
    event_entries,
    execution_counts,
    execution_facts,
    executions,
    step_counts,
    step_outcomes,
)

# What the tests before left in the files of a table counts for the planner.
EMPTY = "truncate executions, chain_entries, execution_steps, execution_signals"
ROWS = """
insert into executions (organization_id, env, journey_id, id, chain_id, versao, contact_id, status, origem, teste,
        hurried, entrada, step_id, arrived_at, wake_at, started_at)
    select 'org_7', 'test', 'jrn_7', 'exe_' || lpad(i::text, 21, '0'), 'jrn_7', 1, 'cnt_' || lpad(i::text, 21, '0'),
        case when i % 10 = 0 then 'ativa' else 'concluida' end, 'api', false, false, '{}', 'wait', now(),
        case when i % 10 = 0 then now() + i * interval '1 minute' end, now()
    from generate_series(1, 20000) i;
insert into chain_entries select organization_id, env, chain_id, contact_id, journey_id, id, now() from executions;
insert into execution_steps (organization_id, execution_id, step_id, env, tipo, at, place, resultado, message_id,
        channel, capped_contact_id)
    select organization_id, id, 'sms', env, 'enviar', now(), 0, 'enviado', 'msg_' || id, 'sms', contact_id
    from executions;
analyze executions, chain_entries, execution_steps;
"""

MOVES = {
    "tests_from": {"executions_tests"},
    "of_contacts": {"executions_of_contact"},
    "claim_due": {"executions_due", "organizations_pkey"},
    "claim": {"executions_pkey"},
    "overslept": {"executions_overslept", "journeys_pkey"},
    "lock": {"executions_pkey"},
    "place": {"executions_pkey"},
    "signals": {"execution_signals_of_organization"},
    "signalled": {"execution_steps_of_message", "executions_active", "executions_of_contact"},
    "lock_free": {"executions_active"},
    "forget_signals": {"execution_signals_pkey"},
    "messages_of": {"execution_steps_pkey"},
    "steps_of": {"execution_steps_pkey"},
    "emptied": {"journeys_pkey", "executions_active"},
}
FACTS = {
    "first_clicks": {"tracked_links_of_message"},
    "first_events": {"customer_events_contact"},
}


@pytest.mark.parametrize("rows", [EMPTY, ROWS], ids=["empty", "full"])
async def test_executions_are_found_by_their_indexes(database: Database, rows: str) -> None:
    await database.execute(rows)
    for name, expected in MOVES.items():
        found = await plan_for_any(database.hot, getattr(executions.SQL, name))
        assert (name, whole_tables(found), indexes(found)) == (name, set(), expected)
    found = await plan_for_any(database.hot, executions.SQL.save)
    assert (whole_tables(found), indexes(found)) == (set(), set())
    assert "Tid Scan" in {node["Node Type"] for node in found}


@pytest.mark.parametrize("rows", [EMPTY, ROWS], ids=["empty", "full"])
async def test_entries_are_found_by_their_keys(database: Database, rows: str) -> None:
    await database.execute(rows)
    for name in ("lock", "enter_again"):
        found = await plan_for_any(database.hot, getattr(entries.SQL, name))
        assert (name, whole_tables(found), indexes(found)) == (name, set(), {"chain_entries_pkey"})
    journey = await plan_for_any(database.hot, doors.SQL.hold_keys)
    assert (whole_tables(journey), indexes(journey)) == (set(), {"journeys_pkey"})
    contact = await plan_for_any(database.hot, entries.SQL.contacts_of)
    assert whole_tables(contact) == set()
    assert {"contacts_pkey", "contacts_phone"} < indexes(contact)
    found = await plan_for_any(database.hot, entries.SQL.histories)
    assert whole_tables(found) == set()
    assert indexes(found) == {"contacts_pkey", "chain_entries_pkey", "executions_pkey"}


EVENTS = """
insert into event_entries (organization_id, env, event_id)
    select 'org_' || i % 3, 'live', 'e-' || i from generate_series(1, 20000) i;
analyze event_entries;
"""


@pytest.mark.parametrize("rows", ["", ROWS], ids=["empty", "full"])
async def test_whether_there_is_anything_to_do_is_asked_of_indexes(database: Database, rows: str) -> None:
    if rows:
        await database.execute(rows)
    found = await plan_for_any(database.hot, executions.SQL.waiting)
    assert whole_tables(found) == set()
    assert {"executions_due", "executions_overslept", "organizations_pkey"} < indexes(found)


@pytest.mark.parametrize("rows", ["", EVENTS], ids=["empty", "full"])
async def test_events_that_bring_contacts_in_are_found_by_their_indexes(database: Database, rows: str) -> None:
    if rows:
        await database.execute(rows)
    for name, expected in (
        ("claim", {"event_entries_of_organization", "organizations_pkey"}),
        ("claim_one", {"event_entries_pkey"}),
        ("journeys", {"journeys_by_event"}),
        ("asked", {"event_entries_pkey"}),
        ("done", {"event_entries_pkey"}),
    ):
        found = await plan_for_any(database.hot, getattr(event_entries.SQL, name))
        assert (name, whole_tables(found), indexes(found)) == (name, set(), expected)
    found = await plan_for_any(database.hot, doors.SQL.hold)
    assert (whole_tables(found), indexes(found)) == (set(), {"journeys_pkey"})
    found = await plan_for_any(database.hot, doors.SQL.taken_over)
    assert (whole_tables(found), indexes(found)) == (set(), {"journeys_pkey", "journeys_versions"})


ARRIVALS = """
insert into journey_arrivals (organization_id, env, journey_id, contact_id)
    select 'org_' || i % 3, 'test', 'jrn_' || i % 7, 'cnt_' || i from generate_series(1, 20000) i;
analyze journey_arrivals;
"""


@pytest.mark.parametrize("rows", ["", ARRIVALS], ids=["empty", "full"])
async def test_arrivals_are_found_by_their_indexes(database: Database, rows: str) -> None:
    if rows:
        await database.execute(rows)
    for name, expected in (
        ("claim", {"journey_arrivals_of_journey", "journeys_pkey", "organizations_pkey"}),
        ("claim_one", {"journey_arrivals_pkey"}),
        ("entered", {"journey_arrivals_pkey"}),
        ("spread", {"list_arrivals_of_organization", "list_arrivals_pkey", "journeys_by_list"}),
        ("next_arming", {"journey_armings_turns", "journey_armings_pkey"}),
        ("arrive", {"static_list_members_pkey"}),
        ("arrive_in_order", {"static_list_members_pkey"}),
        ("armed_up_to", {"journey_armings_pkey"}),
        ("disarm", {"journey_armings_pkey"}),
    ):
        found = await plan_for_any(database.hot, getattr(arrivals.SQL, name))
        assert (name, whole_tables(found), indexes(found)) == (name, set(), expected)


@pytest.mark.parametrize(
    ("sql", "base", "changes"),
    [
        (execution_counts.SQL, "journey_counts_pkey", "journey_count_changes_pkey"),
        (step_counts.SQL, "step_counts_pkey", "step_count_changes_pkey"),
    ],
)
async def test_counts_are_found_by_their_keys(database: Database, sql: Queries, base: str, changes: str) -> None:
    counts = await plan_for_any(database, sql.counts)
    assert (whole_tables(counts), indexes(counts)) == (set(), {base, changes})
    folding = await plan_for_any(database.hot, sql.fold)
    assert (whole_tables(folding), indexes(folding)) == (set(), {changes})


@pytest.mark.parametrize("rows", [EMPTY, ROWS], ids=["empty", "full"])
async def test_outcomes_are_found_by_indexes(database: Database, rows: str) -> None:
    await database.execute(rows)
    of_messages = await plan_for_any(database.hot, step_outcomes.SQL.of_messages)
    assert whole_tables(of_messages) == set()
    assert {"execution_steps_of_message", "executions_pkey", "tracked_links_of_message"} < indexes(of_messages)
    of_contacts = await plan_for_any(database.hot, step_outcomes.SQL.of_contacts)
    assert whole_tables(of_contacts) == set()
    assert {"executions_of_contact", "execution_steps_pkey"} < indexes(of_contacts)
    noting = await plan_for_any(database.hot, step_outcomes.SQL.note)
    assert (whole_tables(noting), indexes(noting)) == (set(), {"execution_steps_pkey"})


@pytest.mark.parametrize("rows", [EMPTY, ROWS], ids=["empty", "full"])
async def test_facts_are_found_by_indexes(database: Database, rows: str) -> None:
    await database.execute("truncate contacts")
    await database.execute(rows)
    for name, expected in FACTS.items():
        found = await plan_for_any(database.hot, getattr(execution_facts.SQL, name))
        assert (name, whole_tables(found), indexes(found)) == (name, set(), expected)
    for statement in (*execution_facts.CONTACTS.values(), *execution_facts.CONSENTS.values()):
        found = await plan_for_any(database.hot, statement)
        assert (whole_tables(found), indexes(found)) == (set(), {"contacts_pkey", "opt_outs_pkey"})
    earlier = await plan_for_any(database.hot, execution_facts.SQL.earlier)
    assert whole_tables(earlier) == set()
    assert {"execution_steps_pkey", "dispatch_pkey"} < indexes(earlier)
    capped = await plan_for_any(database.hot, execution_facts.SQL.capped)
    assert whole_tables(capped) == set()
    assert "execution_steps_capped" in indexes(capped)
    replies = await plan_for_any(database.hot, execution_facts.SQL.first_replies)
    assert whole_tables(replies) == set()
    assert all("contact_id" in name for name in indexes(replies))
