"""The embedded PostgreSQL of a data folder: started when the first process needs it, stopped when the last one leaves.

Who uses it holds a shared lock on a file, and who starts or stops it an exclusive one on another; the kernel drops both
when a process dies, so a killed owner leaves at most a running server, which the next process takes over.
"""

import asyncio
import contextlib
import logging
import os
from pathlib import Path
from typing import Any

import asyncpg
import structlog

from recado.domain.core.clock import Clock
from recado.domain.dispatch.retry import backoff
from recado.storage.core.connections.failures import connection_lost
from recado.storage.core.shielded import to_its_end
from recado.storage.embedded.cluster import DATABASE, Cluster
from recado.storage.embedded.cluster_lock import FileLock
from recado.storage.embedded.server_processes import is_server, server_of
from recado.storage.embedded.service_folder import CHANGE_LOCK, SERVICE_ROOT, USERS_LOCK, holds_database, locate

log = structlog.get_logger(__name__)

START_LIMIT = 600.0  # seconds: recovery after a crash reads up to max_wal_size again
_STOP_LIMIT = 120.0
_QUIT_LIMIT = 2.0
_BROKEN_OFF_LIMIT = 10.0  # half of what a whole stop has (C32)
_POLL = 0.02
_SPAWNS = 5
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 30.0
_CONNECT_LIMIT = 10.0


class EmbeddedError(Exception):
    """The embedded server does not come up; the text holds the cause that its log names, or its end."""


