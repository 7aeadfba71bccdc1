"""The database of an installation: a general pool, and pools for the batches of the hot path and for long work.

Any PostgreSQL from 15 on; which server it is (embedded or given) does not matter here.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from recado.domain.core.clock import Clock
from recado.storage.core.connections.failures import connection_lost
from recado.storage.core.connections.outage import Outage
from recado.storage.core.connections.pool import Connection, Pool
from recado.storage.core.statements.months import Months

__all__ = ["Connection", "Database", "UnsuitableServer", "connection_lost"]

OLDEST_SERVER = 15
LONG_SIZE, LONG_SHARE = 4, 1  # connections of each pool for long work, and how many of them an organization holds
FAR = 1_000  # records
# A batch joins a short array with a large table: the planner, which does not see how short it is, must probe indexes.
_HOT_SETTINGS = {
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_seqscan": "off",
    "enable_memoize": "off",  # no key comes twice in a batch
    "plan_cache_mode": "force_generic_plan",
}


class UnsuitableServer(Exception):
    """The server that answers cannot hold Recado's data; the text says why."""


class Database(Pool):
    """The general pool, which answers requests.

    `hot`: of the batchers. `bulk`: of what writes thousands of rows in a statement (members, imports, deliveries that
    are given up). `searches`: of what may look at thousands to find a few. What is long has connections of its own, so
    that it keeps none of the others waiting, and an organization has one of each at a time.

    `months`: whose tables statements for many messages may name.
    """

    def __init__(
        self,
        server: str | Mapping[str, Any],
        *,
        clock: Clock,
        pool_size: int = 16,
        hot_size: int = 8,
        deadline: float = 10.0,
        statement_limit: float = 30.0,
        application_name: str = "recado",
    ) -> None:
        """`server`: a DSN or asyncpg's connect arguments; `deadline`, `statement_limit`: seconds.

        `application_name`: of its sessions, on the server.
        """
        outage = Outage(clock, self.try_write)

        def pool(size: int, share: int | None = None, settings: Mapping[str, str] | None = None) -> Pool:
            return Pool(
                server,
                clock=clock,
                size=size,
                deadline=deadline,
                statement_limit=statement_limit,
                share=share,
                settings=settings,
                outage=outage,
                application_name=application_name,
            )

        super().__init__(
            server,
            clock=clock,
            size=pool_size,
            deadline=deadline,
            statement_limit=statement_limit,
            service_share=max(1, pool_size * 3 // 4),
            outage=outage,
            application_name=application_name,
        )
        self.months = Months()
        self.hot = pool(hot_size, settings=_HOT_SETTINGS)
        self.bulk = pool(LONG_SIZE, LONG_SHARE, _HOT_SETTINGS)
        self.searches = pool(LONG_SIZE, LONG_SHARE)

    async def start(self, *, connect: bool = True) -> None:
        """Connects; raises Unavailable when nothing answers and UnsuitableServer when the wrong thing does."""
        try:
            await super().start(connect=connect)
            if connect:
                await self._check_server()
            await self.hot.start(connect=connect)
            for pool in (self.bulk, self.searches):
                await pool.start(connect=False)
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Closes all pools."""
        await asyncio.gather(self.hot.stop(), self.bulk.stop(), self.searches.stop(), super().stop())

    @property
    def pools(self) -> Mapping[str, Pool]:
        """All of them, by name."""
        return {"requests": self, "hot": self.hot, "bulk": self.bulk, "searches": self.searches}

    def page(self, skip: int) -> Pool:
        """The pool for a page behind so many records: to pass over thousands takes long."""
        return self.searches if skip > FAR else self

    async def _check_server(self) -> None:
        async with self.acquire() as connection:
            version = connection.get_server_version()
            encoding = connection.get_settings().server_encoding
        if version.major < OLDEST_SERVER:
            raise UnsuitableServer(
                f"Recado needs PostgreSQL {OLDEST_SERVER} or newer; this server is {version.major}.{version.minor}"
            )
        if encoding != "UTF8":
            raise UnsuitableServer(f"Recado needs a database in the encoding UTF8; this one is in {encoding}")
