"""A customer's endpoint for webhooks, which takes or refuses them as it is told."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web


@dataclass
class Receiver:
    """A customer's endpoint, which refuses what it gets until `answer` is another status. `took`: ids of deliveries."""

    url: str = ""
    answer: int = 500
    took: set[str] = field(default_factory=set)

    async def take(self, request: web.BaseRequest) -> web.Response:
        if self.answer < 300:
            self.took.add(request.headers["X-SVC-Delivery"])
        return web.Response(status=self.answer)


@asynccontextmanager
async def receiver() -> AsyncIterator[Receiver]:
    one = Receiver()
    server = web.ServerRunner(web.Server(one.take), shutdown_timeout=0)
    await server.setup()
    try:
        await web.TCPSite(server, "127.0.0.1", 0).start()
        one.url = f"http://127.0.0.1:{server.addresses[0][1]}/hook"
        yield one
    finally:
        await server.cleanup()
