"""What an organization is born with (C2.2), and how long its queues stood still (C14.5)."""

import os
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from recado.domain.access.scopes import KEY_SCOPES
from recado.domain.core.errors import Problem
from recado.domain.core.ids import IdSource, created_at
from recado.domain.core.tokens import token_env, token_hash
from recado.engine.clock import VirtualClock
from recado.storage.access import api_keys, organizations
from recado.storage.access.organizations import NewOrganization, create_organization
from recado.storage.core import audit
from recado.storage.core.connections.postgres import Database
from recado.storage.senders import numbers

NOW = datetime(2026, 1, 1, tzinfo=UTC)


async def make(database: Database, name: str = "One") -> NewOrganization:
    ids = IdSource(VirtualClock(NOW), random.Random(name))
    async with database.transaction() as connection:
        return await create_organization(connection, ids, name=name, now=NOW, random_bytes=os.urandom)


async def test_an_organization_is_born_with_a_key_per_environment_and_a_sandbox_number(database: Database) -> None:
    made = await make(database)
    organization = await organizations.get(database, made.organization.id)
    assert organization == made.organization
    assert (organization.name, organization.status, organization.created_at) == ("One", "active", NOW)
    for env, (key, token) in made.keys.items():
        assert token_env(token) == env == key.env
        assert key.scopes == KEY_SCOPES
        assert await api_keys.get(database, organization.id, env, key.id) == key
        assert await database.fetchval(
            "select key_id from api_key_tokens where token_hash = $1", token_hash(token)
        ) == (key.id)
    assert set(made.keys) == {"live", "test"}
    number = await numbers.get(database, organization.id, "test", made.number.id)
    assert number == made.number
    assert (number.status, number.messaging_tier, number.quality_rating) == ("connected", "unlimited", "green")
    assert await numbers.get(database, organization.id, "live", made.number.id) is None
    assert await numbers.by_provider_id(database, "test", number.phone_number_id) == number


async def test_the_audit_tells_of_the_first_keys(database: Database) -> None:
    made = await make(database)
    for env, (key, _) in made.keys.items():
        entries = await audit.list_page(
            database, made.organization.id, env, first_id="aud_", before_id="aud_~", limit=10
        )
        assert [(entry.action, entry.target_id, entry.actor_type) for entry in entries] == [
            ("pii_full.grant", key.id, "system"),
            ("api_key.create", key.id, "system"),
        ]


async def test_nothing_is_left_of_an_organization_that_could_not_be_made(database: Database) -> None:
    ids = IdSource(VirtualClock(NOW), random.Random(1))

    def dry(count: int) -> bytes:
        raise LookupError("no randomness")

    with pytest.raises(LookupError, match="no randomness"):
        async with database.transaction() as connection:
            await create_organization(connection, ids, name="One", now=NOW, random_bytes=dry)
    assert await organizations.all_organizations(database) == []


async def test_organizations_are_listed_oldest_first(database: Database) -> None:
    made = [(await make(database, name)).organization for name in ("One", "Two")]
    listed = await organizations.all_organizations(database)
    assert listed == sorted(made, key=lambda organization: organization.id)


async def test_a_write_over_another_revision_is_refused(database: Database) -> None:
    before = (await make(database)).organization
    after = await organizations.save(database, before, replace(before, name="Two"), NOW + timedelta(hours=1))
    assert (after.revision, after.updated_at) == (2, NOW + timedelta(hours=1))
    assert created_at(after.id) == after.created_at == NOW
    with pytest.raises(Problem, match="VERSION_MISMATCH"):
        await organizations.save(database, before, replace(before, name="Three"), NOW)
    assert await organizations.get(database, before.id) == after


async def test_time_suspended_adds_up(database: Database) -> None:
    organization = (await make(database)).organization
    for _ in range(2):
        organization = organizations.with_status(organization, "suspended", NOW)
        assert organization.suspended
        assert organizations.with_status(organization, "suspended", NOW + timedelta(1)) is organization
        organization = organizations.with_status(organization, "active", NOW + timedelta(seconds=1.5))
    assert (organization.held_ms, organization.held_since, organization.suspended) == (3000, None, False)
    back_in_time = organizations.with_status(replace(organization, status="suspended", held_since=NOW), "active", NOW)
    assert back_in_time.held_ms == 3000