class EmbeddedPostgres:
    """A running server while started. Several may share one data folder, in one process or in many."""

    def __init__(self, data_dir: Path, *, clock: Clock, service_root: Path = SERVICE_ROOT) -> None:
        """`service_root`: where root keeps clusters; its folders must be open to the service user."""
        self._data_dir = data_dir
        self._service_root = service_root
        self._clock = clock
        self._cluster: Cluster | None = None
        self._users: FileLock | None = None
        self._watch: asyncio.Task[None] | None = None
        self._spawned: int | None = None  # the pid of the last server that we started, or that another left

    async def start(self) -> dict[str, Any]:
        """Joins or starts the server; answers the arguments to connect to its database.

        The first start makes the cluster (about a second). Waits for crash recovery up to ten minutes. Raises
        EmbeddedError, ClusterError, NoHome, BinariesMissing or LockTimeout, each with a text for the operator.
        A start that is cancelled ends the server, unless others use it.
        """
        if self._cluster is None:
            home = await asyncio.to_thread(locate, self._data_dir, self._service_root)
            cluster = Cluster(home)
            users = FileLock(home.folder / USERS_LOCK)
            async with self._changing(cluster):
                if not users.try_take(shared=True):
                    raise EmbeddedError(f"{home.folder / USERS_LOCK} is locked by another program")
                try:
                    await self._ensure_running(cluster)
                except BaseException as error:
                    if isinstance(error, asyncio.CancelledError) and users.try_take():
                        await self._shut_down(cluster, _BROKEN_OFF_LIMIT)
                    users.release()
                    raise
            self._cluster, self._users = cluster, users
            self._watch = asyncio.create_task(self._keep_running(cluster), name="embedded-postgres")
        return self._cluster.connect_arguments

    async def stop(self, within: float = _STOP_LIMIT) -> None:
        """Leaves the server; the last user shuts it down (fast: open transactions roll back). Safe to call twice.

        A server that has not ended a moment before `within` seconds are over ends without its last checkpoint.
        """
        cluster, self._cluster = self._cluster, None
        if cluster is None or self._users is None or self._watch is None:
            return
        self._watch.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._watch
        await self._leave(cluster, self._users, within)

    async def stop_left(self, within: float = _BROKEN_OFF_LIMIT) -> None:
        """Shuts down the server that a killed owner has left, unless others use it; begins and makes nothing."""
        if not holds_database(self._data_dir):
            return
        cluster = Cluster(await asyncio.to_thread(locate, self._data_dir, self._service_root))
        self._spawned = await asyncio.to_thread(server_of, cluster.folder)  # its owner may have begun it just before
        await self._leave(cluster, FileLock(cluster.home.folder / USERS_LOCK), within)

    async def restart(self) -> None:
        """Shuts the server down and starts it again, for all its users; they see lost connections."""
        if self._cluster is None:
            raise EmbeddedError("the embedded server is not started")
        async with self._changing(self._cluster):
            await self._shut_down(self._cluster, _STOP_LIMIT)
            await self._ensure_running(self._cluster)

    @property
    def pid(self) -> int | None:
        """The server's process id, or None while it is down."""
        return None if self._cluster is None else self._cluster.pid()

    def _changing(self, cluster: Cluster) -> contextlib.AbstractAsyncContextManager[None]:
        """Admits one at a time, of all processes, to start or stop the server."""
        return FileLock(cluster.home.folder / CHANGE_LOCK).held(self._clock, START_LIMIT)

    async def _ensure_running(self, cluster: Cluster) -> None:
        """Comes back when the database answers. The caller holds the change lock."""
        give_up_at = self._clock.monotonic() + START_LIMIT
        spawned = 0
        told = cluster.log_size()
        await to_its_end(asyncio.to_thread(cluster.create))
        while not await self._answers(cluster):
            if self._clock.monotonic() >= give_up_at:
                raise EmbeddedError(f"PostgreSQL was not ready after {START_LIMIT:g} seconds.\n{cluster.trouble(told)}")
            if not cluster.listening() and cluster.pid() is None and not _alive(self._spawned):
                # Nobody is there, or whom we started gave up: children of a killed server may need a moment to leave.
                if spawned == _SPAWNS:
                    raise EmbeddedError(f"PostgreSQL does not start.\n{cluster.trouble(told)}")
                if spawned:
                    await self._clock.sleep(_FIRST_PAUSE * 2**spawned)
                self._spawned = cluster.spawn()
                spawned += 1
            await self._clock.sleep(_POLL)

    async def _answers(self, cluster: Cluster) -> bool:
        if not cluster.listening():
            return False
        arguments: dict[str, Any] = cluster.connect_arguments
        try:
            connection = await asyncpg.connect(**arguments, timeout=_CONNECT_LIMIT)
        except asyncpg.InvalidCatalogNameError:
            await _make_database(arguments)
            return True
        except Exception as error:
            if connection_lost(error):  # starting, recovering or shutting down
                return False
            raise
        await connection.close(timeout=_CONNECT_LIMIT)
        return True

    async def _leave(self, cluster: Cluster, users: FileLock, within: float) -> None:
        try:
            async with asyncio.timeout(within), self._changing(cluster):
                if users.try_take():
                    await self._shut_down(cluster, within - _QUIT_LIMIT)
        except TimeoutError:
            # It ends without us. Somebody else starts or stops it, or it writes to a disk that does not answer.
            log.warning("postgres_stops_slowly", pid=cluster.pid())
        finally:
            users.release()

    async def _shut_down(self, cluster: Cluster, within: float) -> None:
        pid: int | None = None
        try:
            async with asyncio.timeout(max(0.0, within)):
                while cluster.pid() is None and self._spawned is not None and is_server(self._spawned, cluster.folder):
                    pid = self._spawned
                    await self._clock.sleep(_POLL)  # it has not yet written who it is
                pid = cluster.interrupt()
                if pid is not None:
                    await _gone(pid)
        except TimeoutError:
            log.warning("postgres_quits", pid=pid)
            if pid is not None:
                cluster.quit(pid)
                await _gone(pid)

    async def _keep_running(self, cluster: Cluster) -> None:
        """Starts the server again whenever it ends while we use it. What fails again and again is told once."""
        failures = 0
        ended_at = 0.0
        told = False  # that it ended
        while True:
            pid = cluster.pid()
            if pid is None:  # ended already, or runs where its process is not visible to us: in another container
                await self._clock.sleep(_FIRST_PAUSE)
            else:
                await _gone(pid)
            if not failures:
                ended_at = self._clock.monotonic()
            try:
                # A planned restart holds the lock until the server is back, and then nothing is left to do here.
                async with self._changing(cluster):
                    if not failures and not cluster.listening():
                        log.warning("postgres_ended", pid=pid)
                        told = True
                    await self._ensure_running(cluster)
            except Exception as error:  # noqa: BLE001 - whatever it is, the next try may succeed
                failures += 1
                level = logging.ERROR if failures == 1 else logging.DEBUG
                log.log(level, "postgres_not_restarted", error=str(error))
                await self._clock.sleep(backoff(failures, 2 * _FIRST_PAUSE, _LONGEST_PAUSE))
            else:
                if told or failures:
                    seconds = round(self._clock.monotonic() - ended_at, 1)
                    log.warning("postgres_restarted", seconds=seconds, failures=failures)
                failures, told = 0, False


async def _make_database(arguments: dict[str, Any]) -> None:
    connection = await asyncpg.connect(**{**arguments, "database": "postgres"}, timeout=_CONNECT_LIMIT)
    try:
        with contextlib.suppress(asyncpg.DuplicateDatabaseError):
            await connection.execute(f"create database {DATABASE}")
    finally:
        await connection.close(timeout=_CONNECT_LIMIT)


def _alive(pid: int | None) -> bool:
    if pid is None:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def _gone(pid: int) -> None:
    """Comes back when a process, our child or not, has ended."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()

    def end() -> None:
        if not ended.done():
            ended.set_result(None)

    loop.add_reader(descriptor, end)
    try:
        await ended
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
