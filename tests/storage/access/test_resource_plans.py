"""The plans of what is asked all the time: each look-up takes its index, however large the tables are."""

from typing import Any

import orjson
import pytest

from recado.storage.access import accounts, api_keys, organizations, sessions
from recado.storage.core import idempotency
from recado.storage.core.connections.postgres import Database
from recado.storage.senders import numbers, usage
from recado.storage.templates import templates

FILL = """
insert into organizations select 'org_' || i, 'n', 'active', 'UTC', 'BR', null, null, false, '{}', '{}', null, null,
    0, null, 1, now() from generate_series(1, 2000) i;
insert into api_keys (organization_id, id, env, name, prefix, scopes, allowed_ips)
    select 'org_' || i % 2000, 'key_' || i, 'test', 'n', 'p', '{}', '{}' from generate_series(1, 20000) i;
insert into api_key_tokens select sha256(i::text::bytea), 'org_' || i % 2000, 'key_' || i, null
    from generate_series(1, 20000) i;
insert into numbers (organization_id, id, env, phone_number_id, business_account_id, display_phone, status,
        quality_rating, messaging_tier, per_second, per_day, byo, profile, revision, updated_at, verify_at)
    select 'org_' || i % 2000, 'num_' || i, 'test', 'pn' || i, 'ba', '+1', 'connected', 'green', 'unlimited', 80,
        100000, false, '{}', 1, now(), now() + i * interval '1 minute' from generate_series(1, 20000) i;
insert into sender_owners select env, phone_number_id, organization_id, id, 'chatapp' from numbers;
insert into templates (organization_id, id, env, number_id, name, language, category, status, components, version,
        revision, updated_at, next_step_at, provider_template_id)
    select 'org_' || i % 2000, 'tpl_' || i, 'test', 'num_' || i, 'n' || i, 'pt-BR', 'utility', 'pending', '[]', 1, 1,
        now(), case when i % 50 = 0 then now() + i * interval '1 second' end, 'p' || i from generate_series(1, 20000) i;
insert into idempotency select 'org_' || i % 2000, 'test', sha256(i::text::bytea), '\\x00', now(), null, null, 201,
        '{}', 'cnt_' || i
    from generate_series(1, 20000) i;
insert into contacts (organization_id, env, id, phone, phone_hash, source, opt_in_status, search, updated_at)
    select 'org_' || i % 2000, 'test', 'cnt_' || i, '+' || i, sha256(i::text::bytea), 'api', 'unknown', '', now()
    from generate_series(1, 20000) i;
insert into sender_minutes select 'org_' || i % 20, 'num_' || i % 20, now() - i * interval '1 minute', 1, 0, 0
    from generate_series(1, 20000) i;
insert into accounts (organization_id, id, name, email, email_key, role, extra_scopes, status, updated_at)
    select 'org_' || i % 2000, 'acc_' || i, 'n', 'a' || i, 'a' || i, 'owner', '{}', 'active', now()
    from generate_series(1, 20000) i;
insert into sessions
    select 'ses_' || i, 'org_' || i % 2000, 'acc_' || i, sha256(i::text::bytea), sha256((-i)::text::bytea), now(), now()
    from generate_series(1, 20000) i;
insert into audit select 'org_' || i % 20, 'aud_' || i, 'test', 'key', 'k', 'a', null, null, null, '{}'
    from generate_series(1, 20000) i;
analyze;
"""


@pytest.fixture
async def filled(database: Database) -> Database:
    await database.execute(FILL)
    return database


def scans(plan: Any) -> list[tuple[str, str]]:
    """(table, node type) of everything that reads a table."""
    found = [(plan["Relation Name"], plan["Node Type"])] if "Relation Name" in plan else []
    for child in plan.get("Plans", []):
        found += scans(child)
    return found


async def test_every_hot_look_up_takes_an_index(filled: Database) -> None:
    now = await filled.fetchval("select now()")
    one = ("org_7", "test")
    hot: list[tuple[str, tuple[Any, ...]]] = [
        (api_keys.SQL.by_token_hash, (b"x" * 32,)),
        (sessions.SQL.by_token_hash, (b"x" * 32,)),
        (accounts.SQL.by_email, ("a7",)),
        (organizations.SQL.by_id, ("org_7",)),
        (numbers.SQL.by_id, (*one, "num_7")),
        (numbers.SQL.by_provider_id, ("test", "chatapp", "pn7")),
        (numbers.SQL.claim_due, ("test", now, now, 100)),
        (templates.SQL.by_id, (*one, "tpl_7")),
        (templates.SQL.by_provider_id, ("test", "p7", None)),
        (templates.SQL.claim_due, ("test", now, now, 100)),
        (idempotency.SQL.find, (*one, b"x" * 32)),
        (idempotency.SQL.erase, (*one, "cnt_7")),
        (idempotency.SQL.finish, (*one, b"x" * 32, now, 201, b"{}", "cnt_7")),
        (usage.SQL.totals, ("org_7", "num_7", now, now)),
    ]
    for sql, arguments in hot:
        (plan,) = orjson.loads(await filled.fetchval(f"explain (format json) {sql}", *arguments))
        kinds = dict(scans(plan["Plan"]))
        assert kinds
        assert "Seq Scan" not in kinds.values(), (sql, kinds)
