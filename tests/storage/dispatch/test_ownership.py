"""One process serves a database: the next one is told who does, unless that one is dead."""

import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any

import asyncpg
import pytest
from tests.waiting import until

from recado.domain.dispatch.leases import TOLERANCE, TTL, WINDOW, Lease
from recado.engine.clock import SystemClock
from recado.storage.core.connections.postgres import Database
from recado.storage.dispatch import epochs, ownership
from recado.storage.dispatch.ownership import (
    LOCK,
    ClocksApart,
    Owned,
    Owner,
    Ownership,
    living_owner,
    owner_of,
    session_name,
    staying_owner,
)

HERE = "this-machine"


class Impatient(SystemClock):
    """A clock on which waiting takes no time; `meanwhile` is done instead, and may be given the number of the wait."""

    __slots__ = ("ahead", "meanwhile", "off", "waits")

    def __init__(self) -> None:
        super().__init__()
        self.ahead = 0.0
        self.off = timedelta()
        self.waits = 0
        self.meanwhile: Callable[[], Awaitable[object]] | None = None
        shown = self.now
        self.now = lambda: shown() + self.off

    def monotonic(self) -> float:
        return SystemClock.monotonic() + self.ahead

    async def sleep(self, seconds: float) -> None:
        await super().sleep(0.01)
        self.ahead += seconds
        self.waits += 1
        if self.meanwhile is not None:
            await self.meanwhile()


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
        made.append(Ownership(database.server, clock=clock, elapsed=SystemClock.elapsed, host=host, pid=pid, **changed))
        return made[-1], clock

    yield process
    for each in made:
        await each.stop()


async def end_session(db: Database) -> None:
    """As when the process is killed, or the server was started again."""
    await db.execute("select pg_terminate_backend(backend) from hosts where ended_at is null")
    await until(lambda: unlocked(db), "the lock is free")


async def unlocked(db: Database) -> bool:
    held = await db.fetchval(
        "select count(*) from pg_locks l join pg_database d on d.oid = l.database "
        "where d.datname = current_database() and l.locktype = 'advisory' and l.objid = $1",
        LOCK[1],
    )
    return bool(held == 0)


async def over(db: Database) -> None:
    """As when five seconds have passed."""
    await db.execute("update hosts set lease_until = clock_timestamp()")


async def test_whoever_comes_second_is_told_who_serves_the_database(database: Database, processes: Any) -> None:
    first, _ = processes("web-1", 4711)
    await first.take()
    second, clock = processes("web-2", 42)
    clock.meanwhile = first.keep
    with pytest.raises(Owned) as refused:
        await second.take()
    assert re.fullmatch(
        r"process 4711 on web-1 \(since 20\d\d-\S+Z\) serves this database: stop it first,"
        r" or, only if it hangs, take its place with 'recado serve --take-over'",
        str(refused.value),
    )
    assert (await owner_of(database)).pid == 4711
    assert first.lease.holds()
    assert not second.lease.holds()


async def test_who_stands_still_while_it_takes_the_place_is_not_waited_for(
    database: Database, processes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ownership, "ANSWER_LIMIT", 0.2)
    process, _ = processes()
    async with session(database, "taker") as taker, taker.transaction():
        await taker.execute(ownership.SQL.one_takes)
        with pytest.raises(Owned, match="stands still: end that process, then start again"):
            await process.take(take_over=True)


async def test_who_stopped_in_order_is_followed_at_once(database: Database, processes: Any) -> None:
    first, _ = processes("web-1", 4711)
    before = await first.take()
    await first.stop()
    second, clock = processes("web-2", 42)
    taken = await second.take()
    assert clock.waits == 0
    assert (await owner_of(database)).host == "web-2"
    assert taken.epoch == before.epoch + 1
    assert 0 < taken.opens_at - clock.monotonic() <= WINDOW + TOLERANCE


async def test_who_stopped_long_ago_keeps_nobody_waiting(database: Database, processes: Any) -> None:
    first, _ = processes("web-1", 4711)
    await first.take()
    await first.stop()
    await database.execute("update hosts set free_at = free_at - interval '3 seconds'")
    second, clock = processes("web-2", 42)
    assert (await second.take()).opens_at < clock.monotonic()


@pytest.mark.parametrize("pid", ["dead", "reborn"])
async def test_who_was_killed_on_this_machine_is_followed_at_once(database: Database, processes: Any, pid: str) -> None:
    first, _ = processes(HERE, dead_pid() if pid == "dead" else 1)
    await first.take()
    await end_session(database)
    second, clock = processes(HERE, 42 if pid == "dead" else 1)  # in a container each life has the same id
    taken = await second.take()
    assert clock.waits == 0
    assert (await owner_of(database)).pid == (42 if pid == "dead" else 1)
    assert 0 < taken.opens_at - clock.monotonic() <= WINDOW + TOLERANCE


