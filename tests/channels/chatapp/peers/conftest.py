"""Another's client of the hosted API and our adapter before our simulator, and a receiver behind it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
from aiohttp import web
from pywa import WhatsApp, handlers
from tests.channels.accounts import chatapp_account

from recado.channels.chatapp import cloud_callbacks
from recado.channels.chatapp.cloud import Cloud
from recado.channels.core.events import Event
from recado.engine.clock import SystemClock
from recado.simulator import cloud_api
from recado.simulator.options import SimulatorOptions
from recado.simulator.server import Simulator

NUMBER = "106540352242922"
BUSINESS = "102290129340398"
APP_SECRET = "the application's secret"
ACCOUNT = chatapp_account(phone_number_id=NUMBER, business_account_id=BUSINESS, access_token="EAAB")


class Peer:
    """The other's client, and what it read of our webhooks."""

    def __init__(self, url: str) -> None:
        self.client = WhatsApp(
            phone_id=NUMBER,
            token="EAAB",
            waba_id=BUSINESS,
            server=None,
            app_secret=APP_SECRET,
            verify_token="v",
            filter_updates=False,
            skip_duplicate_updates=False,
        )
        self.client.api._session.base_url = url
        self.read: list[Any] = []
        for handler in (
            handlers.MessageStatusHandler,
            handlers.MessageHandler,
            handlers.CallbackButtonHandler,
            handlers.CallbackSelectionHandler,
            handlers.TemplateStatusUpdateHandler,
            handlers.TemplateCategoryUpdateHandler,
            handlers.TemplateQualityUpdateHandler,
            handlers.UserMarketingPreferencesHandler,
            handlers.AccountUpdateHandler,
        ):
            self.client.add_handlers(handler(lambda _, update: self.read.append(update)))

    async def call(self, operation: str, /, *arguments: Any, **named: Any) -> Any:
        """One operation; the client blocks, so that it needs a thread of its own."""
        return await asyncio.to_thread(getattr(self.client, operation), *arguments, **named)

    def take(self, body: bytes, signature: str | None) -> list[Any]:
        """What it reads in a callback, once it has found the signature good. It reads one change of a body."""
        refusal = self.client.webhook_update_validator(body, signature)
        assert refusal is None, refusal
        before = len(self.read)
        for entry in orjson.loads(body)["entry"]:
            for change in entry["changes"]:
                alone = {"object": cloud_callbacks.OBJECT, "entry": [{**entry, "changes": [change]}]}
                assert self.client.webhook_update_handler(orjson.dumps(alone)) == ("ok", 200)
        return self.read[before:]


@pytest.fixture
def peer_to() -> Iterator[Callable[[str], Peer]]:
    made: list[Peer] = []

    def make(url: str) -> Peer:
        made.append(Peer(url))
        return made[-1]

    yield make
    for peer in made:
        peer.client.api._session.close()


class Receiver:
    """Keeps the callbacks as they came."""

    def __init__(self) -> None:
        self.bodies: list[tuple[bytes, str]] = []
        self.url = ""
        self._changed = asyncio.Condition()
        self._runner: web.ServerRunner | None = None

    async def start(self) -> None:
        self._runner = web.ServerRunner(web.Server(self._handle), handle_signals=False, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/"

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    def events(self) -> list[Event]:
        return [event for body, _ in self.bodies for event in cloud_callbacks.events(body)]

    async def has(self, count: int) -> list[tuple[bytes, str]]:
        """All callbacks, once they hold that many events of ours."""
        async with asyncio.timeout(60), self._changed:
            await self._changed.wait_for(lambda: len(self.events()) >= count)
        return self.bodies

    async def _handle(self, request: web.BaseRequest) -> web.Response:
        body = await request.read()
        async with self._changed:
            self.bodies.append((body, request.headers[cloud_callbacks.SIGNATURE]))
            self._changed.notify_all()
        return web.Response(body=b"{}")


class Stage:
    """A simulator, the peer's client and our adapter in front of it, and a receiver behind it."""

    def __init__(self, simulator: Simulator, peer: Peer, cloud: Cloud, receiver: Receiver, record: Path) -> None:
        self.simulator = simulator
        self.peer = peer
        self.cloud = cloud
        self.receiver = receiver
        self.record = record

    async def control(self, path: str, **body: Any) -> Any:
        address = f"{self.simulator.url}/control/{path}"
        async with aiohttp.ClientSession() as session, session.post(address, data=orjson.dumps(body)) as answer:
            assert answer.status == 200, await answer.text()
            return await answer.json()

    async def read(self, count: int) -> list[Any]:
        """What the peer reads in the first callbacks that hold so many events of ours."""
        return [read for body, signature in await self.receiver.has(count) for read in self.peer.take(body, signature)]


@pytest.fixture
async def stage(
    peer_to: Callable[[str], Peer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Stage]:
    monkeypatch.setattr(cloud_api, "REVIEW_SECONDS", 0.0)
    receiver = Receiver()
    await receiver.start()
    record = tmp_path / "record.jsonl"
    simulator = Simulator(
        SimulatorOptions(
            record=record,
            secret="s",
            app_secret=APP_SECRET,
            cloud_callback_url=receiver.url,
            receipt_delay=0.001,
            gather_seconds=0,
        )
    )
    await simulator.start()
    cloud = Cloud(url=f"{simulator.url}/v24.0", app_secret=APP_SECRET, clock=SystemClock())
    await cloud.start()
    yield Stage(simulator, peer_to(f"{simulator.url}/v24.0"), cloud, receiver, record)
    await cloud.stop()
    await simulator.stop()
    await receiver.stop()
