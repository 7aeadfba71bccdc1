"""What operators are shown of many numbers is read by indexes, whatever else the tables hold (C34)."""

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.plans import plan_of, whole_tables
from tests.storage.conftest import opened, read_only

from recado.storage.core.connections.postgres import Database
from recado.storage.ops.ops import MOST_COUNTED, SQL

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
MINUTES = """
insert into sender_minutes (organization_id, sender_id, minute, sent, marketing, uncategorized)
select 'org_' || o, 'num_' || o || '_' || s, $1::timestamptz - m * interval '1 minute', 1, 0, 0
from generate_series(1, 20) o, generate_series(1, 10) s, generate_series(1, 100) m
"""
RECIPIENTS = """
insert into tier_recipients (organization_id, sender_id, recipient_hash, last_at)
select 'org_' || o, 'num_' || o || '_' || s, r, $1 from generate_series(1, 20) o, generate_series(1, 10) s,
    generate_series(1, 100) r
"""
QUEUE = """
insert into dispatch (organization_id, id, env, channel, sender_id, class, owner, due_at, not_before, reason, ttl_ms,
    expires_at, held_base_ms, force)
select 'org_' || o, 'msg_' || o || '_' || s || '_' || n, 'live', 'chatapp', 'num_' || o || '_' || s, n % 3, 'single',
    $1, case when n % 4 = 0 then $1::timestamptz end, case when n % 4 = 0 then 'tier_limit' end, 1000, $1, 0, false
from generate_series(1, 20) o, generate_series(1, 10) s, generate_series(1, 100) n
"""
DELIVERIES = """
insert into delivery_queue (organization_id, subscription_id, id, event_id, event, due_at)
select 'org_' || o, 'wbh_' || o || '_' || s, 'dlv_' || n, 'evt_1', 'message.sent', $1
from generate_series(1, 20) o, generate_series(1, 10) s, generate_series(1, 100) n
"""
DAY = NOW - timedelta(days=1)


@pytest.fixture(scope="module")
def prepared(postgres: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """For all of them: statements are planned and not run."""

    async def fill(db: Database) -> None:
        for table in (MINUTES, RECIPIENTS, QUEUE, DELIVERIES):
            await db.execute(table, NOW)
        await db.execute("analyze sender_minutes, tier_recipients, dispatch, delivery_queue")

    with read_only(postgres, fill) as arguments:
        yield arguments


@pytest.fixture
async def filled(prepared: dict[str, Any]) -> AsyncIterator[Database]:
    async with opened(prepared) as db:
        yield db


@pytest.mark.parametrize(
    ("statement", "arguments"),
    [
        (SQL.usage, (["org_1", "org_1"], ["num_1_1", "num_1_2"], DAY)),
        (SQL.minutes, ("org_1", "num_1_1", DAY)),
        (SQL.queues, (["org_1"], ["live"])),
        (SQL.queue_of_sender, ("org_1", "num_1_1")),
        (SQL.subscriptions, (["org_1"], ["live"], MOST_COUNTED)),
    ],
)
async def test_no_table_that_grows_is_read_from_one_end_to_the_other(
    filled: Database, statement: str, arguments: tuple[Any, ...]
) -> None:
    plan = await plan_of(filled, statement, arguments)
    assert whole_tables(plan) <= {"webhook_subscriptions"}  # which is empty here
