"""Calls of webhook steps are found by indexes, however many are wanted, and before anyone counted them (C9.13)."""

import pytest
from tests.plans import indexes, plan_for_any, whole_tables

from recado.storage.core.connections.postgres import Database
from recado.storage.journeys import step_calls

ROWS = """
insert into step_calls (organization_id, env, journey_id, execution_id, step_id, webhook_id, event_id, delivery_id,
        wanted_at, claimed_at)
    select 'org_' || i % 7, 'test', 'jrn_7', 'exe_' || lpad(i::text, 21, '0'), 'call', 'wbh_' || i % 50,
        'evt_' || i, 'dlv_' || i, case when i % 3 > 0 then now() end, case when i % 30 = 1 then now() end
    from generate_series(1, 20000) i;
analyze step_calls;
"""

PLANS = {
    "waiting": {"step_calls_wanted", "organizations_pkey"},
    "claim": {"step_calls_wanted", "step_calls_pkey"},
    "release": {"step_calls_claimed", "step_calls_pkey"},
    "settle": {"step_calls_pkey"},
    "forget": {"step_calls_pkey"},
    "facts": {"step_calls_pkey", "webhook_subscriptions_pkey"},
    "wake": {"executions_pkey"},
}


@pytest.mark.parametrize("rows", ["", ROWS], ids=["empty", "full"])
async def test_calls_are_found_by_their_indexes(database: Database, rows: str) -> None:
    if rows:
        await database.execute(rows)
    for name, expected in PLANS.items():
        found = await plan_for_any(database.hot, getattr(step_calls.SQL, name))
        assert (name, whole_tables(found), indexes(found)) == (name, set(), expected)
    for name in ("told", "hold"):
        found = await plan_for_any(database.hot, getattr(step_calls.SQL, name))
        assert (name, whole_tables(found)) == (name, set())
        assert {"executions_pkey", "executions_active"} & indexes(found), name