async def test_the_same_name_and_process_id_in_another_container_are_not_taken_for_dead(
    database: Database, processes: Any
) -> None:
    first, _ = processes(HERE, 1)
    await first.take()
    second, clock = processes(HERE, 1)
    clock.meanwhile = first.keep
    with pytest.raises(Owned):
        await second.take()


async def test_who_died_on_another_machine_is_followed_when_its_lease_is_over(
    database: Database, processes: Any
) -> None:
    first, _ = processes("web-1", 4711)
    await first.take()
    await end_session(database)
    second, clock = processes("web-2", 42)

    async def times_out() -> None:
        if clock.waits == 5:
            await database.execute("update hosts set lease_until = lease_until - interval '5 seconds'")

    clock.meanwhile = times_out
    taken = await second.take()
    assert clock.waits == 5
    assert (await owner_of(database)).host == "web-2"
    assert taken.opens_at < clock.monotonic() + WINDOW + TOLERANCE


async def test_who_stands_still_is_followed_when_its_lease_is_over_and_begins_nothing_when_it_goes_on(
    database: Database, processes: Any
) -> None:
    first, _ = processes("web-1", 4711)
    await first.take()
    await over(database)
    second, clock = processes("web-2", 42)
    await second.take()
    assert clock.waits == 0
    await first.keep()  # finds its connection gone
    await first.keep()
    assert not first.lease.holds()
    assert (await owner_of(database)).host == "web-2"


async def test_who_only_lost_its_connection_stays_the_owner(database: Database, processes: Any) -> None:
    first, _ = processes("web-1", 4711)
    await first.take()
    await end_session(database)
    second, clock = processes("web-2", 42)
    clock.meanwhile = first.keep
    with pytest.raises(Owned, match="process 4711 on web-1"):
        await second.take()


async def test_a_lease_that_was_over_is_had_again_where_nobody_took_it(database: Database, processes: Any) -> None:
    first, _ = processes("web-1", 4711)
    await first.take()
    first.lease = Lease(SystemClock.elapsed)
    await over(database)
    await first.keep()
    assert first.lease.holds()
    second, clock = processes("web-2", 42)
    clock.meanwhile = first.keep
    with pytest.raises(Owned):
        await second.take()


async def test_a_place_that_is_to_be_taken_is_had_whoever_holds_it(database: Database, processes: Any) -> None:
    first, _ = processes("web-1", 4711)
    await first.take()
    second, clock = processes("web-2", 42)
    taken = await second.take(take_over=True)
    assert clock.waits == 0
    assert (await owner_of(database)).host == "web-2"
    # The first one may begin calls until its lease is over, should it not notice.
    assert TTL - 1.0 < taken.opens_at - clock.monotonic() - WINDOW <= TTL + TOLERANCE

    await first.keep()
    await first.keep()
    assert not first.lease.holds()
    await first.stop()  # it ends, as its epoch is gone, and takes nothing with it
    assert (await owner_of(database)).host == "web-2"
    third, clock = processes("web-3", 7)
    clock.meanwhile = second.keep
    with pytest.raises(Owned, match="process 42 on web-2"):
        await third.take()


async def test_who_follows_one_that_never_opened_waits_for_the_one_before_too(
    database: Database, processes: Any
) -> None:
    first, _ = processes("web-1", 4711)
    await first.take()
    second, _ = processes("web-2", 42)
    waits_until = (await second.take(take_over=True)).opens_at
    await second.stop()
    third, _ = processes("web-3", 7)
    assert (await third.take()).opens_at == pytest.approx(waits_until, abs=0.5)


@pytest.mark.parametrize("off", [0.04, -0.04])
async def test_a_clock_that_is_a_little_off_is_waited_for(database: Database, processes: Any, off: float) -> None:
    first, _ = processes("web-1", 4711)
    await first.take()
    await first.stop()
    second, clock = processes("web-2", 42)
    clock.off = timedelta(seconds=off)
    earliest = clock.monotonic()
    await database.execute("update hosts set ended_at = clock_timestamp(), free_at = clock_timestamp()")
    latest = clock.monotonic()
    opens_at = (await second.take()).opens_at - WINDOW - TOLERANCE
    round_trip = 0.03
    assert earliest + abs(off) - round_trip <= opens_at <= latest + abs(off) + round_trip


@pytest.mark.parametrize("off", [0.2, -0.2])
async def test_who_has_a_wrong_clock_takes_nothing_and_says_what_to_do(
    database: Database, processes: Any, off: float
) -> None:
    process, clock = processes("web-2", 42)
    clock.off = timedelta(seconds=off)
    with pytest.raises(ClocksApart, match=r"^the clock of this machine is 0\.\d+ s apart .* follow a time server"):
        await process.take(take_over=True)
    assert (await owner_of(database)).host is None


async def test_a_wrong_clock_keeps_nobody_from_what_sends_nothing(database: Database, processes: Any) -> None:
    command, clock = processes("web-2", 42)
    clock.off = timedelta(hours=1)
    await command.take(sends=False)
    assert (await owner_of(database)).host == "web-2"


