"""`recado backup` of a service under load, and `recado restore` of it into another folder."""

import asyncio
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import asyncpg
import pytest
from tests.acceptance.sandbox.customer import Customer, phone
from tests.program import Api, Program, Service, running
from tests.waiting import until

from recado.engine.clock import SystemClock
from recado.storage.embedded import backup
from recado.storage.embedded.backup import (
    UNFINISHED,
    BackupError,
    CancellationToken,
    Manifest,
    _running,
    claim_folder,
    read_manifest,
    write_backup,
)
from recado.storage.embedded.cluster import Cluster
from recado.storage.embedded.embedded import EmbeddedPostgres
from recado.storage.embedded.server_processes import is_server
from recado.storage.embedded.service_folder import locate

Recado = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.mark.long
async def test_a_backup_under_load_restores_to_everything_but_a_queue(tmp_path: Path) -> None:
    (tmp_path / "first").mkdir()
    (tmp_path / "second").mkdir()
    file = tmp_path / "recado.backup"
    async with running(Service(tmp_path / "first")) as service:
        token = await asyncio.to_thread(service.key, "test")
        async with Api(service.url, token) as api:
            customer = await Customer.arrive(api, per_second=5)
            sent = [await customer.send(phone("1234")) for _ in range(40)]
            later = await customer.send(phone("1234"), scheduledAt=(datetime.now(UTC) + timedelta(days=2)).isoformat())
            load = asyncio.create_task(keep_sending(customer))
            made = await asyncio.to_thread(service.command, "backup", str(file), "--json")
            load.cancel()
            await asyncio.wait({load})
            refused = await asyncio.to_thread(service.attempt, "restore", "--queue-only")
            assert refused.returncode == 1
            assert "serves this database: stop it first" in refused.stderr
            assert (made["file"], made["keys"], file.stat().st_mode & 0o777) == (str(file), True, 0o600)

    restored = Service(tmp_path / "second")
    ended = await asyncio.to_thread(restored.command, "restore", str(file), "--json")
    assert ended["createdAt"] == made["createdAt"]
    assert ended["ended"] > ended["scheduled"] == 1
    async with running(restored), Api(restored.url, token) as api:
        there = {message["id"]: message async for message in api.pages("/messages")}
        assert {message["id"] for message in sent} <= set(there)
        assert not {message["status"] for message in there.values()} & {"queued", "sending"}
        failed = [message for message in there.values() if message["status"] == "failed"]
        assert failed  # what was accepted last waited still
        assert {message["lastError"].partition(":")[0] for message in failed} == {"outcome_unknown"}
        assert (await api.call("GET", "/v2/wallet"))["heldCoins"] == 0
        customer = Customer(api, customer.number_id, customer.template_id)
        await customer.reaches(await customer.send(phone("1234")), "delivered")
        again = await api.call("POST", f"/messages/{later['id']}/reprocess", {"includeUncertain": True})
        await customer.reaches(again, "delivered")


async def keep_sending(customer: Customer) -> None:
    while True:
        await customer.send(phone("1234"))


class Dump:
    """What `pg_dump` writes: two pieces, and something that happens between them."""

    def __init__(self, between: Callable[[], object]) -> None:
        self._pieces: list[Callable[[], bytes]] = [lambda: b"first", lambda: (between(), b"second")[1], lambda: b""]

    @property
    def stdout(self) -> "Dump":
        return self

    def read(self, _: int) -> bytes:
        return self._pieces.pop(0)()


def test_of_two_backups_to_one_name_the_first_to_end_is_whole_and_the_other_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, keys = tmp_path / "recado.backup", tmp_path / "keys.json"
    second_is_half, first_has_ended = threading.Event(), threading.Event()

    def write(between: Callable[[], object]) -> Manifest:
        @contextmanager
        def running(*_: object) -> Iterator[Dump]:
            yield Dump(between)

        monkeypatch.setattr(backup, "_running", running)
        monkeypatch.setattr(backup, "_program", lambda *_: ["pg_dump"])
        monkeypatch.setattr(backup, "locate", lambda _: None)
        monkeypatch.setattr(backup, "Cluster", lambda _: None)
        now = datetime.now(UTC)
        return write_backup(
            file, tmp_path, version="1", now=now, keys=keys, progress=lambda _: None, halt=CancellationToken()
        )

    def begin_second() -> None:
        written.append(threads.submit(write, lambda: (second_is_half.set(), first_has_ended.wait(60))))
        assert second_is_half.wait(60)

    written: list[Future[Manifest]] = []
    with ThreadPoolExecutor() as threads:
        first = write(begin_second)
        assert read_manifest(file) == first
        first_has_ended.set()
        with pytest.raises(BackupError, match="choose another"):
            written[0].result(60)
    assert [each.name for each in tmp_path.iterdir()] == [file.name]
    assert read_manifest(file) == first


