"""One process serves a database: the next one is told who does, unless that one is dead."""

import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import asyncpg
import pytest
from tests.waiting import until

from recado.engine.clock import SystemClock
from recado.storage.core.postgres import Database
from recado.storage.dispatch import ownership
from recado.storage.dispatch.ownership import GRACE, LOCK, Owned, Ownership, living_owner, owner_of, session_name

HERE = "this-machine"


class Impatient(SystemClock):
    """A clock on which waiting takes no time; notes the pauses that are as long as the grace."""

    __slots__ = ("ahead", "during_grace", "graces")

    def __init__(self) -> None:
        super().__init__()
        self.ahead = 0.0
        self.graces = 0
        self.during_grace: Callable[[], Awaitable[None]] | None = None

    def monotonic(self) -> float:
        return SystemClock.monotonic() + self.ahead

    async def sleep(self, seconds: float) -> None:
        await super().sleep(0.01)
        self.ahead += seconds
        if seconds == GRACE:
            self.graces += 1
            if self.during_grace is not None:
                await self.during_grace()


def dead_pid() -> int:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return ended.pid


@pytest.fixture
async def processes(database: Database) -> Any:
    """Makes processes that would serve this test's database."""
    made: list[Ownership] = []

    def process(host: str = HERE, pid: int = os.getpid(), **changed: Any) -> tuple[Ownership, Impatient]:
        clock = Impatient()
        made.append(Ownership(database.server, clock=clock, host=host, pid=pid, **changed))
        return made[-1], clock

    yield process
    for each in made:
        await each.stop()


async def end_session(db: Database) -> None:
    """As when the process is killed, or the server was started again."""
    for row in await db.fetch(ownership.SQL.owner_sessions, *LOCK, "recado serve "):
        await db.execute(ownership.SQL.end_session, row["pid"])
    await until(lambda: unlocked(db), 10, "the lock is free")


async def unlocked(db: Database) -> bool:
    held = await db.fetchval(
        "select count(*) from pg_locks l join pg_database d on d.oid = l.database "
        "where d.datname = current_database() and l.locktype = 'advisory' and l.objid = $1",
        LOCK[1],
    )
    return bool(held == 0)


async def test_whoever_comes_second_is_told_who_serves_the_database(database: Database, processes: Any) -> None:
    first, _ = processes("web-1", 4711)
    await first.take()
    second, _ = processes("web-2", 42)
    with pytest.raises(Owned) as refused:
        await second.take()
    assert re.fullmatch(
        r"process 4711 on web-1 \(since 20\d\d-\S+Z\) serves this database: stop it first,"
        r" or, only if it hangs, take its place with 'recado serve --take-over'",
        str(refused.value),
    )
    assert (await owner_of(database)).pid == 4711


async def test_who_stopped_in_order_is_followed_at_once(database: Database, processes: Any) -> None:
    first, _ = processes("web-1", 4711)
    await first.take()
    await first.stop()
    second, clock = processes("web-2", 42)
    await second.take()
    assert clock.graces == 0
    assert (await owner_of(database)).host == "web-2"


@pytest.mark.parametrize("pid", ["dead", "reborn"])
async def test_who_was_killed_on_this_machine_is_followed_at_once(database: Database, processes: Any, pid: str) -> None:
    first, _ = processes(HERE, dead_pid() if pid == "dead" else 1)
    await first.take()
    await end_session(database)
    second, clock = processes(HERE, 42 if pid == "dead" else 1)  # in a container each life has the same id
    await second.take()
    assert clock.graces == 0
    assert (await owner_of(database)).pid == (42 if pid == "dead" else 1)


@pytest.mark.parametrize(
    ("host", "pid", "ends", "may_live"),
    [
        ("web-1", 4711, "in order", False),
        ("web-1", 4711, "its connection", True),
        (HERE, "dead", "its connection", False),
        (HERE, "living", "nothing", True),
        ("web-1", 4711, "nothing", True),
    ],
)
async def test_whoever_follows_knows_whether_the_one_before_may_live_on(
    database: Database, processes: Any, host: str, pid: int | str, ends: str, may_live: bool
) -> None:
    first, _ = processes(host, {"dead": dead_pid(), "living": os.getppid()}.get(pid, pid))
    await first.take()
    if ends == "in order":
        await first.stop()
    elif ends == "its connection":
        await end_session(database)
    second, _ = processes(HERE, os.getpid())
    await second.take(take_over=ends == "nothing")
    assert second.former_may_live is may_live


async def test_who_stands_still_is_not_followed(database: Database, processes: Any) -> None:
    """Its connection lives as long as it does, whatever it does."""
    first, _ = processes(HERE, dead_pid())
    await first.take()
    second, clock = processes(HERE, 42)
    with pytest.raises(Owned):
        await second.take()
    assert clock.graces == 0


