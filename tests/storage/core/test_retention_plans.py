"""The plans of retention: a page costs what a page costs, however much is stored (C32)."""

from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from tests.storage.access.test_resource_plans import scans

from recado.domain.core.ids import MESSAGE, lowest_id
from recado.storage.core.connections.postgres import Database
from recado.storage.core.upkeep import retention
from recado.storage.core.upkeep.partitions import ensure_partitions
from recado.storage.push import devices, messages

MONTH = "messages_2025_02"
AT = datetime(2025, 2, 10, tzinfo=UTC)
PUSH = ("org_7", "test", "psh_7")
FILL = f"""
insert into messages (organization_id, env, channel, id, direction, status, type, sender_id, recipient, recipient_hash,
        class, force, payload, provider_message_id, updated_at)
    select 'org_' || i % 20, 'test', 'chatapp', '{lowest_id(MESSAGE, AT)[:-6]}' || lpad(i::text, 6, '0'), 'outbound',
        'sent', 'text', 'num_' || i % 20, '+1', i, 1, false, '{{}}', 'p' || i, now()
    from generate_series(1, 20000) i;
insert into provider_messages
    select provider_message_id, sender_id, 'bridge', organization_id, env, channel, id from messages;
insert into contact_touches
    select organization_id, env, 'cnt_' || recipient_hash % 5000, now(), id, channel from messages;
insert into inbound_ids select organization_id, sender_id, provider_message_id, id from messages;
insert into dispatch (organization_id, id, env, channel, sender_id, class, owner, due_at, ttl_ms, expires_at,
        held_base_ms, force)
    select organization_id, id, env, channel, sender_id, 1, 'single', now(), 1, now(), 0, false from messages;
insert into tier_recipients select 'org_' || i % 20, 'num_' || i % 20, i, now() from generate_series(1, 20000) i;
insert into chat_windows select 'org_' || i % 20, 'num_' || i % 20, i, now() from generate_series(1, 20000) i;
insert into sender_minutes select 'org_' || i % 20, 'num_' || i % 20, now() - i * interval '1 minute', 1, 0, 0
    from generate_series(1, 20000) i;
insert into audit select 'org_' || i % 20, 'aud_' || i, 'test', 'key', 'k', 'a', null, null, null, '{{}}'
    from generate_series(1, 20000) i;
insert into callbacks (channel, adapter, sha256, body, received_at)
    select 'chatapp', 'cloud', i::text::bytea, '', now() from generate_series(1, 20000) i;
insert into push_messages (organization_id, env, id, status, open, origin, rate_kind, unit_coins, billed, reach,
        platforms, actions, dispatch_key, due_at, updated_at)
    select 'org_' || i % 20, 'test', 'psh_' || i, 'completed', false, 'api', 'simple', 4, true, 1, '{{}}', '[]', '',
        now(), now()
    from generate_series(1, 10000) i;
insert into push_counts select organization_id, env, id, 'ios', 1, 0, 0, 0, 0 from push_messages;
insert into push_blocks select organization_id, env, id, 0, 'app_1', 'ios', array['dev_1'], false from push_messages;
insert into push_dispatches
    select organization_id, env, id, n, 'dev_' || n, 'app_1', 'ios', 'delivered', null, 1
    from push_messages, generate_series(0, 2) n;
insert into push_devices (organization_id, env, id, app_id, token, token_hash, platform, status, contact_id, topics,
        updated_at)
    select 'org_' || i % 20, 'test', 'dev_' || i, 'app_1', 't', i::text::bytea, 'ios', 'registered',
        case when i % 2 = 0 then 'cnt_' || i % 5000 end, '{{}}', now()
    from generate_series(1, 20000) i;
insert into contacts (organization_id, env, id, phone, phone_hash, source, opt_in_status, search, updated_at)
    select 'org_' || i % 20, 'test', 'cnt_' || i, '+' || i, sha256(i::text::bytea), 'api', 'unknown', '', now()
    from generate_series(1, 10000) i;
insert into contact_erasures (organization_id, env, contact_id, due_at)
    select organization_id, env, id, now() from contacts;
analyze;
"""


@pytest.fixture
async def filled(database: Database) -> Database:
    await ensure_partitions(database, AT, months_ahead=0)
    await database.execute(FILL)
    return database


async def test_no_page_reads_a_whole_table(filled: Database) -> None:
    now = await filled.fetchval("select now()")
    key = ("org_7", "test", "chatapp", MESSAGE)
    pages: list[tuple[str, tuple[Any, ...]]] = [
        (retention.SQL.clear_content, (*key, "msg_~", 100)),
        (retention.SQL.forget_provider_ids, (*key, 100)),
        (retention.SQL.tier_recipients, ("org_7", "num_7", 0, now, 100)),
        (retention.SQL.chat_windows, ("org_7", "num_7", 0, now, 100)),
        (retention.SQL.sender_minutes, (AT, 100)),
        (retention.SQL.audit, ("org_7", "aud_1", 100)),
        (retention.SQL.last_confirmation, (AT, "aud_~")),
        (messages.SQL.clear_content, (*PUSH[:2], "", "psh_~", 100)),
        (messages.SQL.past, (*PUSH[:2], "", "psh_~", 100)),
        (messages.SQL.forget_dispatches, (*PUSH, 100)),
        (messages.SQL.forget_blocks, (*PUSH, 20)),
        (messages.SQL.forget, PUSH),
        (devices.SQL.unlink, (*PUSH[:2], "cnt_7", 100, AT)),
        (messages.SQL.lock_contacts, (*([each] for each in PUSH), [0])),
        (messages.SQL.touch, (["org_7"], ["test"], ["cnt_7"], AT)),
    ]
    for sql, arguments in pages:
        statement = sql.replace("{month}", MONTH)
        (plan,) = orjson.loads(await filled.fetchval(f"explain (format json) {statement}", *arguments))
        read = scans(plan["Plan"])
        assert read
        few = ("numbers", "social_accounts", "organizations")
        assert [table for table, kind in read if kind == "Seq Scan" and table not in few] == []
