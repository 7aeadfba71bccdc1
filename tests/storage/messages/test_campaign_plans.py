"""What the accept path and the reads of campaigns ask: each look-up takes its index, however large the tables are."""

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from tests.storage.conftest import opened, read_only

from recado.domain.messages.message import MessageStatus
from recado.storage.batches import campaigns
from recado.storage.core.connections.postgres import Database
from recado.storage.messages import replacements, resends

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
# Campaigns of 20 organizations, one in fifty running, with their totals; batches and failed messages beside them.
FILL = """
insert into campaigns (organization_id, env, campaign_id, status, channels, first_message_at)
    select 'org_' || i % 20, 'test', 'c' || i, case when i % 50 = 0 then 'running' else 'completed' end, '{chatapp}',
        now() - i * interval '1 minute' from generate_series(1, 20000) i;
insert into totals (organization_id, env, kind, key, accepted, first_at, last_at)
    select organization_id, env, 'campaign', campaign_id, 1, first_message_at, first_message_at from campaigns;
insert into batches (organization_id, env, id, channel, sender_id, type, class, campaign_id, status, requested, skipped,
        skipped_reasons, errors, ttl_ms, held_base_ms, blocks_left, open, updated_at)
    select 'org_' || i % 20, 'test', 'btc_' || lpad(i::text, 21, '0'), 'chatapp', 'num_', 'template', 2, 'c' || i,
        'completed', 1, 0, '{}', '[]', 1, 0, 0, false, now() from generate_series(1, 20000) i;
insert into messages (organization_id, env, channel, id, direction, status, type, sender_id, recipient, recipient_hash,
        class, force, campaign_id, failed_at, updated_at)
    select 'org_' || i % 20, 'test', 'chatapp', 'THIS_MONTH' || lpad(i::text, 13, '0'),
        'outbound', case when i % 10 = 0 then 'failed' else 'read' end, 'template', 'num_', '+1', i, 1, false,
        'c' || i % 100, case when i % 10 = 0 then now() end, now()
    from generate_series(1, 20000) i;
analyze;
"""


async def fill(database: Database) -> None:
    partition = await database.fetchval(
        "select substring(pg_get_expr(c.relpartbound, c.oid) from $$FROM .'(.*?)'$$) from pg_class c"
        " where relispartition and relkind = 'r' order by relname limit 1"
    )
    await database.execute(FILL.replace("THIS_MONTH", partition[:12]))


@pytest.fixture(scope="module")
def prepared(postgres: dict[str, Any]) -> Iterator[dict[str, Any]]:
    with read_only(postgres, fill) as arguments:
        yield arguments


@pytest.fixture
async def filled(prepared: dict[str, Any]) -> AsyncIterator[Database]:
    async with opened(prepared) as db:
        yield db


def scans(plan: Any) -> Iterator[tuple[str, str, str]]:
    """(table, node type, condition on the index) of everything that reads a table."""
    if "Relation Name" in plan:
        yield plan["Relation Name"], plan["Node Type"], plan.get("Index Cond", "")
    for child in plan.get("Plans", []):
        yield from scans(child)


async def test_every_look_up_takes_an_index(filled: Database) -> None:
    one, period = ("org_7", "test"), datetime(2020, 1, 1, tzinfo=UTC)
    asked: list[tuple[str, tuple[Any, ...]]] = [
        (campaigns.SQL.through, ("running", NOW, 10)),
        (campaigns.SQL.lock, (*one, "c7")),
        (campaigns.SQL.campaign.replace("{found}", campaigns.SQL.by_id), (*one, "c7")),
        (campaigns.SQL.campaign.replace("{found}", campaigns.SQL.page), (*one, None, None, None, 50, 0)),
        (campaigns.SQL.page_count, (*one, None, period, NOW)),
    ]
    for sql, arguments in asked:
        (plan,) = orjson.loads(await filled.fetchval(f"explain (format json) {sql}", *arguments))
        found = list(scans(plan["Plan"]))
        assert found
        assert [table for table, kind, _ in found if kind == "Seq Scan"] == [], sql


async def test_batches_probe_the_keys(filled: Database) -> None:
    ids = [["org_7"], ["test"], ["chatapp"], ["msg_0"], ["msg_1"], [False]]
    asked: list[tuple[str, tuple[Any, ...]]] = [
        (campaigns.SQL.open, (["org_7"], ["test"], ["c7"], ["chatapp"], "running")),
        (replacements.SQL.lock, (*ids, list(replacements.REPLACEABLE))),
        (resends.SQL.by_ids, ("org_7", "test", ["msg_0"], "chatapp")),
        (resends.SIZE, ("org_7", "test", ["msg_0"], "chatapp")),
        (replacements.SQL.inherit, ("org_7", "test", "chatapp", "msg_1", None, "btc_1", "canceled")),
    ]
    async with filled.hot.acquire() as connection:
        for sql, arguments in asked:
            (plan,) = orjson.loads(await connection.fetchval(f"explain (format json) {sql}", *arguments))
            found = [each for each in scans(plan["Plan"]) if each[1] != "ModifyTable"]
            assert found
            assert [table for table, _, condition in found if "organization_id" not in condition] == [], sql


async def test_the_filter_of_a_resend_finds_what_failed(filled: Database) -> None:
    found = await resends.failed(filled, "org_10", "test", "chatapp", resends.FailedFilter(campaign_id="c10"), 5)
    assert len(found) == 5
    assert {message.status for message in found} == {MessageStatus.FAILED.value}
