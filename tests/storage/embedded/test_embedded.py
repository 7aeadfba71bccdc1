"""The embedded server: shared by the processes of a data folder, closed to everybody else, and back after any crash."""

import asyncio
import errno
import os
import select
import shutil
import signal
import stat
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from unittest.mock import Mock

import asyncpg
import pytest
from tests.captured import capture_logs
from tests.waiting import until

from recado.engine.clock import SystemClock
from recado.storage.core.connections.postgres import Database
from recado.storage.embedded import embedded
from recado.storage.embedded.cluster import Cluster, ClusterError
from recado.storage.embedded.embedded import EmbeddedError, EmbeddedPostgres
from recado.storage.embedded.server_processes import is_server
from recado.storage.embedded.service_folder import locate

# A process that joins the server, tells its pid, and leaves when its input ends.
OTHER_PROCESS = """
import asyncio, concurrent.futures.thread, os, sys
from pathlib import Path
from recado.engine.clock import SystemClock
from recado.storage.embedded.embedded import EmbeddedPostgres

async def main():
    server = EmbeddedPostgres(Path(sys.argv[1]), clock=SystemClock())
    if len(sys.argv) > 2:
        os.setgroups([])
        os.setgid(int(sys.argv[2]))
        os.setuid(int(sys.argv[2]))
    await server.start()
    print(server.pid, flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await server.stop()

asyncio.run(main())
"""


class OtherProcess:
    """A second process that uses the server of a data folder."""

    def __init__(self, data_dir: Path, *arguments: str) -> None:
        command = [sys.executable, "-c", OTHER_PROCESS, str(data_dir), *arguments]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    async def server_pid(self) -> int:
        assert self.process.stdout is not None
        return int(await asyncio.to_thread(self.process.stdout.readline))

    async def leave(self) -> None:
        await asyncio.to_thread(self.process.communicate)
        assert self.process.returncode == 0

    async def kill(self) -> None:
        self.process.kill()
        await asyncio.to_thread(self.process.communicate)


def make_server(data_dir: Path) -> EmbeddedPostgres:
    return EmbeddedPostgres(data_dir, clock=SystemClock())


async def query(server: EmbeddedPostgres, sql: str) -> object:
    connection = await asyncpg.connect(**await server.start())
    try:
        return await connection.fetchval(sql)
    finally:
        await connection.close()


async def another_server_than(pid: int, server: EmbeddedPostgres, database: Database) -> None:
    """Waits for a new server process; connections of the killed one may go on answering for a moment."""
    async with asyncio.timeout(60):
        while server.pid in (None, pid):
            assert await database.fetchval("select 1") == 1


def running(data_dir: Path) -> int | None:
    return Cluster(locate(data_dir)).pid()


async def test_data_survive_a_stop_and_a_start(data_dir: Path) -> None:
    server = make_server(data_dir)
    await server.start()
    await query(server, "create table t as select 42 as a")
    await server.stop()
    await server.stop()
    assert running(data_dir) is None
    await server.start()
    assert await query(server, "select a from t") == 42
    await server.stop()


@pytest.mark.long
async def test_only_a_socket_of_ours_leads_in_and_nobody_is_trusted(own_server: EmbeddedPostgres) -> None:
    arguments = await own_server.start()
    assert await query(own_server, "show listen_addresses") == ""
    assert await query(own_server, "select array_agg(auth_method) from pg_hba_file_rules") == ["peer"]
    socket_folder = Path(arguments["host"])
    assert stat.S_IMODE(socket_folder.stat().st_mode) == 0o700
    with pytest.raises(asyncpg.InvalidAuthorizationSpecificationError):
        await asyncpg.connect(**{**arguments, "user": "postgres"})


@pytest.mark.long
async def test_durability_is_on_and_the_tuning_holds(own_server: EmbeddedPostgres) -> None:
    expected = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "jit": "off"}
    expected |= {"max_connections": "120", "max_wal_size": "8GB", "shared_buffers": "256MB", "server_encoding": "UTF8"}
    expected |= {"min_wal_size": "512MB", "checkpoint_timeout": "15min", "checkpoint_completion_target": "0.9"}
    expected |= {"wal_compression": "off", "autovacuum_naptime": "5s"}
    for name, value in expected.items():
        assert await query(own_server, f"show {name}") == value
    assert await query(own_server, "select upper('é') || ('Z' < 'a')::text") == "Étrue"


