"""Who serves a database: one process, by a lease that it renews each second (C14.5.6, C35).

The lease is a row, and its epoch stands in every claim. Whoever wants the place waits until the lease is over, or is
told who has it once it sees it renewed; it goes at once where the process is certainly dead, or is to be displaced.
Then it ends the sessions of the one before, as a process that hangs may hold rows, shuts the fence behind its last
claim, and takes the next epoch. All sessions of a process that serves bear one name, which no other has.
"""

import asyncio
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NoReturn

import asyncpg
import structlog

from recado.domain.core.clock import Clock
from recado.domain.core.errors import Unavailable
from recado.domain.core.timestamps import format_timestamp
from recado.domain.dispatch.leases import (
    MOST_OFFSET,
    TTL,
    Lease,
    LeaseVerdict,
    look,
    may_send,
    offset_of,
    opens_in,
)
from recado.storage.core.connections import server_clock
from recado.storage.core.connections.failures import connection_lost
from recado.storage.core.statements import fence
from recado.storage.core.statements.rows import Executor, reader
from recado.storage.core.statements.sql import fragments, load
from recado.storage.dispatch import epochs
from recado.storage.dispatch.epochs import TakenEpoch

SQL = load("ownership", holders=fragments("owner_lock").holders)
log = structlog.get_logger(__name__)

