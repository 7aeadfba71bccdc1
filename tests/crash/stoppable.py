"""A provider that lives in the test, and keeps its words from a service that is to die at a moment of its work."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from enum import StrEnum
from typing import Self

from aiohttp import web

LARGEST_BODY = 2**24


class StoppableServer:
    """From an `armed` moment on it says nothing. `reached`: it is there; `url`: where it listens."""

    def __init__(self) -> None:
        self.armed: StrEnum | None = None
        self.reached, self.dead = asyncio.Event(), asyncio.Event()
        self.url = ""

    def routes(self) -> Sequence[web.RouteDef]:
        """What it answers."""
        raise NotImplementedError

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[Self]:
        application = web.Application(client_max_size=LARGEST_BODY)
        application.router.add_routes(self.routes())
        runner = web.AppRunner(application, shutdown_timeout=1.0)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield self
        finally:
            self.dead.set()
            await runner.cleanup()

    def arm(self, moment: StrEnum | None) -> None:
        """What waits at the moment before goes on, to nobody."""
        dead, self.dead, self.reached, self.armed = self.dead, asyncio.Event(), asyncio.Event(), moment
        dead.set()

    def is_due(self, moment: StrEnum) -> bool:
        """Whether it stops here."""
        return self.armed is moment

    async def at(self, moment: StrEnum) -> None:
        """A moment at which it may stop."""
        if self.is_due(moment):
            self.reached.set()
            await self.dead.wait()

    async def answer(self, request: web.Request, said: object, moment: StrEnum) -> web.StreamResponse:
        """Say it; the moment comes when all of it is said."""
        answer = web.json_response(said)
        await answer.prepare(request)
        await answer.write_eof()
        await self.at(moment)
        return answer