@pytest.mark.long
async def test_values_of_a_failed_statement_stay_out_of_the_log(own_server: EmbeddedPostgres, data_dir: Path) -> None:
    for sql in ("select '+5511987654321'::integer", "select '+5511987654321' from nowhere"):
        with pytest.raises(asyncpg.PostgresError):
            await query(own_server, sql)
    log = locate(data_dir).folder / "postgres.log"
    assert "ready to accept connections" in log.read_text()
    assert "987654321" not in log.read_text()


async def test_a_second_process_joins_and_its_leaving_stops_nothing(
    own_server: EmbeddedPostgres, data_dir: Path
) -> None:
    other = OtherProcess(data_dir)
    assert await other.server_pid() == own_server.pid
    await other.leave()
    assert await query(own_server, "select 1") == 1


@pytest.mark.long
async def test_the_last_of_several_users_stops_the_server(data_dir: Path) -> None:
    first, second, other = make_server(data_dir), make_server(data_dir), OtherProcess(data_dir)
    await asyncio.gather(first.start(), second.start())
    pid = await other.server_pid()
    assert first.pid == second.pid == pid
    await first.stop()
    await second.stop()
    assert running(data_dir) == pid
    await other.leave()
    assert running(data_dir) is None


async def test_the_server_that_a_killed_process_left_is_stopped_by_who_does_not_use_it_unless_others_do(
    data_dir: Path,
) -> None:
    other, server = OtherProcess(data_dir), make_server(data_dir)
    pid = await other.server_pid()
    await server.stop_left()
    assert running(data_dir) == pid
    await other.kill()
    await server.stop_left()
    assert running(data_dir) is None
    await server.stop_left()  # and none is begun
    assert running(data_dir) is None
    nowhere = data_dir / "nowhere"
    await make_server(nowhere).stop_left()
    assert not nowhere.exists()


async def test_a_server_that_had_not_yet_written_who_it_is_when_its_owner_was_killed_is_stopped_too(
    data_dir: Path,
) -> None:
    other = OtherProcess(data_dir)
    pid = await other.server_pid()
    await other.kill()
    server, folder = make_server(data_dir), Cluster(locate(data_dir)).folder
    (folder / "postmaster.pid").unlink()
    assert running(data_dir) is None
    assert is_server(pid, folder)
    await server.stop_left(within=3.0)  # it is given one second to write it
    assert not is_server(pid, folder)


async def test_the_server_of_a_killed_process_is_taken_over_and_stopped_by_the_next(data_dir: Path) -> None:
    other = OtherProcess(data_dir)
    pid = await other.server_pid()
    await other.kill()
    assert running(data_dir) == pid
    server = make_server(data_dir)
    await server.start()
    assert server.pid == pid
    assert await query(server, "select 1") == 1
    await server.stop()
    assert running(data_dir) is None


async def test_a_killed_server_is_started_again_with_all_that_was_committed(own_server: EmbeddedPostgres) -> None:
    database = Database(await own_server.start(), clock=SystemClock(), deadline=30)
    await database.start()
    await database.execute("create table t as select generate_series(1, 1000) as a")
    for _ in range(2):
        pid = own_server.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        await another_server_than(pid, own_server, database)
        assert await database.fetchval("select count(*) from t") == 1000
    await database.stop()


@pytest.mark.long
async def test_a_server_that_another_process_started_is_supervised_too(data_dir: Path) -> None:
    other = OtherProcess(data_dir)
    pid = await other.server_pid()
    server = make_server(data_dir)
    database = Database(await server.start(), clock=SystemClock(), deadline=30)
    await database.start()
    await other.kill()
    os.kill(pid, signal.SIGKILL)
    await another_server_than(pid, server, database)
    await database.stop()
    await server.stop()


@pytest.mark.long
async def test_a_restart_gives_a_new_process_and_keeps_the_data(own_server: EmbeddedPostgres) -> None:
    await query(own_server, "create table t as select 1 as a")
    before = own_server.pid
    await own_server.restart()
    assert own_server.pid not in (None, before)
    assert await query(own_server, "select a from t") == 1


@pytest.mark.long
async def test_a_pid_file_whose_pid_is_another_program_by_now_does_not_hold_the_start_up(data_dir: Path) -> None:
    server = make_server(data_dir)
    await server.start()
    await query(server, "create table t as select 1 as a")
    home = locate(data_dir)
    # After a crash of the machine both lock files remain, and their pid may belong to a program of the same user.
    locks = [home.folder / "cluster" / "postmaster.pid", home.folder / "run" / ".s.PGSQL.5432.lock"]
    left_behind = [lock.read_text() for lock in locks]
    await server.stop()
    stranger = subprocess.Popen(["cat"], stdin=subprocess.PIPE, user=home.uid if home.foreign else None)
    for lock, text in zip(locks, left_behind, strict=True):
        lock.write_text("\n".join([str(stranger.pid), *text.splitlines()[1:], ""]))
        os.chown(lock, home.uid, home.gid)
        lock.chmod(0o600)
    assert await query(server, "select a from t") == 1
    stranger.communicate()
    await server.stop()


