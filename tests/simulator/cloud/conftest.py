"""The simulated hosted API with an adapter in front of it and a service behind it that takes what is signed."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
from aiohttp import web
from tests.channels.accounts import chatapp_account

from recado.channels.chatapp.cloud import Cloud
from recado.channels.core.events import Event
from recado.channels.core.provider import FlowDefinition, OutboundMessage, TemplateSubmission
from recado.engine.clock import SystemClock
from recado.simulator import cloud_api
from recado.simulator.behaviour import RequestShares
from recado.simulator.options import SimulatorOptions
from recado.simulator.server import Simulator

APP_SECRET = "the application's secret"
MESSAGE = OutboundMessage(
    id="msg_0000000100000000000a1",
    organization_id="org_1",
    env="live",
    channel="chatapp",
    sender_id="num_1",
    to="+5511987654321",
    type="text",
    payload={"text": {"body": "the secret of the house"}},
)
ACCOUNT = chatapp_account(phone_number_id="106540352242922", business_account_id="102290129340398", access_token="EAAB")
TEMPLATE = TemplateSubmission(
    id="tpl_1",
    name="ola",
    language="pt-BR",
    category="utility",
    components=[
        {"type": "BODY", "payload": {"text": "Olá {{1}}!", "example": ["Ana"]}},
        {"type": "BUTTONS", "payload": {"buttons": [{"type": "QUICK_REPLY", "text": "Sim"}]}},
    ],
)


FLOW = FlowDefinition(
    "Survey flw_1", ["SURVEY"], {"version": "6.2", "screens": [{"id": "ASK", "title": "Olá?", "terminal": True}]}
)


class Service:
    """Takes what is signed, in the order in which it comes."""

    def __init__(self) -> None:
        self.cloud = Cloud(url="http://127.0.0.1:1", app_secret=APP_SECRET, clock=SystemClock())
        self.events: list[Event] = []
        self.bodies: list[bytes] = []
        self.unsigned = 0
        self.refuses = False
        self.url = ""
        self._changed = asyncio.Condition()
        self._runner: web.ServerRunner | None = None

    async def start(self) -> None:
        self._runner = web.ServerRunner(web.Server(self._handle), handle_signals=False, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v2/callbacks/chatapp/cloud"

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def until(self, condition: Callable[["Service"], bool]) -> None:
        async with asyncio.timeout(60), self._changed:
            await self._changed.wait_for(lambda: condition(self))

    async def has(self, count: int) -> list[Any]:
        await self.until(lambda it: len(it.events) >= count)
        return self.events

    async def _handle(self, request: web.BaseRequest) -> web.Response:
        body = await request.read()
        async with self._changed:
            self._changed.notify_all()
            if not self.cloud.verify_callback(request.headers, body, SystemClock().now()):
                self.unsigned += 1
                return web.Response(status=401)
            if self.refuses:
                return web.Response(status=503)
            self.bodies.append(body)
            self.events += self.cloud.parse_callback(request.headers, body)
        return web.Response(body=b"{}")


@dataclass
class Stage:
    simulator: Simulator
    cloud: Cloud
    record: Path

    async def control(self, path: str, **body: Any) -> Any:
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{self.simulator.url}/control/{path}", data=orjson.dumps(body)) as answer,
        ):
            return answer.status, orjson.loads(await answer.read())


Play = Callable[..., Awaitable[Stage]]


@pytest.fixture
async def app() -> AsyncIterator[Service]:
    service = Service()
    await service.start()
    yield service
    await service.stop()


@pytest.fixture
async def play(app: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Play]:
    """Start a simulator with those shares, and an adapter in front of it."""
    monkeypatch.setattr(cloud_api, "REVIEW_SECONDS", 0.0)
    parts: list[Any] = []

    async def start(timeout: float = 10.0, **options: Any) -> Stage:
        shares = {name: options.pop(name) for name in list(options) if name in RequestShares.__slots__}
        simulator = Simulator(
            SimulatorOptions(
                **{
                    "record": tmp_path / "record.jsonl",
                    "secret": "s",
                    "app_secret": APP_SECRET,
                    "cloud_callback_url": app.url,
                    "shares": RequestShares(**shares),
                    "receipt_delay": 0.002,
                    "gather_seconds": 0,
                    "retry_after": 3,
                    **options,
                }
            )
        )
        await simulator.start()
        parts.append(simulator)
        cloud = Cloud(url=f"{simulator.url}/v24.0", app_secret=APP_SECRET, clock=SystemClock(), timeout=timeout)
        await cloud.start()
        parts.append(cloud)
        return Stage(simulator, cloud, tmp_path / "record.jsonl")

    yield start
    for part in reversed(parts):
        await part.stop()
