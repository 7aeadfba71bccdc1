"""The database of an installation: a general pool, and a small one for the batched statements of the hot path.

Any PostgreSQL from 15 on; which server it is (embedded or given) does not matter here.
"""

from collections.abc import Mapping
from typing import Any

from recado.domain.clock import Clock
from recado.storage.failures import connection_lost
from recado.storage.pool import Connection, Pool

__all__ = ["Connection", "Database", "UnsuitableServer", "connection_lost"]

OLDEST_SERVER = 15
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
    """The general pool, which answers requests; `hot` is the pool of the batchers."""

    def __init__(
        self,
        server: str | Mapping[str, Any],
        *,
        clock: Clock,
        pool_size: int = 16,
        hot_size: int = 8,
        deadline: float = 10.0,
        statement_limit: float = 30.0,
    ) -> None:
        """`server`: a DSN or asyncpg's connect arguments; `deadline`, `statement_limit`: seconds."""
        super().__init__(server, clock=clock, size=pool_size, deadline=deadline, statement_limit=statement_limit)
        self.hot = Pool(
            server,
            clock=clock,
            size=hot_size,
            deadline=deadline,
            statement_limit=statement_limit,
            settings=_HOT_SETTINGS,
        )

    async def start(self) -> None:
        """Connects; raises Unavailable when nothing answers and UnsuitableServer when the wrong thing does."""
        try:
            await super().start()
            await self._check_server()
            await self.hot.start()
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Closes both pools."""
        await self.hot.stop()
        await super().stop()

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