async def test_a_backup_that_is_told_to_stop_leaves_no_file(own_server: EmbeddedPostgres, data_dir: Path) -> None:
    folder = data_dir.parent
    (data_dir / "keys.json").write_text("{}")
    holder, watcher = [await asyncpg.connect(**await own_server.start()) for _ in range(2)]
    try:
        await holder.execute("create table held (a integer)")
        async with holder.transaction():
            await holder.execute("lock table held")
            making = Program(folder, "backup", "backup", "recado.backup", DATA_DIR=str(data_dir))
            making.spawn()
            sql = (
                "select count(*) from pg_stat_activity where application_name = 'pg_dump' and wait_event_type = 'Lock'"
            )
            await until(lambda: watcher.fetchval(sql), "pg_dump waits for the table")
            assert [each.stat().st_mode & 0o777 for each in folder.glob(".*.unfinished")] == [0o600]

            status = await asyncio.to_thread(making.end, signal.SIGTERM)

        assert status == 143
        assert (making.tail().strip(), making.output.read_text()) == ("", "")
        assert {each.name for each in folder.iterdir()} == {data_dir.name, "backup.out", "backup.log"}
        assert await holder.fetchval("select 1") == 1
    finally:
        await holder.close()
        await watcher.close()


async def test_a_restore_that_is_told_to_stop_takes_its_server_along_and_can_be_made_again(
    own_server: EmbeddedPostgres, data_dir: Path, tmp_path: Path
) -> None:
    file, again = tmp_path / "recado.backup", tmp_path / "again"
    source = await asyncpg.connect(**await own_server.start())
    function = "create or replace function taken() returns boolean language sql as"
    await source.execute(f"{function} 'select true'; create table t (a integer check (public.taken()))")
    await source.execute("insert into t values (1)")
    # Whoever restores this row waits.
    await source.execute(f"{function} 'select count(*) = 1 from pg_catalog.pg_sleep(600)'")
    await source.close()
    made = await asyncio.to_thread(Program(tmp_path, "backup", DATA_DIR=str(data_dir)).attempt, "backup", str(file))
    assert made.returncode == 0, made.stderr
    restoring = Program(tmp_path, "restore", "restore", str(file), DATA_DIR=str(again))
    restoring.spawn()
    await until(lambda: "pg_restore" in _children(restoring.pid), "the restore is under way")

    status = await asyncio.to_thread(restoring.end, signal.SIGTERM)

    assert (status, restoring.tail().strip()) == (143, "")
    assert Cluster(locate(again)).pid() is None
    claim_folder(again)
    assert [each.name for each in again.iterdir()] == [UNFINISHED]


async def test_the_server_that_a_killed_restore_left_is_ended_by_the_next_one_unless_it_is_used(
    data_dir: Path,
) -> None:
    claim_folder(data_dir)
    server = EmbeddedPostgres(data_dir, clock=SystemClock())
    await server.start()
    pid = server.pid
    with pytest.raises(BackupError, match="another restore into"):
        claim_folder(data_dir)
    cluster = locate(data_dir).folder / "cluster"
    assert pid is not None
    assert is_server(pid, cluster)
    leave_as_if_killed(server)
    assert is_server(pid, cluster)

    claim_folder(data_dir)

    assert not is_server(pid, cluster)
    assert [each.name for each in data_dir.iterdir()] == [UNFINISHED]


def leave_as_if_killed(server: EmbeddedPostgres) -> None:
    """The kernel drops the lock of a killed process, and nothing of it watches the server."""
    assert server._watch is not None
    assert server._users is not None
    server._watch.cancel()
    server._users.release()


def _children(pid: int) -> set[str]:
    """The names of the programs that a process runs."""
    names = set()
    with suppress(OSError):  # one that ended meanwhile
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                names.add(Path(f"/proc/{child}/comm").read_text().strip())
    return names


def test_a_program_that_ended_without_a_word_is_told_by_its_signal_or_its_status() -> None:
    with (
        pytest.raises(BackupError, match=r"^sleep failed: SIGKILL ended it$"),
        _running(["sleep", "60"], CancellationToken()) as one,
    ):
        one.kill()
    with pytest.raises(BackupError, match=r"^false failed: its status is 1$"), _running(["false"], CancellationToken()):
        pass


def test_a_file_that_is_no_backup_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"PK not a backup")
    with pytest.raises(BackupError, match="is not a backup of Recado"):
        read_manifest(tmp_path / "other")
    with pytest.raises(BackupError, match="cannot be read"):
        read_manifest(tmp_path / "missing")


def test_a_folder_in_use_is_not_restored_into_but_one_of_an_interrupted_restore_is(tmp_path: Path) -> None:
    used, interrupted = tmp_path / "used", tmp_path / "interrupted"
    used.mkdir()
    (used / "keys.json").write_text("{}")
    with pytest.raises(BackupError, match="is not empty"):
        claim_folder(used)
    interrupted.mkdir()
    (interrupted / UNFINISHED).touch()
    (interrupted / "keys.json").write_text("{}")
    claim_folder(interrupted)
    assert [each.name for each in interrupted.iterdir()] == [UNFINISHED]


def test_nothing_runs_on_a_folder_whose_restore_was_interrupted(recado: Recado, tmp_path: Path) -> None:
    (tmp_path / UNFINISHED).touch()
    done = recado("keys", "list", "--data-dir", str(tmp_path))
    assert done.returncode == 1
    assert "has not come to its end: run 'recado restore' again" in done.stderr


def test_an_external_database_is_not_ours_to_back_up(recado: Recado, tmp_path: Path) -> None:
    done = recado("backup", str(tmp_path / "file"), DATABASE_URL="postgresql://127.0.0.1:1/recado")
    assert done.returncode == 1
    assert "back it up with its own tools" in done.stderr


def test_a_restore_needs_a_file_or_says_that_it_does_without(recado: Recado) -> None:
    assert "name the file of a backup, or say --queue-only" in recado("restore").stderr
