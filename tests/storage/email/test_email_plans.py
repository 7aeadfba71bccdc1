"""Suppressions, senders and templates are found by their indexes, however many there are."""

from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.plans import indexes, plan_of, whole_tables
from tests.storage.conftest import opened, read_only

from recado.storage.core.connections.postgres import Database
from recado.storage.email.identities import SQL as IDENTITIES
from recado.storage.email.senders import SENDERS
from recado.storage.email.suppressions import SUPPRESSIONS
from recado.storage.email.templates import TEMPLATES

FILL = """
insert into email_suppressions
    select 'org_' || i % 3, 'test', 'sup_' || i, i || '@example.com', 'manual', sha256(i::text::bytea), now()
    from generate_series(1, 20000) i;
insert into email_senders (organization_id, env, id, domain, status, is_default, token, dns_records, misses,
        next_check_at, name_key, updated_at)
    select 'org_' || i % 500, 'live', 'snd_' || i, 'd' || i, 'verified', i <= 500, 't', '[]', 0,
        now() + i * interval '1 minute', 'd' || i, now()
    from generate_series(1, 20000) i;
insert into email_templates
    select 'org_' || i % 40, 'test', 'etpl_' || i, 'n', 's', 'h', null, null, '[]', '{}', 'active', 1, 'k', 1,
        'n' || i, now()
    from generate_series(1, 20000) i;
insert into email_identities (place, domain, organization_id, told_at, remove_at, removed_at)
    select 'ses', 'd' || i, 'org_' || i % 500, now(), case when i % 100 = 0 then now() end,
        case when i % 100 = 1 then now() end
    from generate_series(1, 20000) i;
analyze email_suppressions, email_senders, email_templates, email_identities;
"""
LONG_AGO = datetime(2026, 1, 31, tzinfo=UTC)
OWNER = ("org_1", "test")


@pytest.fixture(scope="module")
def prepared(postgres: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """For all of them: statements are planned and not run."""
    with read_only(postgres, lambda db: db.execute(FILL)) as arguments:
        yield arguments


@pytest.fixture
async def filled(prepared: dict[str, Any]) -> AsyncIterator[Database]:
    async with opened(prepared) as db:
        yield db


@pytest.mark.parametrize(
    ("statement", "arguments", "index"),
    [
        (SUPPRESSIONS.sql.page, (*OWNER, b"x" * 32, None, 50, 0), "email_suppressions_organization_id_env_hash_key"),
        (SUPPRESSIONS.sql.among, (*OWNER, [b"x" * 32]), "email_suppressions_organization_id_env_hash_key"),
        (
            SUPPRESSIONS.sql.suppressed,
            (["org_1"] * 2, ["test"] * 2, [b"x" * 32, b"y" * 32]),
            "email_suppressions_organization_id_env_hash_key",
        ),
        (SUPPRESSIONS.sql.page, (*OWNER, None, None, 50, 0), "email_suppressions_pkey"),
        (SENDERS.sql.has_default, ("org_1", "live"), "email_senders_default"),
        (SENDERS.sql.sending, ("org_1", "live", ["a@d1", "d1"]), "email_senders_organization_id_env_name_key_key"),
        (SENDERS.sql.sending, ("org_1", "live", []), "email_senders_default"),
        (SENDERS.sql.next_default, ("org_1", "live", LONG_AGO), "email_senders_pkey"),
        (IDENTITIES.told_since, ("org_1", LONG_AGO), "email_identities_by_organization"),
        (IDENTITIES.held, ("ses", ["d1", "d2"], LONG_AGO, LONG_AGO), "email_identities_by_domain"),
        (IDENTITIES.forsake, (["d1"], LONG_AGO), "email_identities_by_domain"),
        (IDENTITIES.lock_due, ("ses", LONG_AGO, 50), "email_identities_by_removal"),
        (IDENTITIES.begin_removal, ([1, 2], LONG_AGO, LONG_AGO), "email_senders_by_domain"),
        (IDENTITIES.forget, (LONG_AGO,), "email_identities_removed"),
        (TEMPLATES.sql.named, (*OWNER, "n1"), "email_templates_by_name"),
        (TEMPLATES.sql.page, (*OWNER, None, None, None, 50, 0), "email_templates_pkey"),
    ],
)
async def test_each_statement_takes_its_index(
    filled: Database, statement: str, arguments: Sequence[Any], index: str
) -> None:
    found = await plan_of(filled, statement, arguments)
    assert index in indexes(found)
    assert whole_tables(found) == set()
