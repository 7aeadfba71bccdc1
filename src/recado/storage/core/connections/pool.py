"""A pool of connections that heals and is shared fairly: calls wait while the server restarts, 503 past a deadline.

No organization holds more than its share of the connections, and those that wait take turns (`FairPlaces`). A call that
is cancelled, or too long without an answer, lets go at once: its connection is settled or ended behind its back.
Connections carry no session state (`set local` only), so that handing one back costs no round trip. A jsonb parameter
is a Python value; asyncpg takes a list in a list for a second dimension: arrays of jsonb lists go as text[] and a cast.
"""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import asyncpg
import orjson
import structlog
from asyncpg.pool import PoolConnectionProxy
from asyncpg.transaction import Transaction

from recado.domain.core.clock import Clock
from recado.domain.core.errors import Unavailable
from recado.storage.core.connections.failures import Collided, collided, connection_lost
from recado.storage.core.connections.outage import Outage
from recado.storage.core.connections.silence import notice_silence
from recado.storage.core.shares.callers import SERVICE, before_commit, working_for
from recado.storage.core.shares.fair_places import FairPlaces

if TYPE_CHECKING:
    Connection: TypeAlias = PoolConnectionProxy[asyncpg.Record]
else:
    Connection = PoolConnectionProxy  # generic for the type checker only
Result = TypeVar("Result")

log = structlog.get_logger(__name__)

FIRST_PAUSE = 0.05
LONGEST_PAUSE = 1.0
STOP_LIMIT = 3.0
SETTLE_LIMIT = 2.0  # seconds that a connection gets to settle after its call was broken off
MOST_WAITING = 500  # calls of one organization
_SETTINGS = {
    "jit": "off",
    "timezone": "UTC",
    "idle_in_transaction_session_timeout": "60s",
    "client_connection_check_interval": "5s",  # a statement whose connection was ended ends too
}
_BROKEN_OFF = (asyncio.CancelledError, TimeoutError)
# A MiB of new pages where the tables are, so that a full disk shows; gone at the commit.
_TRIED_WRITE = """
set local temp_tablespaces = '';
create temporary table recado_tried_write (filler text) on commit drop;
insert into recado_tried_write select repeat('x', 1500) from generate_series(1, 700);
"""
_READS = re.compile(r"(?:\s|--[^\n]*\n)*select\b", re.IGNORECASE)