LOCK = (0x7265, 0x6361)  # "re", "ca": of every process that serves
PATIENCE = 2.0  # seconds that the server is given to notice that sessions are over
CONNECT_LIMIT = 5.0  # seconds
ANSWER_LIMIT = 2.0  # of a renewal: a lease bears one that is not answered
_POLL = 0.05
_READINGS = 3  # of the server's clock
_SERVING = "recado serve "  # how the names of serving processes' sessions begin
_SETTINGS = {
    "idle_session_timeout": "0",
    # A process that stands still while it takes a place holds the rows that the owner renews.
    "idle_in_transaction_session_timeout": "5s",
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


class ClocksApart(Exception):
    """This machine's clock is too far from the database's; the text is one line for the operator."""


_read_owner = reader(Owner)


async def owner_of(executor: Executor) -> Owner:
    """Who serves the database, as far as it is written."""
    try:
        row = await executor.fetchrow(SQL.owner)
    except asyncpg.UndefinedTableError:  # of an earlier version
        row = None
    return Owner(None, None, None) if row is None else _read_owner(row)


async def living_owner(executor: Executor) -> Owner | None:
    """Who serves the database, where the server has a session of its; a killed process may still be written there."""
    try:
        row = await executor.fetchrow(SQL.living, *LOCK)
    except asyncpg.UndefinedTableError:  # of an earlier version
        row = None
    if row is not None:
        return _read_owner(row)
    return await owner_of(executor) if await executor.fetchval(SQL.is_held_alone, *LOCK) else None


async def staying_owner(executor: Executor, clock: Clock) -> Owner | None:
    """Who serves the database still, when the server was given the time to notice that a killed process is gone.

    Whoever is about to take the place counts, as another process: it knows the tables as they are.
    """
    give_up_at = clock.monotonic() + PATIENCE
    while await executor.fetchval(SQL.is_held, *LOCK):
        if clock.monotonic() >= give_up_at:
            return await living_owner(executor) or Owner(None, None, None)
        await clock.sleep(_POLL)
    return None


async def last_taken_at(executor: Executor) -> datetime | None:
    """When the last owner became that, by its own clock."""
    moment: datetime | None = await executor.fetchval(SQL.last_taken_at)
    return moment


def session_name(random_bytes: Callable[[int], bytes]) -> str:
    """A name for all database sessions of one serving process."""
    return _SERVING + random_bytes(8).hex()


class Ownership:
    """This process's, of one database: had when `take` comes back, and kept by calling `keep` every second.

    `lease`: whether calls may begin now.
    """

    def __init__(
        self,
        server: Mapping[str, Any],
        *,
        clock: Clock,
        elapsed: Callable[[], float],
        host: str,
        pid: int,
        sessions: str = "recado owner",
    ) -> None:
        """`server`: asyncpg's connect arguments; `host`, `pid`: what others are told of this process.

        `elapsed`: the machine's seconds, those of a suspension included. `sessions`: the name of this process's
        sessions, of `session_name` where it has others.
        """
        self._server = dict(server)
        self._clock = clock
        self._host = host
        self._pid = pid
        self._sessions = sessions
        self._settings = {**_SETTINGS, "application_name": sessions}
        self._connection: asyncpg.Connection[asyncpg.Record] | None = None
        self._epoch: int | None = None
        self._known = False  # to live, by a lock of its connection
        self._asking = asyncio.Lock()  # one at a time has the connection
        self.lease = Lease(elapsed)
        self.not_ended: Owner | None = None  # whose place was taken though sessions of it went on

    async def take(self, *, take_over: bool = False, sends: bool = True) -> TakenEpoch:
        """Become the owner; raises `Owned` when another lives, unless its place is to be taken.

        Comes back at once when there is none, or it stopped in order, or ran here and is dead; else when its lease is
        over, if it is not renewed meanwhile. Raises `ClocksApart` where this machine's clock is wrong; `sends`: whether
        messages depart from here, whose pace goes by that clock.
        """
        connection = await self._connected()
        offset = await self._offset(connection)
        if sends and not may_send(offset):
            _refuse_clock(offset)
        await self._live(connection, take_over)
        first_seen: dict[int, datetime] = {}
        while True:
            async with connection.transaction():
                standing = await self._standing(connection)
                dead = [row["epoch"] for row in standing if self._dead(row)]
                looks = [
                    look(
                        left=row["left"],
                        renewed=first_seen.setdefault(row["epoch"], row["lease_until"]) != row["lease_until"],
                        dead=row["epoch"] in dead,
                        take_over=take_over,
                    )
                    for row in standing
                ]
                if LeaseVerdict.REFUSE in looks:
                    await self._refuse(connection)
                if LeaseVerdict.WAIT not in looks:
                    for row in standing:
                        await self._displace(connection, row)
                    taken = await self._begin(connection, dead, offset)
                    break
            await self._clock.sleep(_POLL)
        self._epoch = taken.epoch
        return taken

    async def _standing(self, connection: "asyncpg.Connection[asyncpg.Record]") -> "list[asyncpg.Record]":
        """Those whose epochs are not dead. Nobody else takes a place, nor renews, until the transaction ends."""
        try:
            await connection.execute(f"set local lock_timeout = '{ANSWER_LIMIT:g}s'")
            await connection.execute(SQL.one_takes)
            return await connection.fetch(SQL.standing, *LOCK)
        except asyncpg.LockNotAvailableError:
            raise Owned(
                "another process is about to take the place, and stands still: end that process, then start again"
            ) from None

    async def keep(self) -> None:
        """Renew the lease, also after the server was away. Where another has the place by then, it is over."""
        if self._epoch is None:
            return
        async with self._asking:
            try:
                connection = await self._connected()
                asked_at = self.lease.asked()
                if await connection.fetchval(SQL.renew, self._epoch, TTL, timeout=ANSWER_LIMIT):
                    self.lease.renewed(asked_at)
                else:
                    self.lease.lost()
                if not self._known:
                    self._known = await connection.fetchval(SQL.try_live, *LOCK, timeout=ANSWER_LIMIT)
            except Exception as error:
                if not connection_lost(error) and not isinstance(error, Unavailable):
                    raise
                self._drop()

    # Epochs beside this one -----------------------------------------------------------------------------------------

    async def join(self, pid: int) -> TakenEpoch | None:
        """Begin the epoch of a process that sends under this lease; None: this one owns nothing any more (C14.5.7).

        It has no shard yet. Its `opens_at` says nothing: what it may send is said with its shards.
        """
        now = self._clock.now()
        async with self._asking:
            connection = await self._connected()
            async with connection.transaction():
                await connection.execute(SQL.one_takes, timeout=ANSWER_LIMIT)
                epoch = await epochs.join_epoch(connection, self._epoch or 0, pid, now)
        return None if epoch is None else TakenEpoch(epoch, now, math.inf, None)

    async def give(self, shards: Sequence[int], epoch: int) -> None:
        """Let these shards be of an epoch beside this one, until that is ended."""
        async with self._asking:
            connection = await self._connected()
            await connection.execute(
                epochs.SQL.give_shards, self._epoch or 0, epoch, list(shards), timeout=ANSWER_LIMIT
            )

    async def end(self, epoch: int) -> None:
        """The process of an epoch beside this one is dead: its claims under way end first, and none commits after it.

        Raises LockNotAvailableError of asyncpg when they do not end in time: try again.
        """
        async with self._asking:
            connection = await self._connected()
            async with connection.transaction():
                await connection.execute(f"set local lock_timeout = '{PATIENCE:g}s'")
                await fence.shut(connection, epoch)
                await connection.execute(epochs.SQL.end_beside, self._epoch or 0, epoch)

    async def stop(self) -> None:
        """Leave in order: nothing departs from here any more, and the next owner knows since when."""
        async with self._asking:
            await self._leave()

    async def _leave(self) -> None:
        if self._connection is None:
            return
        try:
            if self._epoch is not None:
                self.lease.lost()  # also for a part whose stop was cut off
                await self._connection.execute(SQL.leave, self._epoch, timeout=ANSWER_LIMIT)
        except Exception as error:
            if not connection_lost(error):
                raise
        finally:
            self._drop()

    async def _connected(self) -> "asyncpg.Connection[asyncpg.Record]":
        if self._connection is None or self._connection.is_closed():
            self._known = False
            self._connection = await asyncpg.connect(
                **self._server, timeout=CONNECT_LIMIT, server_settings=self._settings
            )
        return self._connection

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.terminate()

    async def _offset(self, connection: "asyncpg.Connection[asyncpg.Record]") -> float:
        """How far this machine's clock is apart from the database's, in seconds."""
        readings = []
        for _ in range(_READINGS):
            before = self._clock.now()
            theirs = await server_clock.shown(connection)
            readings.append((before.timestamp(), theirs.timestamp(), self._clock.now().timestamp()))
        return offset_of(readings)

    async def _live(self, connection: "asyncpg.Connection[asyncpg.Record]", take_over: bool) -> None:
        """Be known to live. Only a service of an earlier version, which has the lock alone, keeps others from that."""
        give_up_at = self._clock.monotonic() + PATIENCE
        while not await connection.fetchval(SQL.try_live, *LOCK, timeout=ANSWER_LIMIT):
            if take_over:
                await self._end_sessions(connection, await owner_of(connection), None, None)
            if self._clock.monotonic() >= give_up_at:
                await self._refuse(connection)
            await self._clock.sleep(_POLL)
        self._known = True

    async def _refuse(self, connection: "asyncpg.Connection[asyncpg.Record]") -> None:
        raise Owned(
            f"{await owner_of(connection)} serves this database: stop it first, or, only if it hangs,"
            " take its place with 'recado serve --take-over'"
        )

    async def _begin(
        self,
        connection: "asyncpg.Connection[asyncpg.Record]",
        dead: Sequence[int],
        offset: float,
    ) -> TakenEpoch:
        now, asked_at = self._clock.now(), self.lease.asked()
        present = await server_clock.shown(connection)
        epoch = await epochs.take_epoch(
            connection,
            now,
            host=self._host,
            pid=self._pid,
            sessions=self._sessions,
            dead_at=dict.fromkeys(dead, present),
        )
        busy_for: float | None = await connection.fetchval(SQL.busy_for, epoch)
        opens_at = self._clock.monotonic() + opens_in(busy_for, offset)
        self.lease.renewed(asked_at)
        return TakenEpoch(epoch, now, opens_at, await epochs.opened(connection, epoch))

    async def _displace(self, connection: "asyncpg.Connection[asyncpg.Record]", row: asyncpg.Record) -> None:
        """End the sessions of an owner, and let no claim of its epoch commit any more."""
        owner = Owner(row["host"], row["pid"], row["since"])
        await self._end_sessions(connection, owner, row["backend"], row["sessions"])
        try:
            async with connection.transaction():
                await connection.execute(f"set local lock_timeout = '{PATIENCE:g}s'")
                await fence.shut(connection, row["epoch"])
        except asyncpg.LockNotAvailableError:
            raise Owned(
                f"{owner} has claims under way that could not be ended: end that process, then start again"
            ) from None

    async def _end_sessions(
        self,
        connection: "asyncpg.Connection[asyncpg.Record]",
        owner: Owner,
        backend: int | None,
        name: str | None,
    ) -> None:
        """End the sessions of the owner, and wait until the rows that they held are free."""
        found = await connection.fetch(SQL.owner_sessions, *LOCK, backend, name, _SERVING)
        sessions = [row["pid"] for row in found]
        for session in sessions:
            try:
                async with connection.transaction():
                    await connection.execute(SQL.end_session, session)
            except asyncpg.InsufficientPrivilegeError:
                self.not_ended = owner
        if self.not_ended is None and not await self._gone_within(PATIENCE, connection, sessions):
            self.not_ended = owner
        if self.not_ended is not None:
            log.warning("owner_not_ended", owner=str(self.not_ended))

    async def _gone_within(
        self, seconds: float, connection: "asyncpg.Connection[asyncpg.Record]", sessions: Sequence[int]
    ) -> bool:
        give_up_at = self._clock.monotonic() + seconds
        while True:
            await connection.execute(SQL.look_anew)
            if not await connection.fetchval(SQL.are_there, sessions, timeout=ANSWER_LIMIT):
                return True
            if self._clock.monotonic() >= give_up_at:
                return False
            await self._clock.sleep(_POLL)

    def _dead(self, row: asyncpg.Record) -> bool:
        """Whether it is certain that the process is no more: it ran on this machine, and has no session any more."""
        if row["host"] is None or row["pid"] is None:
            return True
        if row["host"] != self._host or row["there"]:
            return False
        return row["pid"] == self._pid or not _alive(row["pid"])


def _refuse_clock(offset: float) -> NoReturn:
    log.error("clocks_apart", milliseconds=round(offset * 1_000))
    raise ClocksApart(
        f"the clock of this machine is {offset:.3g} s apart from the database's, and an exact pace across"
        f" owners bears {MOST_OFFSET:g} s: let both machines follow a time server, then start again"
    )


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
