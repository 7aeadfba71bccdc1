"""A connection that outlives the loops of the tests: a server process that knows the tables already is quick."""

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import asyncpg

T = TypeVar("T")


class StandingConnection:
    """One connection, in a loop and a thread of its own."""

    def __init__(self, loop: asyncio.AbstractEventLoop, connection: asyncpg.Connection) -> None:
        self._loop = loop
        self._connection = connection

    @property
    def closed(self) -> bool:
        return self._connection.is_closed()

    async def execute(self, sql: str) -> None:
        """For a test, in whatever loop it runs."""
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._connection.execute(sql), self._loop))

    async def fetchval(self, sql: str) -> Any:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._connection.fetchval(sql), self._loop))


@contextmanager
def standing_connection(arguments: dict[str, Any]) -> Iterator[StandingConnection]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="the tests' standing connection", daemon=True)
    thread.start()

    def finished(work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, loop).result()

    try:
        connection = finished(asyncpg.connect(**arguments))
        try:
            yield StandingConnection(loop, connection)
        finally:
            finished(connection.close())
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
