"""A service's side of the bridge: it keeps the callbacks it took, and lets tests wait for them."""

import asyncio
from collections.abc import Callable

from aiohttp import web

from recado.channels.core.bridge.bridge_callbacks import channel_events
from recado.channels.core.events import Event
from recado.channels.core.signing import PROVIDER_SIGNATURE, is_signed, signing_key
from recado.engine.clock import SystemClock

SECRET = "whsec_c2VjcmV0IG9mIHRoZSBicmlkZ2U="


class Service:
    """Takes signed callbacks; `statuses` are answered first, one per call, before it takes any."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.events: list[Event] = []
        self.statuses: list[int] = []
        self.refused: list[bytes] = []
        self.url = ""
        self._changed = asyncio.Condition()
        self._runner: web.ServerRunner | None = None
        self._port = 0

    async def start(self) -> None:
        """Also after a stop: at the same address."""
        self._runner = web.ServerRunner(web.Server(self._handle), handle_signals=False, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port).start()
        self._port = self._runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{self._port}/v2/callbacks/chatapp/bridge"

    async def stop(self) -> None:
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    async def until(self, condition: Callable[["Service"], bool]) -> None:
        async with asyncio.timeout(60), self._changed:
            await self._changed.wait_for(lambda: condition(self))

    async def _handle(self, request: web.BaseRequest) -> web.Response:
        body = await request.read()
        signature = request.headers.get(PROVIDER_SIGNATURE)
        async with self._changed:
            self._changed.notify_all()
            if not is_signed(signature, [signing_key(SECRET)], body, SystemClock().now()):
                return web.Response(status=401)
            if self.statuses:
                self.refused.append(body)
                return web.Response(status=self.statuses.pop(0))
            self.bodies.append(body)
            self.events += channel_events(body)
        return web.Response(body=b"{}")