@pytest.mark.long
async def test_a_start_that_is_broken_off_leaves_no_server(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spawned: asyncio.Queue[int] = asyncio.Queue()
    spawn = Cluster.spawn

    def telling(cluster: Cluster) -> int:
        pid = spawn(cluster)
        spawned.put_nowait(pid)
        return pid

    server = make_server(data_dir)
    with monkeypatch.context() as starting:
        starting.setattr(Cluster, "spawn", telling)
        start = asyncio.create_task(server.start())
        pid = await spawned.get()
        start.cancel()  # before the server has written its pid
        with pytest.raises(asyncio.CancelledError):
            await start
    assert not is_server(pid, locate(data_dir).folder / "cluster")
    assert await query(server, "select 1") == 1
    await server.stop()


@pytest.mark.long
async def test_a_start_that_is_broken_off_leaves_the_server_of_others(
    own_server: EmbeddedPostgres, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    joining, asked = make_server(data_dir), asyncio.Event()

    async def never(_: Cluster) -> bool:
        asked.set()
        return False

    pid = own_server.pid
    monkeypatch.setattr(joining, "_answers", never)
    start = asyncio.create_task(joining.start())
    await asked.wait()
    start.cancel()
    with pytest.raises(asyncio.CancelledError):
        await start
    assert await query(own_server, "select 1") == 1
    assert own_server.pid == pid


@pytest.mark.long
@pytest.mark.parametrize("left", ["", "\0" * 40])
async def test_lock_files_without_a_pid_do_not_hold_the_start_up(data_dir: Path, left: str) -> None:
    server = make_server(data_dir)
    await server.start()
    await query(server, "create table t as select 1 as a")
    await server.stop()
    home = locate(data_dir)
    for lock in (home.folder / "cluster" / "postmaster.pid", home.folder / "run" / ".s.PGSQL.5432.lock"):
        lock.write_text(left)
        os.chown(lock, home.uid, home.gid)
    assert await query(server, "select a from t") == 1
    await server.stop()


@pytest.mark.long
async def test_a_lock_file_without_a_pid_stays_while_its_server_is_there(
    own_server: EmbeddedPostgres, data_dir: Path
) -> None:
    cluster = Cluster(locate(data_dir))
    lock = cluster.folder / "postmaster.pid"
    told = lock.read_text()
    lock.write_text("")
    with suppress(ProcessLookupError):  # the second one has ended already
        second = os.pidfd_open(cluster.spawn())
        try:
            await asyncio.to_thread(select.select, [second], [], [], 30)
        finally:
            os.close(second)
    assert lock.read_text() == ""
    assert 'lock file "postmaster.pid" is empty' in cluster.trouble()
    lock.write_text(told)
    assert await query(own_server, "select 1") == 1


@pytest.mark.long
async def test_a_full_disk_leaves_a_lock_file_as_it_was(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = make_server(data_dir)
    await server.start()
    lock = locate(data_dir).folder / "cluster" / "postmaster.pid"
    of_another_program = lock.read_text().replace(str(server.pid), str(os.getpid()), 1)
    await server.stop()
    lock.write_text(of_another_program)
    with monkeypatch.context() as full:
        full.setattr(os, "fsync", no_room)
        with pytest.raises(OSError, match="No space left"):
            await server.start()
    assert lock.read_text() == of_another_program
    assert await query(server, "select 1") == 1
    await server.stop()


@pytest.mark.long
async def test_a_start_writes_no_settings_that_are_there_already(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = make_server(data_dir)
    await server.start()
    await server.stop()
    settings = locate(data_dir).folder / "postgresql.conf"
    monkeypatch.setattr(os, "fsync", no_room)
    assert await query(server, "show max_wal_size") == "8GB"
    await server.stop()
    settings.write_text("")
    with pytest.raises(OSError, match="No space left"):
        await server.start()
    monkeypatch.undo()
    assert await query(server, "show max_wal_size") == "8GB"
    await server.stop()


def no_room(_: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.long
async def test_a_first_start_that_was_killed_halfway_leaves_no_wreck(data_dir: Path) -> None:
    unfinished = locate(data_dir).folder / "cluster.new"
    unfinished.mkdir()
    (unfinished / "PG_VERSION").write_text("18\n")
    server = make_server(data_dir)
    assert await query(server, "select 1") == 1
    assert not unfinished.exists()
    await server.stop()


@pytest.mark.long
async def test_a_cluster_of_another_version_is_refused(data_dir: Path) -> None:
    server = make_server(data_dir)
    await server.start()
    await server.stop()
    (locate(data_dir).folder / "cluster" / "PG_VERSION").write_text("17\n")
    with pytest.raises(ClusterError, match="written by PostgreSQL 17; this Recado brings 18"):
        await server.start()


@pytest.mark.long
async def test_a_server_that_does_not_start_is_an_error_with_the_reason(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "_SPAWNS", 2)
    server = make_server(data_dir)
    await server.start()
    await server.stop()
    (locate(data_dir).folder / "cluster" / "global" / "pg_control").unlink()
    with pytest.raises(EmbeddedError, match=r"(?s)does not start.*pg_control"):
        await server.start()
    await server.stop()


# How it is told -------------------------------------------------------------------------------------------------------

FULL = """\
2026-11-23 14:54:40.340 UTC [861] FATAL:  the database system is starting up
2026-11-23 14:54:40.363 UTC [865] FATAL:  could not write to file "pg_wal/xlogtemp.865": No space left on device
2026-11-23 14:54:40.364 UTC [858] LOG:  startup process (PID 865) exited with exit code 1
2026-11-23 14:54:40.366 UTC [858] LOG:  shutting down due to startup process failure
2026-11-23 14:54:42.053 UTC [918] LOG:  starting PostgreSQL 18.4 on x86_64-pc-linux-gnu
2026-11-23 14:54:42.077 UTC [931] FATAL:  the database system is starting up
2026-11-23 14:54:42.106 UTC [934] FATAL:  the database system is not yet accepting connections
2026-11-23 14:54:42.107 UTC [935] FATAL:  terminating connection due to administrator command
"""
NO_ROOM = 'could not write to file "pg_wal/xlogtemp.865": No space left on device'


@pytest.mark.parametrize("lines", [FULL, FULL.replace("FATAL:  could", "PANIC:  could"), FULL + FULL])
async def test_of_a_servers_log_the_line_that_says_why_it_failed_is_told(data_dir: Path, lines: str) -> None:
    cluster = Cluster(locate(data_dir))
    cluster.folder.mkdir()
    assert cluster.log_size() == 0
    cluster.log.write_text(lines)
    assert cluster.trouble() == NO_ROOM
    size = cluster.log_size()
    with cluster.log.open("a") as log:
        log.write("2026-11-24 08:00:00.000 UTC [17] LOG:  redo starts at 0/16ED498\n")
    assert cluster.trouble(since=size) == "2026-11-24 08:00:00.000 UTC [17] LOG:  redo starts at 0/16ED498"
    cluster.log.write_text(FULL)  # a new one, which is shorter than what was read of the old one
    assert cluster.trouble(since=2 * size) == NO_ROOM


@pytest.mark.long
async def test_of_a_full_disk_that_takes_no_log_either_is_told_all_the_same(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(locate(data_dir))
    cluster.folder.mkdir()
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Mock(free=4096))
    assert cluster.trouble() == f"No space left on device: {cluster.folder}"


@pytest.mark.long
async def test_a_server_that_cannot_be_started_again_is_told_once_and_when_it_is_back(
    own_server: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    ensure_running = own_server._ensure_running
    left = [EmbeddedError("no room")] * 5
    back = asyncio.Event()

    async def tried(cluster: Cluster) -> None:
        if left:
            raise left.pop()
        await ensure_running(cluster)
        back.set()

    monkeypatch.setattr(embedded, "_FIRST_PAUSE", 0.001)
    monkeypatch.setattr(own_server, "_ensure_running", tried)
    pid = own_server.pid
    assert pid is not None
    with capture_logs() as logs:
        os.kill(pid, signal.SIGKILL)
        await back.wait()
        await until(lambda: any(each["event"] == "postgres_restarted" for each in logs), "its return is told")
    told = [(each["log_level"], each["event"]) for each in logs if each["log_level"] != "debug"]
    assert [event for event in told if event[1] != "postgres_ended"] == [
        ("error", "postgres_not_restarted"),
        ("warning", "postgres_restarted"),
    ]
    assert logs[-1]["failures"] == 5
    assert await query(own_server, "select 1") == 1

    pid = own_server.pid
    assert pid is not None
    with capture_logs() as logs:
        os.kill(pid, signal.SIGKILL)
        await until(lambda: any(each["event"] == "postgres_restarted" for each in logs), "its return is told")
    assert [(each["event"], each.get("failures")) for each in logs] == [
        ("postgres_ended", None),
        ("postgres_restarted", 0),
    ]