class Pool:
    """Connections to one database under one set of server settings; starts and stops once, safe to stop twice."""

    def __init__(
        self,
        server: str | Mapping[str, Any],
        *,
        clock: Clock,
        size: int,
        deadline: float,
        statement_limit: float = 30.0,
        share: int | None = None,
        service_share: int | None = None,
        settings: Mapping[str, str] | None = None,
        outage: Outage | None = None,
        application_name: str = "recado",
    ) -> None:
        """`deadline`: seconds that a call waits for the server; `statement_limit`: seconds for one statement.

        `share`: connections that an organization holds at most, `service_share`: the service itself (its batches and
        background work); None: half, and all. `outage`: what pools of one server tell together.
        `application_name`: of its sessions, on the server.
        """
        self._server: dict[str, Any] = {"dsn": server} if isinstance(server, str) else dict(server)
        self._clock = clock
        self._size = size
        self._deadline = deadline
        self._statement_limit = statement_limit
        self._settings = {"application_name": application_name, **_SETTINGS, **(settings or {})}
        self._outage = outage or Outage(clock, self.try_write)
        self._places = FairPlaces(
            size,
            each=share or max(1, size // 2),
            most_waiting=MOST_WAITING,
            limits={SERVICE: service_share or size},
        )
        self._settling: dict[Connection, asyncio.Task[None]] = {}
        self._pool: asyncpg.Pool[asyncpg.Record] | None = None
        self._stopping = False

    @property
    def server(self) -> Mapping[str, Any]:
        """asyncpg's arguments to connect to the same database."""
        return self._server

    @property
    def places(self) -> FairPlaces:
        """Who holds its connections."""
        return self._places

    @property
    def refuses_writes(self) -> bool:
        """Whether the server answers, and cannot write: its disk is full, it is out of memory, or it is read-only."""
        return self._outage.refuses_writes

    async def start(self, *, connect: bool = True) -> None:
        """Opens the first connection; raises Unavailable when no server answers within the deadline.

        `connect` False: the first call opens it.
        """
        if self._pool is not None:
            return
        self._stopping = False
        await self._outage.start()
        self._pool = await asyncpg.create_pool(
            **self._server,
            min_size=0,  # asyncpg would refill a floor behind our back, and log each try while the server is down
            max_size=self._size,
            max_queries=2**62,
            max_inactive_connection_lifetime=0,
            timeout=self._deadline,
            command_timeout=self._statement_limit,
            server_settings=self._settings,
            init=_prepare,
            reset=_keep,
        )
        if not connect:
            return
        try:
            async with self.acquire():
                pass
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Closes every connection, after the calls in flight or after three seconds."""
        pool = self._pool
        if pool is None or self._stopping:
            return
        self._stopping = True
        await self._outage.stop()
        try:
            async with asyncio.timeout(STOP_LIMIT):
                await pool.close()
        except TimeoutError:
            pool.terminate()
        finally:
            self._pool = None

    async def fetch(self, sql: str, *args: object, rerun: bool = False) -> list[asyncpg.Record]:
        """All rows. A `select` that loses its connection runs again; so does another statement with `rerun`."""
        return await self._run(lambda connection: connection.fetch(sql, *args), rerun or _reads(sql))

    async def fetchrow(self, sql: str, *args: object, rerun: bool = False) -> asyncpg.Record | None:
        """The first row, or None."""
        return await self._run(lambda connection: connection.fetchrow(sql, *args), rerun or _reads(sql))

    async def fetchval(self, sql: str, *args: object, rerun: bool = False) -> Any:
        """The first column of the first row, or None."""
        return await self._run(lambda connection: connection.fetchval(sql, *args), rerun or _reads(sql))

    async def execute(self, sql: str, *args: object, rerun: bool = False) -> str:
        """Runs a statement; answers its command tag (`UPDATE 3`)."""
        return await self._run(lambda connection: connection.execute(sql, *args), rerun or _reads(sql))

    async def try_write(self) -> None:
        """Writes what nobody needs and nothing keeps; Unavailable when the server cannot."""
        async with self.transaction() as connection:
            await connection.execute(_TRIED_WRITE)

    @asynccontextmanager
    async def acquire(self) -> AsyncIterator[Connection]:
        """A connection for several statements; Unavailable when none is free. Errors inside come out as they are."""
        owner = working_for.get()
        connection = await self._take(owner, self._clock.monotonic() + self._deadline)
        try:
            yield connection
        except _BROKEN_OFF:
            self._let_go(owner, connection)
            raise
        except BaseException as error:
            self._outage.refused(error)
            await self._give_back(owner, connection)
            raise
        await self._give_back(owner, connection)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """One transaction: commits at the end of the block, rolls back when it raises.

        Waits for the server before it begins. A connection lost inside or at the commit raises Unavailable: the outcome
        is then unknown, and the block is not run again by itself. Nor is one that gave way to another transaction, of
        which nothing is left: it raises Collided. What `before_commit` holds is part of it.
        """
        give_up_at = self._clock.monotonic() + self._deadline
        owner = working_for.get()

        async def begun() -> tuple[Connection, Transaction]:
            connection = await self._take(owner, give_up_at)
            try:
                transaction = connection.transaction()
                await transaction.start()
            except BaseException:
                self._let_go(owner, connection, reusable=False)
                raise
            return connection, transaction

        connection, transaction = await self._until_deadline(begun, give_up_at)
        try:
            try:
                yield connection
            except _BROKEN_OFF:
                raise
            except BaseException:
                with _unless_lost():
                    await transaction.rollback()
                raise
            if (note := before_commit.get()) is not None:
                await note(connection)
            await transaction.commit()
        except _BROKEN_OFF as error:
            self._let_go(owner, connection, transaction)
            if isinstance(error, TimeoutError):
                raise _unavailable() from error
            raise
        except Exception as error:
            await self._give_back(owner, connection)
            if collided(error):
                raise _collided(error) from error
            if connection_lost(error):
                self._outage.refused(error)
                raise _unavailable() from error
            raise
        except BaseException:
            await self._give_back(owner, connection)
            raise
        await self._give_back(owner, connection)

    async def _run(self, call: Callable[[Connection], Awaitable[Result]], rerun: bool) -> Result:
        give_up_at = self._clock.monotonic() + self._deadline
        owner = working_for.get()

        async def ran() -> Result:
            connection = await self._take(owner, give_up_at)
            try:
                result = await call(connection)
            except _BROKEN_OFF as error:
                self._let_go(owner, connection)
                if isinstance(error, TimeoutError) and not rerun:
                    raise _unavailable() from error
                raise
            except BaseException as error:
                await self._give_back(owner, connection)
                if isinstance(error, Exception) and collided(error):
                    raise _collided(error) from error
                if connection_lost(error) and not rerun:
                    self._outage.refused(error)
                    raise _unavailable() from error
                raise
            await self._give_back(owner, connection)
            return result

        return await self._until_deadline(ran, give_up_at)

    # Connections, and whose they are ----------------------------------------------------------------------------------

    async def _take(self, owner: str, give_up_at: float) -> Connection:
        if not self._places.take(owner):
            await self._turn(owner, give_up_at)
        try:
            return await self._until_deadline(lambda: self._connection(give_up_at), give_up_at)
        except BaseException:
            self._places.leave(owner)
            raise

    async def _turn(self, owner: str, give_up_at: float) -> None:
        """Wait for a place among those of this owner, and for the owner's turn."""
        try:
            async with asyncio.timeout(max(0.0, give_up_at - self._clock.monotonic())):
                await self._places.turn(owner)
        except TimeoutError:
            raise Unavailable("The database is too busy at the moment.") from None

    async def _connection(self, give_up_at: float) -> Connection:
        if self._pool is None or self._stopping:
            raise _unavailable()
        return await self._pool.acquire(timeout=max(0.001, give_up_at - self._clock.monotonic()))

    async def _give_back(self, owner: str, connection: Connection) -> None:
        try:
            if self._pool is not None:
                with _unless_lost():
                    await self._pool.release(connection)
        finally:
            self._places.leave(owner)

    def _let_go(
        self,
        owner: str,
        connection: Connection,
        transaction: "Transaction | None" = None,
        *,
        reusable: bool = True,
    ) -> None:
        """Leave a connection whose call was broken off: nobody waits for what a silent server says to that."""
        task = asyncio.create_task(self._settle(owner, connection, transaction, reusable))
        self._settling[connection] = task
        task.add_done_callback(lambda _: self._settling.pop(connection, None))

    def when_settled(self, connection: Connection, call: Callable[[], None]) -> None:
        """Call when a broken off transaction has ended, or its connection was given up; never, when none was."""
        task = self._settling.get(connection)
        if task is not None:
            task.add_done_callback(lambda _: call())

    async def _settle(
        self, owner: str, connection: Connection, transaction: "Transaction | None", reusable: bool
    ) -> None:
        """Make a connection usable again, or end it."""
        settled = False
        try:
            async with asyncio.timeout(SETTLE_LIMIT):
                if reusable and self._pool is not None:
                    if transaction is not None:
                        await transaction.rollback()  # after what is being cancelled
                    await self._pool.release(connection)
                    settled = True
        except TimeoutError as error:
            self._outage.lost(error)
        except Exception as error:  # noqa: BLE001 - whatever it is, the connection is of no more use
            log.debug("connection_not_settled", error=type(error).__name__)
        finally:
            if not settled:
                with contextlib.suppress(asyncpg.InterfaceError):  # closed already
                    connection.terminate()
            self._places.leave(owner)

    async def _until_deadline(self, call: Callable[[], Awaitable[Result]], give_up_at: float) -> Result:
        """Repeats a call while the connection is lost; Unavailable past the deadline, other errors as they are."""
        tries = 0
        while True:
            try:
                result = await call()
            except Exception as error:
                if not connection_lost(error):
                    raise
                tries += 1
                pause = min(FIRST_PAUSE * 2 ** (tries - 1), LONGEST_PAUSE)
                refused = self._outage.refused(error)
                if not refused and (tries > 1 or isinstance(error, TimeoutError)):
                    self._outage.lost(error)  # one connection that broke is nothing to tell
                if self._clock.monotonic() + pause >= give_up_at:
                    raise _unavailable() from error
                if tries == 1 and not refused and self._pool is not None:
                    # When one connection broke the others are likely dead too: each is replaced when it is next taken.
                    await self._pool.expire_connections()
            else:
                if self._outage.since is not None:
                    self._outage.over()
                return result
            await self._clock.sleep(pause)


@contextmanager
def _unless_lost() -> Iterator[None]:
    """For what is moot when the connection is gone."""
    try:
        yield
    except Exception as error:
        if not connection_lost(error):
            raise


def _unavailable() -> Unavailable:
    return Unavailable("The database is not available: try again shortly.")


def _collided(error: Exception) -> Collided:
    """Callers are told to come again; operators, that changes get into each other's way."""
    log.warning("transaction_collided", error=type(error).__name__)
    return Collided()


def _reads(sql: str) -> bool:
    return _READS.match(sql) is not None


async def _keep(connection: object) -> None:
    """Takes the place of asyncpg's reset query: there is nothing to reset."""


async def _prepare(connection: "asyncpg.Connection[asyncpg.Record]") -> None:
    notice_silence(connection)
    # The binary form of jsonb is a version byte and the text, which spares orjson's bytes a trip through str.
    await connection.set_type_codec(
        "jsonb",
        schema="pg_catalog",
        encoder=lambda value: b"\x01" + orjson.dumps(value),
        decoder=lambda data: orjson.loads(data[1:]),
        format="binary",
    )
