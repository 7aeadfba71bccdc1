"""The SMPP adapter before an SMS centre, on a clock that the test turns."""

import asyncio
from collections.abc import AsyncIterator, Callable
from random import Random
from typing import Any

import orjson
import pytest
from tests.channels.conftest import a_message
from tests.channels.sms.centre import Centre

from recado.channels.core.provider import Account, OutboundMessage, Outcome
from recado.channels.sms.smpp.session import SmppLogin, SmppTimes
from recado.channels.sms.smpp.smpp import Smpp, SmppOptions
from recado.engine.clock import VirtualClock

PASSWORD = "pass-9f2"
GATEWAY = Account(sender_id="premium", organization_id="org_1", env="live", provider_id="gateway_a", owner="gateway_a")
# As long as it takes on a busy machine: what a test waits for comes at once, or at a turn of the clock.
TIMES = SmppTimes(bind=20.0)


def segments(text: str, *, wide: bool) -> list[str]:
    """A part for each line: what fits into a part is not this adapter's to know."""
    return text.split("\n")


class Stored:
    """A sink that keeps what it gets, or fails; `fails` is how often it still will.

    `in_doubt`: what it fails for it keeps all the same, as a commit does whose answer is lost.
    """

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.fails = 0
        self.in_doubt = False
        self.held: asyncio.Event | None = None

    async def __call__(self, body: bytes) -> None:
        if self.held is not None:
            await self.held.wait()
        if self.fails:
            self.fails -= 1
            if self.in_doubt:
                self.bodies.append(body)
            raise ConnectionError("the database is away")
        self.bodies.append(body)

    @property
    def events(self) -> list[dict[str, Any]]:
        return [event for body in self.bodies for event in orjson.loads(body)["events"]]


@pytest.fixture
async def centre() -> AsyncIterator[Centre]:
    made = Centre()
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
def stored() -> Stored:
    return Stored()


Made = Callable[..., Any]


@pytest.fixture
async def made(centre: Centre, clock: VirtualClock, stored: Stored) -> AsyncIterator[Made]:
    """Make and start an adapter before the centre; its options by name."""
    adapters: list[Smpp] = []
    running: list[asyncio.Task[None]] = []

    async def make(*, listens: bool = True, **options: Any) -> Smpp:
        adapter = Smpp(
            SmppLogin(
                host=options.pop("host", "127.0.0.1"),
                port=options.pop("port", centre.port),
                tls=options.pop("tls", False),
                system_id="recado",
                password=PASSWORD,
            ),
            SmppOptions(**{"times": TIMES, **options}),
            account="gateway_a",
            segments=segments,
            clock=clock,
            chance=Random(7),
        )
        adapters.append(adapter)
        await adapter.start()
        if listens:
            running.append(asyncio.create_task(adapter.run(stored)))
        return adapter

    yield make
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    for adapter in adapters:
        await adapter.stop()


def sending(adapter: Smpp, text: str = "Ola", **changes: Any) -> "asyncio.Task[Outcome]":
    message: OutboundMessage = a_message(channel="sms", payload={"text": {"body": text}}, **changes)
    return asyncio.create_task(adapter.send(message, GATEWAY, 1))
