"""From a token to its key, cached (C3.1, C24.4)."""

import asyncio
import os
import random
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.waiting import until_locked_out

from recado.domain.core.errors import Problem
from recado.domain.core.ids import IdSource
from recado.domain.core.tokens import mint_token
from recado.engine.clock import VirtualClock
from recado.storage.access import api_keys, organizations
from recado.storage.access.api_keys import ApiKey
from recado.storage.access.key_directory import KeyDirectory
from recado.storage.access.organizations import NewOrganization, create_organization
from recado.storage.core.connections.postgres import Database

START = datetime(2026, 1, 1, tzinfo=UTC)


class Counting:
    """The database, with its queries counted."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.queries = 0

    def __getattr__(self, name: str) -> Callable[..., Any]:
        self.queries += 1
        return getattr(self._database, name)  # type: ignore[no-any-return]


class Setting:
    """A database with one organization, and a directory in front of it."""

    def __init__(self, database: Database, made: NewOrganization, clock: VirtualClock, ids: IdSource) -> None:
        self.database = Counting(database)
        self.made = made
        self.clock = clock
        self.ids = ids
        self.keys = KeyDirectory(self.database, clock=clock)
        self.key, self.token = made.keys["test"]

    async def refusal(self, token: str) -> str:
        with pytest.raises(Problem) as caught:
            await self.keys.authenticate(token)
        return caught.value.code

    async def read(self) -> ApiKey:
        key = await api_keys.get(self.database, self.key.organization_id, "test", self.key.id)
        assert key is not None
        return key


@pytest.fixture
async def setting(database: Database) -> Setting:
    clock = VirtualClock(START)
    ids = IdSource(clock, random.Random(1))
    async with database.transaction() as connection:
        made = await create_organization(connection, ids, name="One", now=clock.now(), random_bytes=os.urandom)
    return Setting(database, made, clock, ids)


async def test_a_token_finds_its_key_with_one_query_for_five_seconds(setting: Setting) -> None:
    assert setting.keys.peek(setting.token) is None
    known = await setting.keys.authenticate(setting.token)
    assert (known.record, known.suspended) == (setting.key, False)
    assert setting.keys.peek(setting.token) is known
    assert await setting.keys.authenticate(setting.token) is known
    assert setting.database.queries == 1
    await setting.clock.advance(5.1)
    assert setting.keys.peek(setting.token) is None
    await setting.keys.authenticate(setting.token)
    assert setting.database.queries == 2


async def test_rubbish_never_reaches_the_database_and_the_unknown_is_not_remembered(setting: Setting) -> None:
    stranger = mint_token("svc_test_", os.urandom)
    for rubbish in ("", "x", setting.token[:-1], setting.token + "0", "svc_test_" + "0" * 43, "Ω" * 52):
        assert await setting.refusal(rubbish) == "UNAUTHORIZED"
    assert setting.database.queries == 0
    for expected in (1, 2):
        assert await setting.refusal(stranger) == "UNAUTHORIZED"
        assert setting.database.queries == expected


async def test_what_another_process_revokes_ends_here_within_five_seconds(setting: Setting) -> None:
    await setting.keys.authenticate(setting.token)
    await api_keys.revoke(setting.database, setting.key.organization_id, "test", setting.key.id, START)
    assert setting.keys.peek(setting.token) is not None
    await setting.clock.advance(5.0)
    assert await setting.refusal(setting.token) == "API_KEY_REVOKED"


async def test_what_this_process_changes_holds_at_once(setting: Setting) -> None:
    organization = setting.made.organization
    await setting.keys.authenticate(setting.token)
    suspended = organizations.with_status(organization, "suspended", setting.clock.now())
    await organizations.save(setting.database, organization, suspended, setting.clock.now())
    setting.keys.forget_organization("org_of_others")
    assert setting.keys.peek(setting.token) is not None
    setting.keys.forget_organization(organization.id)
    assert setting.keys.peek(setting.token) is None
    assert (await setting.keys.authenticate(setting.token)).suspended
    await api_keys.revoke(setting.database, setting.key.organization_id, "test", setting.key.id, START)
    setting.keys.forget_key(setting.key.id)
    assert await setting.refusal(setting.token) == "API_KEY_REVOKED"


async def test_a_cached_key_expires_to_the_moment(setting: Setting) -> None:
    key, token = await api_keys.issue_key(
        setting.database,
        setting.ids,
        organization_id=setting.key.organization_id,
        env="test",
        name="short",
        scopes=["org:read"],
        random_bytes=os.urandom,
        expires_at=START + timedelta(seconds=3),
    )
    assert (await setting.keys.authenticate(token)).record == key
    await setting.clock.advance(2.9)
    assert setting.keys.peek(token) is not None
    await setting.clock.advance(0.1)
    assert setting.keys.peek(token) is None
    assert await setting.refusal(token) == "API_KEY_EXPIRED"


async def test_the_former_token_ends_with_its_grace(setting: Setting) -> None:
    rotated = await api_keys.rotate(
        setting.database, setting.key, grace=timedelta(seconds=2), now=START, random_bytes=os.urandom
    )
    assert rotated is not None
    assert (await setting.keys.authenticate(setting.token)).record.id == setting.key.id
    await setting.clock.advance(2)
    assert await setting.refusal(setting.token) == "API_KEY_EXPIRED"
    assert (await setting.keys.authenticate(rotated[1])).ends_at is None


async def test_the_last_use_is_gathered_and_written_at_once_for_all(setting: Setting) -> None:
    await setting.keys.authenticate(setting.token)
    await setting.keys.flush()
    assert (await setting.read()).last_used_at == START
    await setting.clock.advance(4)
    await setting.keys.authenticate(setting.token)
    before = setting.database.queries
    await setting.keys.flush()
    assert setting.database.queries == before
    await setting.clock.advance(60)
    for _ in range(2):
        await setting.keys.authenticate(setting.token)
    before = setting.database.queries
    await setting.keys.flush()
    assert setting.database.queries == before + 1
    assert (await setting.read()).last_used_at == START + timedelta(seconds=64)


async def test_uses_that_could_not_be_written_are_kept_for_the_next_time(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    await setting.keys.authenticate(setting.token)
    with monkeypatch.context() as broken:
        broken.setattr(setting.database, "execute", _away, raising=False)
        with pytest.raises(OSError, match="away"):
            await setting.keys.flush()
    await setting.keys.flush()
    assert (await setting.read()).last_used_at == START


async def _away(*args: object) -> None:
    raise OSError("away")


async def test_a_known_token_costs_microseconds(setting: Setting) -> None:
    await setting.keys.authenticate(setting.token)
    rounds = 20_000
    best = min(_seconds(setting, rounds) for _ in range(3)) / rounds
    assert best < 10e-6, f"{best * 1e6:.1f} µs"


def _seconds(setting: Setting, rounds: int) -> float:
    peek, token = setting.keys.peek, setting.token
    started = time.thread_time()  # others may run beside it
    for _ in range(rounds):
        peek(token)
    return time.thread_time() - started


async def test_two_processes_that_write_last_uses_wait_for_each_other_in_one_order(
    database: Database, setting: Setting
) -> None:
    lower, higher = sorted(key.id for key, _ in setting.made.keys.values())
    uses = [(setting.key.organization_id, each, START + timedelta(days=1)) for each in (higher, lower)]
    lock = "select true from api_keys where id = $1 for update skip locked"
    async with database.transaction() as first:
        assert await first.fetchval(lock, lower)
        writing = asyncio.ensure_future(api_keys.touch(database, uses))
        await until_locked_out(database)
        assert await first.fetchval(lock, higher)
    await writing
    used = await database.fetch("select last_used_at from api_keys")
    assert {row["last_used_at"] for row in used} == {START + timedelta(days=1)}
