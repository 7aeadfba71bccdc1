"""From a token to its session, cached (C3.1, C24.3): what it costs, and how soon an end holds elsewhere."""

import os
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from recado.domain.access.account import Role
from recado.domain.core.errors import Problem
from recado.domain.core.ids import IdSource
from recado.engine.clock import VirtualClock
from recado.storage.access import accounts, sessions
from recado.storage.access.accounts import UserAccount
from recado.storage.access.organizations import create_organization
from recado.storage.access.session_directory import SessionDirectory
from recado.storage.access.sessions import OpenedSession
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
    """One account with a session, and two processes that know it."""

    def __init__(
        self, database: Database, account: UserAccount, opened: OpenedSession, clock: VirtualClock, ids: IdSource
    ) -> None:
        self.database = database
        self.account = account
        self.token = opened.tokens["test"]
        self.tokens = opened.tokens
        self.clock = clock
        self.ids = ids
        self.counting = Counting(database)
        self.here = SessionDirectory(self.counting, clock=clock)
        self.there = SessionDirectory(database, clock=clock)

    async def refusal(self, directory: SessionDirectory, token: str = "") -> str:
        with pytest.raises(Problem) as caught:
            await directory.authenticate(token or self.token)
        return caught.value.code

    async def last_used(self) -> datetime:
        return await self.database.fetchval("select last_used_at from sessions")  # type: ignore[no-any-return]


@pytest.fixture
async def setting(database: Database) -> Setting:
    clock = VirtualClock(START)
    ids = IdSource(clock, random.Random(3))
    async with database.transaction() as connection:
        made = await create_organization(
            connection, ids, name="One", now=START, random_bytes=os.urandom, owner_email="owner@example.com"
        )
        assert made.owner is not None
        account = await accounts.accept(connection, made.owner[1], password_hash="a hash", now=START)
        assert account is not None
        opened = await sessions.open_session(connection, ids, account, now=START, random_bytes=os.urandom)
        assert opened is not None
    return Setting(database, account, opened, clock, ids)


async def test_a_known_token_costs_no_query_for_five_seconds(setting: Setting) -> None:
    first = await setting.here.authenticate(setting.token)
    for _ in range(100):
        assert setting.here.peek(setting.token) is first
        assert await setting.here.authenticate(setting.token) is first
    assert setting.counting.queries == 1
    await setting.clock.advance(5)
    assert setting.here.peek(setting.token) is None
    await setting.here.authenticate(setting.token)
    assert setting.counting.queries == 2


async def test_rubbish_costs_no_query(setting: Setting) -> None:
    assert await setting.refusal(setting.here, setting.token[:-1] + "-") == "UNAUTHORIZED"
    assert setting.counting.queries == 0


@pytest.mark.parametrize("env", ["live", "test"])
async def test_each_token_opens_its_environment_only(setting: Setting, env: str) -> None:
    known = await setting.here.authenticate(setting.tokens[env])
    assert (known.env, known.account.id, known.account.role) == (env, setting.account.id, Role.OWNER)


async def test_an_end_holds_here_at_once_and_elsewhere_within_five_seconds(setting: Setting) -> None:
    await setting.here.authenticate(setting.token)
    await setting.there.authenticate(setting.token)
    await sessions.end(setting.database, setting.tokens["live"], setting.clock.now())
    setting.here.forget_account(setting.account.id)

    assert await setting.refusal(setting.here) == "SESSION_EXPIRED"
    assert setting.there.peek(setting.token) is not None
    await setting.clock.advance(5)
    assert await setting.refusal(setting.there) == "SESSION_EXPIRED"


async def test_uses_are_written_together_and_never_backwards(setting: Setting) -> None:
    await setting.clock.advance(600)
    await setting.here.authenticate(setting.token)
    for _ in range(10):
        await setting.clock.advance(5)
        await setting.here.authenticate(setting.token)
    assert await setting.last_used() == START
    before = setting.counting.queries

    await setting.here.flush()
    await setting.here.flush()

    assert setting.counting.queries == before + 1
    assert await setting.last_used() == START + timedelta(seconds=650)
    await sessions.touch(setting.database, [("ses_" + "0" * 21, START)])
    await setting.there.flush()
    assert await setting.last_used() == START + timedelta(seconds=650)


async def test_a_use_that_is_not_written_yet_keeps_the_session_here(setting: Setting) -> None:
    await setting.clock.advance(7_000)
    await setting.here.authenticate(setting.token)
    await setting.clock.advance(7_000)
    assert (await setting.here.authenticate(setting.token)).account.id == setting.account.id
    assert await setting.refusal(setting.there) == "SESSION_EXPIRED"


async def test_a_session_used_a_moment_ago_goes_on_however_late_that_was(setting: Setting) -> None:
    await setting.clock.advance(sessions.IDLE.total_seconds() - 2)
    await setting.here.authenticate(setting.token)
    await setting.clock.advance(3)
    assert setting.here.peek(setting.token) is not None
    assert (await setting.here.authenticate(setting.token)).account.id == setting.account.id


async def test_a_cached_session_ends_to_the_second(setting: Setting) -> None:
    for _ in range(6):
        await setting.clock.advance(sessions.IDLE.total_seconds() - 1)
        known = await setting.here.authenticate(setting.token)
        await setting.here.flush()
    assert known.ends_at == START + sessions.LASTS
    await setting.clock.advance((START + sessions.LASTS - setting.clock.now()).total_seconds())
    assert await setting.refusal(setting.here) == "SESSION_EXPIRED"


async def test_nobody_signs_in_while_his_account_is_disabled(setting: Setting) -> None:
    async with setting.database.transaction() as connection:
        await accounts.disable(connection, setting.account, setting.clock.now())
    async with setting.database.transaction() as connection:
        opened = await sessions.open_session(
            connection, setting.ids, setting.account, now=setting.clock.now(), random_bytes=os.urandom
        )
    assert opened is None
    assert await setting.refusal(setting.here) == "SESSION_EXPIRED"


async def test_what_is_past_its_time_is_removed(setting: Setting) -> None:
    await sessions.begin_attempt(setting.database, "nobody@example.com", START)
    async with setting.database.transaction() as connection:
        await accounts.create(
            connection,
            setting.ids,
            organization_id=setting.account.organization_id,
            name="Late",
            email="late@example.com",
            role=Role.ANALYST,
            now=START,
            random_bytes=os.urandom,
        )

    async def left() -> tuple[int, ...]:
        tables = ("sessions", "login_attempts", "account_invites")
        return tuple([await setting.database.fetchval(f"select count(*) from {table}") for table in tables])

    for hours, expected in ((0, (1, 1, 1)), (1, (1, 0, 1)), (35, (1, 0, 1)), (37, (0, 0, 1)), (73, (0, 0, 0))):
        now = START + timedelta(hours=hours)
        await sessions.purge(setting.database, now)
        await accounts.purge(setting.database, now)
        assert await left() == expected, hours