async def test_who_died_on_another_machine_is_followed_after_a_grace(database: Database, processes: Any) -> None:
    first, _ = processes("web-1", 4711)
    await first.take()
    await end_session(database)
    second, clock = processes("web-2", 42)
    await second.take()
    assert clock.graces == 1
    assert (await owner_of(database)).host == "web-2"


async def test_who_only_lost_its_connection_stays_the_owner(database: Database, processes: Any) -> None:
    first, _ = processes("web-1", 4711)
    await first.take()
    await end_session(database)
    second, clock = processes("web-2", 42)

    async def keeps() -> None:
        await first.keep()  # finds its connection gone
        await first.keep()

    clock.during_grace = keeps
    with pytest.raises(Owned, match="process 4711 on web-1"):
        await second.take()


async def test_a_place_that_is_to_be_taken_is_had_whoever_holds_it(database: Database, processes: Any) -> None:
    first, _ = processes("web-1", 4711)
    await first.take()
    second, clock = processes("web-2", 42)
    await second.take(take_over=True)
    assert clock.graces == 0
    assert (await owner_of(database)).host == "web-2"

    await first.keep()
    await first.keep()
    await first.stop()  # it ends, as its epoch is gone, and takes nothing with it
    assert (await owner_of(database)).host == "web-2"
    third, _ = processes("web-3", 7)
    with pytest.raises(Owned, match="process 42 on web-2"):
        await third.take()


async def test_who_hangs_holds_no_rows_once_its_place_is_taken_and_others_keep_theirs(
    database: Database, processes: Any
) -> None:
    name, other_name = session_name(os.urandom), session_name(os.urandom)
    first, _ = processes("web-1", 4711, sessions=name)
    await first.take()
    async with AsyncExitStack() as open_ones:
        hung, starting, command = [
            await open_ones.enter_async_context(session(database, named)) for named in (name, other_name, "recado")
        ]
        for each in (hung, starting, command):
            await each.execute("begin")
        await hung.execute("select 1 from dispatchers where shard = 0 for update")

        second, _ = processes("web-2", 42, sessions=session_name(os.urandom))
        await second.take(take_over=True)

        assert second.not_ended is None
        await database.execute("select 1 from dispatchers where shard = 0 for update nowait")
        with pytest.raises((asyncpg.PostgresConnectionError, asyncpg.InterfaceError, asyncpg.AdminShutdownError)):
            await hung.execute("select 1")
        for each in (starting, command):
            await each.execute("commit")


async def test_sessions_without_a_name_of_their_own_are_not_taken_for_the_owners(
    database: Database, processes: Any
) -> None:
    first, _ = processes("web-1", 4711, sessions="recado")
    await first.take()
    async with session(database, "recado") as command:
        second, _ = processes("web-2", 42)
        await second.take(take_over=True)
        await command.execute("select 1")
    assert (await owner_of(database)).host == "web-2"


async def test_who_cannot_be_ended_is_known(
    database: Database, processes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = processes("web-1", 4711, sessions=session_name(os.urandom))
    await first.take()
    role = f"stranger_{os.getpid()}"
    await database.execute(f"create role {role}; grant select, update on dispatchers to {role}")
    try:
        monkeypatch.setitem(ownership._SETTINGS, "role", role)
        second, _ = processes("web-2", 42)
        await second.take(take_over=True)
        assert second.not_ended is not None
        assert (second.not_ended.host, second.not_ended.pid) == ("web-1", 4711)
        await second.stop()
    finally:
        await database.execute(f"drop owned by {role}; drop role {role}")


@asynccontextmanager
async def session(database: Database, name: str) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
    connection = await asyncpg.connect(**database.server, server_settings={"application_name": name})
    try:
        yield connection
    finally:
        connection.terminate()


async def test_a_server_that_is_away_does_not_end_the_owner(
    database: Database, processes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = processes("web-1", 4711)
    await first.take()
    await end_session(database)

    async def refused(*_: object, **__: object) -> Any:
        raise asyncpg.CannotConnectNowError("starting up")

    with monkeypatch.context() as away:
        away.setattr(asyncpg, "connect", refused)
        await first.keep()
        await first.keep()
    await first.keep()
    assert not await unlocked(database)


async def test_whoever_holds_the_lock_lives_and_who_is_only_written_does_not(
    database: Database, processes: Any
) -> None:
    assert await living_owner(database) is None
    owner, _ = processes()
    await owner.take()
    assert await living_owner(database) == await owner_of(database)
    await database.execute(
        """
        select pg_terminate_backend(pid) from pg_stat_activity
        where application_name = 'recado owner' and datname = current_database()
        """
    )
    await until(lambda: held_by_nobody(database), 10, "the lock is free")
    assert (await owner_of(database)).host == HERE


async def held_by_nobody(database: Database) -> bool:
    return await living_owner(database) is None
