"""Who serves a database: one process, which holds a lock of the server for as long as it lives (C14.5, C35).

The lock belongs to a connection of its own. The server lets it go when the process is gone, however it went, and within
seconds of the machine; a process that only stands still keeps it. Epochs see to it that nobody else claims (C14.5):
the lock is there so that a second service ends instead of ending the first. All sessions of a process that serves bear
one name, which no other has: by it whoever takes its place ends them all, as a process that hangs may hold rows.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import asyncpg
import structlog

from recado.domain.core.clock import Clock
from recado.domain.core.errors import Unavailable
from recado.domain.core.timestamps import format_timestamp
from recado.storage.core.failures import connection_lost
from recado.storage.core.rows import Executor, reader
from recado.storage.core.sql import load

SQL = load("ownership")
log = structlog.get_logger(__name__)

LOCK = (0x7265, 0x6361)  # "re", "ca"
PATIENCE = 2.0  # seconds that the server is given to notice that the owner before is gone
KEPT_EVERY = 1.0  # seconds
GRACE = 2 * KEPT_EVERY  # in which an owner that lost its connection takes the lock back
CONNECT_LIMIT = 10.0  # seconds
ANSWER_LIMIT = 5.0
_POLL = 0.05
_SERVING = "recado serve "  # how the names of serving processes' sessions begin
_SETTINGS = {
    "idle_session_timeout": "0",
    # A machine that is gone says nothing: 11 s later the server knows.
    "tcp_keepalives_idle": "5",
    "tcp_keepalives_interval": "2",
    "tcp_keepalives_count": "3",
}


@dataclass(frozen=True, slots=True)
class Owner:
    """The process that serves a database, or did last. All None: none did, or it stopped in order."""

    host: str | None
    pid: int | None
    since: datetime | None

    def __str__(self) -> str:
        if self.host is None or self.since is None:
            return "another process"
        return f"process {self.pid} on {self.host} (since {format_timestamp(self.since)})"


class Owned(Exception):
    """Another process serves this database; the text is one line for the operator."""


_read_owner = reader(Owner)


async def owner_of(executor: Executor) -> Owner:
    """Who serves the database, as far as it is written."""
    return _read_owner(await executor.fetchrow(SQL.owner))


async def living_owner(executor: Executor) -> Owner | None:
    """Who serves the database, where somebody holds its lock now; a killed process may still be written there."""
    held: bool = await executor.fetchval(SQL.is_held, *LOCK)
    return await owner_of(executor) if held else None


async def staying_owner(executor: Executor, clock: Clock) -> Owner | None:
    """Who serves the database still, when the server was given the time to notice that a killed process is gone."""
    give_up_at = clock.monotonic() + PATIENCE
    while (owner := await living_owner(executor)) is not None and clock.monotonic() < give_up_at:
        await clock.sleep(_POLL)
    return owner


def session_name(random_bytes: Callable[[int], bytes]) -> str:
    """A name for all database sessions of one serving process."""
    return _SERVING + random_bytes(8).hex()


class Ownership:
    """This process's, of one database: had when `take` comes back, and kept by calling `keep` every second."""

    def __init__(
        self, server: Mapping[str, Any], *, clock: Clock, host: str, pid: int, sessions: str = "recado owner"
    ) -> None:
        """`server`: asyncpg's connect arguments; `host`, `pid`: what others are told of this process.

        `sessions`: the name of this process's sessions, of `session_name` where it has others.
        """
        self._server = dict(server)
        self._clock = clock
        self._host = host
        self._pid = pid
        self._settings = {**_SETTINGS, "application_name": sessions}
        self._connection: asyncpg.Connection[asyncpg.Record] | None = None
        self._held = False
        self.not_ended: Owner | None = None  # whose place was taken though sessions of it went on
        # Whether the owner before may run still, with calls to begin: it did not stop in order, nor is it seen to be
        # dead.
        self.former_may_live = False

    async def take(self, *, take_over: bool = False) -> None:
        """Become the owner; raises `Owned` when another lives, unless its place is to be taken.

        Comes back at once when there is none, or it ran here and is dead; within seconds when it ran elsewhere.
        """
        connection = await self._connected()
        if take_over:
            await self._displace(connection)
        locked = await self._lock_within(PATIENCE, connection)
        if locked and not take_over and not self._gone(await owner_of(connection)):
            # It may live, and have lost no more than its connection, as when the server was started again.
            await connection.execute(SQL.unlock, *LOCK)
            await self._clock.sleep(GRACE)
            locked = await self._lock_within(0.0, connection)
        if not locked and not take_over:
            raise Owned(
                f"{await owner_of(connection)} serves this database: stop it first, or, only if it hangs,"
                " take its place with 'recado serve --take-over'"
            )
        # One that could not be ended from here ends by itself, when the epoch is taken.
        self._held = locked
        self.former_may_live = not self._gone(await owner_of(connection))
        await connection.execute(SQL.own, self._host, self._pid, self._clock.now())

    async def keep(self) -> None:
        """Take the lock back after the server was away. Another who has it by then has the epoch too: this one ends."""
        try:
            connection = await self._connected()
            if self._held:
                await connection.execute("select 1", timeout=ANSWER_LIMIT)
            else:
                self._held = await self._lock_within(0.0, connection)
        except Exception as error:
            if not connection_lost(error) and not isinstance(error, Unavailable):
                raise
            self._drop()

    async def stop(self) -> None:
        """Leave in order: the next owner need not wait."""
        if self._connection is None:
            return
        try:
            if self._held:
                await self._connection.execute(SQL.leave, self._host, self._pid, timeout=ANSWER_LIMIT)
        except Exception as error:
            if not connection_lost(error):
                raise
        finally:
            self._drop()

    async def _connected(self) -> "asyncpg.Connection[asyncpg.Record]":
        if self._connection is None or self._connection.is_closed():
            self._held = False
            self._connection = await asyncpg.connect(
                **self._server, timeout=CONNECT_LIMIT, server_settings=self._settings
            )
        return self._connection

    def _drop(self) -> None:
        connection, self._connection, self._held = self._connection, None, False
        if connection is not None:
            connection.terminate()

    async def _lock_within(self, seconds: float, connection: "asyncpg.Connection[asyncpg.Record]") -> bool:
        give_up_at = self._clock.monotonic() + seconds
        while not await connection.fetchval(SQL.try_lock, *LOCK, timeout=ANSWER_LIMIT):
            if self._clock.monotonic() >= give_up_at:
                return False
            await self._clock.sleep(_POLL)
        return True

    async def _displace(self, connection: "asyncpg.Connection[asyncpg.Record]") -> None:
        """End the sessions of the owner, and wait until the rows that they held are free."""
        sessions = [row["pid"] for row in await connection.fetch(SQL.owner_sessions, *LOCK, _SERVING)]
        for session in sessions:
            try:
                await connection.execute(SQL.end_session, session)
            except asyncpg.InsufficientPrivilegeError:
                self.not_ended = await owner_of(connection)
        if self.not_ended is None and not await self._gone_within(PATIENCE, connection, sessions):
            self.not_ended = await owner_of(connection)
        if self.not_ended is not None:
            log.warning("owner_not_ended", owner=str(self.not_ended))

    async def _gone_within(
        self, seconds: float, connection: "asyncpg.Connection[asyncpg.Record]", sessions: Sequence[int]
    ) -> bool:
        give_up_at = self._clock.monotonic() + seconds
        while await connection.fetchval(SQL.are_there, sessions, timeout=ANSWER_LIMIT):
            if self._clock.monotonic() >= give_up_at:
                return False
            await self._clock.sleep(_POLL)
        return True

    def _gone(self, owner: Owner) -> bool:
        """Whether there is none, or it ran on this machine and does no more."""
        if owner.host is None or owner.pid is None:
            return True
        if owner.host != self._host:
            return False
        return owner.pid == self._pid or not _alive(owner.pid)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