@pytest.mark.parametrize("take_over", [False, True])
async def test_a_service_of_an_earlier_version_has_the_lock_alone(
    database: Database, processes: Any, take_over: bool
) -> None:
    async with session(database, session_name(os.urandom)) as earlier:
        assert await earlier.fetchval("select pg_try_advisory_lock($1, $2)", *LOCK)
        process, _ = processes("web-2", 42)
        if not take_over:
            with pytest.raises(Owned, match=r"^another process serves this database"):
                await process.take()
            return
        await process.take(take_over=True)
        with pytest.raises((asyncpg.PostgresConnectionError, asyncpg.InterfaceError, asyncpg.AdminShutdownError)):
            await earlier.execute("select 1")


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
        await hung.execute("select 1 from shards where shard = 7 for update")

        second, _ = processes("web-2", 42, sessions=session_name(os.urandom))
        await second.take(take_over=True)

        assert second.not_ended is None
        await database.execute("select 1 from shards where shard = 7 for update nowait")
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
    await database.execute(f"create role {role}; grant select, insert, update, delete on hosts, shards to {role}")
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
        first.lease = Lease(SystemClock.elapsed)  # as long as that
    await first.keep()
    assert first.lease.holds()
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
    await until(lambda: held_by_nobody(database), "the lock is free")
    assert (await owner_of(database)).host == HERE


async def test_who_is_about_to_take_the_place_does_not_live_as_its_owner(database: Database, processes: Any) -> None:
    former, _ = processes("web-1", 4711)
    await former.take()
    await end_session(database)
    taker, clock = processes("web-2", 42)
    seen: list[tuple[Owner | None, str]] = []

    async def look() -> None:
        seen.append((await living_owner(database), str(await staying_owner(database, Impatient()))))
        await over(database)

    clock.meanwhile = look
    await taker.take()
    assert seen[:1] == [(None, "another process")]  # the tables are not changed under it
    assert await living_owner(database) == await owner_of(database)


async def test_a_service_of_an_earlier_version_lives_while_it_has_the_lock_alone(database: Database) -> None:
    async with session(database, session_name(os.urandom)) as earlier:
        assert await earlier.fetchval("select pg_try_advisory_lock($1, $2)", *LOCK)
        assert await living_owner(database) == await owner_of(database)
    await until(lambda: held_by_nobody(database), "the lock is free")


async def held_by_nobody(database: Database) -> bool:
    return await living_owner(database) is None


async def test_an_epoch_beside_the_owners_goes_by_its_lease_and_ends_alone(database: Database, processes: Any) -> None:
    owner, _ = processes("web-1", 4711)
    own = await owner.take()
    beside = await owner.join(4712)
    assert beside is not None
    await owner.give([0, 1, 7], beside.epoch)
    assert await shards_of(database, beside.epoch) == [1, 7]  # the first stays the owner's
    assert (await owner_of(database)).pid == 4711
    await over(database)
    await owner.keep()
    assert await database.fetchval("select bool_and(lease_until > clock_timestamp()) from hosts where ended_at is null")
    await owner.end(beside.epoch)
    assert [await epochs.lives(database, each.epoch) for each in (own, beside)] == [True, False]
    assert await shards_of(database, beside.epoch) == []
    await owner.give([3], beside.epoch)
    assert await shards_of(database, own.epoch) == list(range(256))  # a dead one is given nothing


async def test_whoever_takes_the_place_ends_the_epochs_beside_it_and_is_joined_by_its_own_alone(
    database: Database, processes: Any
) -> None:
    first, _ = processes("web-1", 4711)
    await first.take()
    beside = await first.join(4712)
    second, _ = processes("web-2", 42)
    taken = await second.take(take_over=True)
    assert not await epochs.lives(database, beside.epoch)
    assert await shards_of(database, taken.epoch) == list(range(256))
    assert await first.join(4713) is None
    await first.give([5], beside.epoch)
    assert await shards_of(database, taken.epoch) == list(range(256))


async def test_files_of_begun_calls_of_owners_and_of_those_beside_them_are_told_apart(
    database: Database, processes: Any
) -> None:
    first, _ = processes("web-1", 4711)
    own = await first.take()
    await epochs.note_opened(database, own.epoch)
    beside = await first.join(4712)
    await epochs.note_opened(database, beside.epoch)
    assert await epochs.opened_beside(database) == []  # it lives
    await first.stop()
    second, _ = processes("web-2", 42)
    assert (await second.take()).opened_before == (own.epoch, own.at)
    assert await epochs.opened_beside(database) == [(beside.epoch, beside.at)]
    await epochs.note_sorted_out(database, beside.epoch)
    assert await epochs.opened_beside(database) == []


async def shards_of(db: Database, epoch: int) -> list[int]:
    return [row["shard"] for row in await db.fetch("select shard from shards where epoch = $1 order by shard", epoch)]
