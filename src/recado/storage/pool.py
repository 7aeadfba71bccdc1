"""A pool of connections that heals: calls wait while the server restarts, and answer 503 only past a deadline.

Connections carry no session state (`set local` only), so that handing one back costs no round trip. A jsonb parameter
is a Python value; asyncpg takes a list in a list for a second dimension: arrays of jsonb lists go as text[] and a cast.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import asyncpg
import orjson
import structlog
from asyncpg.pool import PoolConnectionProxy

from recado.domain.clock import Clock
from recado.domain.errors import Unavailable
from recado.storage.failures import Collided, collided, connection_lost

if TYPE_CHECKING:
    Connection: TypeAlias = PoolConnectionProxy[asyncpg.Record]
else:
    Connection = PoolConnectionProxy  # generic for the type checker only
Result = TypeVar("Result")

log = structlog.get_logger(__name__)

FIRST_PAUSE = 0.05
LONGEST_PAUSE = 1.0
STOP_LIMIT = 10.0
_SETTINGS = {
    "application_name": "recado",
    "jit": "off",
    "timezone": "UTC",
    "idle_in_transaction_session_timeout": "60s",
}
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
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """`deadline`: seconds that a call waits for the server; `statement_limit`: seconds for one statement."""
        self._server: dict[str, Any] = {"dsn": server} if isinstance(server, str) else dict(server)
        self._clock = clock
        self._size = size
        self._deadline = deadline
        self._statement_limit = statement_limit
        self._settings = {**_SETTINGS, **(settings or {})}
        self._pool: asyncpg.Pool[asyncpg.Record] | None = None
        self._stopping = False

    async def start(self) -> None:
        """Opens the first connection; raises Unavailable when no server answers within the deadline."""
        if self._pool is not None:
            return
        self._stopping = False
        self._pool = await asyncpg.create_pool(
            **self._server,
            min_size=0,  # asyncpg would refill a floor behind our back, and log each try while the server is down
            max_size=self._size,
            max_queries=2**62,
            max_inactive_connection_lifetime=0,
            timeout=self._deadline,
            command_timeout=self._statement_limit,
            server_settings=self._settings,
            init=_speak_json,
            reset=_keep,
        )
        try:
            async with self.acquire():
                pass
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Closes every connection, after the calls in flight or after ten seconds."""
        pool = self._pool
        if pool is None or self._stopping:
            return
        self._stopping = True
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

    @asynccontextmanager
    async def acquire(self) -> AsyncIterator[Connection]:
        """A connection for several statements; Unavailable when none is free. Errors inside come out as they are."""
        connection = await self._take(self._clock.monotonic() + self._deadline)
        try:
            yield connection
        finally:
            await self._give_back(connection)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """One transaction: commits at the end of the block, rolls back when it raises.

        Waits for the server before it begins. A connection lost inside or at the commit raises Unavailable: the outcome
        is then unknown, and the block is not run again by itself. Nor is one that gave way to another transaction, of
        which nothing is left: it raises Collided.
        """
        give_up_at = self._clock.monotonic() + self._deadline

        async def begun() -> tuple[Connection, Any]:
            connection = await self._take(give_up_at)
            try:
                transaction = connection.transaction()
                await transaction.start()
            except BaseException:
                await self._give_back(connection)
                raise
            return connection, transaction

        connection, transaction = await self._until_deadline(begun, give_up_at)
        try:
            try:
                yield connection
            except BaseException:
                with _unless_lost():
                    await transaction.rollback()
                raise
            await transaction.commit()
        except Exception as error:
            if collided(error):
                raise _collided(error) from error
            if connection_lost(error):
                raise _unavailable() from error
            raise
        finally:
            await self._give_back(connection)

    async def _run(self, call: Callable[[Connection], Awaitable[Result]], rerun: bool) -> Result:
        give_up_at = self._clock.monotonic() + self._deadline

        async def ran() -> Result:
            connection = await self._take(give_up_at)
            try:
                return await call(connection)
            except Exception as error:
                if collided(error):
                    raise _collided(error) from error
                if connection_lost(error) and not rerun:
                    raise _unavailable() from error
                raise
            finally:
                await self._give_back(connection)

        return await self._until_deadline(ran, give_up_at)

    async def _take(self, give_up_at: float) -> Connection:
        async def taken() -> Connection:
            if self._pool is None or self._stopping:
                raise _unavailable()
            return await self._pool.acquire(timeout=max(0.001, give_up_at - self._clock.monotonic()))

        return await self._until_deadline(taken, give_up_at)

    async def _give_back(self, connection: Connection) -> None:
        if self._pool is not None:
            with _unless_lost():
                await self._pool.release(connection)

    async def _until_deadline(self, call: Callable[[], Awaitable[Result]], give_up_at: float) -> Result:
        """Repeats a call while the connection is lost; Unavailable past the deadline, other errors as they are."""
        tries = 0
        while True:
            try:
                return await call()
            except Exception as error:
                if not connection_lost(error):
                    raise
                tries += 1
                pause = min(FIRST_PAUSE * 2 ** (tries - 1), LONGEST_PAUSE)
                if self._clock.monotonic() + pause >= give_up_at:
                    raise _unavailable() from error
                if tries == 1 and self._pool is not None:
                    # When one connection broke the others are likely dead too: each is replaced when it is next taken.
                    await self._pool.expire_connections()
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
    return Unavailable("The database is not available at the moment.")


def _collided(error: Exception) -> Collided:
    """Callers are told to come again; operators, that changes get into each other's way."""
    log.warning("transaction_collided", error=type(error).__name__)
    return Collided()


def _reads(sql: str) -> bool:
    return _READS.match(sql) is not None


async def _keep(connection: object) -> None:
    """Takes the place of asyncpg's reset query: there is nothing to reset."""


async def _speak_json(connection: "asyncpg.Connection[asyncpg.Record]") -> None:
    # The binary form of jsonb is a version byte and the text, which spares orjson's bytes a trip through str.
    await connection.set_type_codec(
        "jsonb",
        schema="pg_catalog",
        encoder=lambda value: b"\x01" + orjson.dumps(value),
        decoder=lambda data: orjson.loads(data[1:]),
        format="binary",
    )
