"""What is asked of batches all the time, and what touches the queue for one of them, takes an index (C15.5)."""

from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from tests.plans import nodes

from recado.storage.batches import batch_making, batches
from recado.storage.core.connections.postgres import Database

FILL = """
insert into batches (organization_id, env, id, channel, sender_id, type, class, campaign_id, status, requested, skipped,
        skipped_reasons, errors, ttl_ms, held_base_ms, blocks_left, open, updated_at)
    select 'org_' || i % 50, 'test', 'btc_' || i, 'chatapp', 'num_1', 'text', 2, null,
        case when i % 100 = 0 then 'building' else 'completed' end, 1, 0, '{}', '[]', 1, 0, 1, i % 100 = 0, now()
    from generate_series(1, 20000) i;
insert into batch_blocks select 'org_' || i % 50, 'btc_' || i, 1, '[]' from generate_series(100, 20000, 100) i;
insert into totals (organization_id, env, kind, key) select organization_id, env, 'batch', id from batches;
insert into dispatch (organization_id, id, env, channel, sender_id, class, owner, due_at, ttl_ms, expires_at,
        held_base_ms, force)
    select 'org_7', 'msg_' || i, 'test', 'chatapp', 'num_1', 2,
        case when i % 2 = 0 then 'single' else 'btc_' || i / 100 end, now(), 1, now(), 0, false
    from generate_series(1, 20000) i;
insert into batch_ranges select 'org_7', 'btc_' || i, 'msg_' || i, 'msg_' || i || '~' from generate_series(1, 2000) i;
analyze batches, batch_blocks, batch_ranges, totals, dispatch;
"""


def indexes(plan: Any) -> set[str]:
    """The indexes that are read."""
    found = {plan["Index Name"]} if "Index Name" in plan else set()
    return found.union(*(indexes(child) for child in plan.get("Plans", [])))


def scans(plan: Any) -> list[tuple[str, str]]:
    """(table, node type) of everything that reads a table."""
    found = [(plan["Relation Name"], plan["Node Type"])] if "Relation Name" in plan else []
    for child in plan.get("Plans", []):
        found += scans(child)
    return found


@pytest.fixture
async def filled(database: Database) -> Database:
    await database.execute(FILL)
    return database


async def test_every_look_at_batches_takes_an_index(filled: Database) -> None:
    now = datetime.now(UTC)
    key = ("org_7", "test", "btc_7")
    asked: list[tuple[str, tuple[Any, ...]]] = [
        (batches.SQL.by_id, key),
        (batches.SQL.page, ("org_7", "test", None, None, "btc_", "btc_~", 50, 0)),
        (batches.SQL.next_in_turn, (True, ["org_0"], ["btc_100"], [])),
        (batches.SQL.next_block, key),
        (batches.SQL.drop_block, ("org_7", "btc_7", 1)),
        (batch_making.BLOCK_MADE, (*key, "running", "failed", now, {"x": 1})),
        (batches.SQL.pause, (*key, now, ["running"], None)),
        (batches.SQL.hold, ("org_7", "btc_7", 1_000, "test", "msg_1")),
        (batches.SQL.withdraw, ("org_7", "btc_7", 1_000, now, "x", ["queued"], "msg_1", "withdrawn", {})),
        (batches.SQL.senders_of, ("org_7", "btc_7")),
    ]
    for sql, arguments in asked:
        pool = filled.hot if sql in (batches.SQL.withdraw, batches.SQL.next_in_turn) else filled  # as it is run
        (plan,) = orjson.loads(await pool.fetchval(f"explain (format json) {sql}", *arguments))
        kinds = scans(plan["Plan"])
        assert kinds
        assert not [table for table, kind in kinds if kind == "Seq Scan"], (sql, kinds)


async def test_whose_turn_it_is_is_found_among_what_is_being_made(filled: Database) -> None:
    for in_blocks in (True, False):
        arguments = (in_blocks, ["org_0"], ["btc_100"], ["btc_200"])
        (plan,) = orjson.loads(
            await filled.hot.fetchval(f"explain (format json) {batches.SQL.next_in_turn}", *arguments)
        )
        assert indexes(plan["Plan"]) == {"batches_building", "batch_blocks_pkey"}


async def test_the_rows_of_a_batch_are_found_behind_those_done_before_and_not_among_all(filled: Database) -> None:
    arguments = ("org_7", "btc_7", 1_000)
    hold = (filled, batches.SQL.hold, (*arguments, "test", "msg_1"))
    withdraw = (filled.hot, batches.SQL.withdraw, (*arguments, datetime.now(UTC), "x", ["queued"], "msg_1", "y", {}))
    for pool, sql, values in (hold, withdraw):
        (plan,) = orjson.loads(await pool.fetchval(f"explain (format json) {sql}", *values))
        used = nodes(plan["Plan"])
        assert {
            node["Index Name"] for node in used if node.get("Relation Name") == "dispatch" and "Index Name" in node
        } == {"dispatch_pkey"}, sql
        by_range = next(node for node in used if "first_id" in node.get("Index Cond", ""))
        assert "(id)::text >= (r.first_id)::text" in by_range["Index Cond"]
        assert "(id)::text <= (r.last_id)::text" in by_range["Index Cond"]
        # One range after the other, and no more of them than a block takes.
        assert [node["Node Type"] for node in used if "Sort" in node["Node Type"]] == ["Incremental Sort"]
