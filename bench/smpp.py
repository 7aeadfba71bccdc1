"""Submits through the SMPP adapter, beside a bare client with the same window, both at the npm package's SMS centre."""

import asyncio
import shutil
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import cast

import uvloop

from bench.harness import ROOT, Figure, Say, against
from recado.channels.core.provider import Accepted, Account, OutboundMessage
from recado.channels.sms.smpp.pdu import HEADER, HEADER_LENGTH, Bind, Command, body_octets
from recado.channels.sms.smpp.session import SmppLogin
from recado.channels.sms.smpp.smpp import Smpp, SmppOptions
from recado.channels.sms.smpp.submits import Submits, source_address
from recado.engine.clock import SystemClock

WINDOW = 50
SUBMITS = 20_000  # in a round
ROUNDS = 3
CALLS = 200  # at once, of which 50 are under way
ENOUGH = 10_000  # a second
LEAST = 0.8
PASSWORD = "pass-9f2"  # that of tests/node/smsc.mjs
TEXT = "Hello, Ana, your order is ready. Come and get it until nine."
ACCOUNT = Account(sender_id="premium", organization_id="org_1", env="live", provider_id="gateway_a", owner="gateway_a")


async def run(say: Say) -> list[Figure]:
    node = shutil.which("node")
    if node is None or not (ROOT / "tests" / "node" / "node_modules" / "smpp").exists():
        raise RuntimeError("the SMS centre of tests/node is not installed: `make test-tools` installs it")
    async with _centre(node) as port:
        ours, bare = await asyncio.to_thread(uvloop.run, _rounds(port, say))  # on the loop of the service
    figure = against("SMPP submits, a window of 50", ours, bare, "/s", LEAST)
    enough = sorted(ours)[ROUNDS // 2] >= ENOUGH
    return [
        Figure(
            figure.path,
            figure.figure,
            figure.bound,
            figure.ratio,
            f"{ENOUGH:,}/s or {figure.target}",
            enough or figure.met is True,
        )
    ]


async def _rounds(port: int, say: Say) -> tuple[list[float], list[float]]:
    """Submits a second of each round, ours and those of the bare client."""
    ours: list[float] = []
    bare: list[float] = []
    async with _bound(port) as adapter:
        for turn in range(ROUNDS):
            say(f"SMPP submits, round {turn + 1} of {ROUNDS}")
            bare.append(await _bare(port))
            ours.append(await _through(adapter))
    return ours, bare


@asynccontextmanager
async def _centre(node: str) -> AsyncIterator[int]:
    process = await asyncio.create_subprocess_exec(
        node, str(ROOT / "tests" / "node" / "smsc.mjs"), "--quick", stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        yield int(await process.stdout.readline())
    finally:
        process.kill()
        await process.wait()


@asynccontextmanager
async def _bound(port: int) -> AsyncIterator[Smpp]:
    adapter = Smpp(
        SmppLogin(host="127.0.0.1", port=port, system_id="recado", password=PASSWORD),
        SmppOptions(window=WINDOW, source="28282"),
        account=ACCOUNT.provider_id,
        segments=lambda text: [text],
        clock=SystemClock(),
        chance=Random(1),
    )
    await adapter.start()
    try:
        yield adapter
    finally:
        await adapter.stop()


async def _through(adapter: Smpp) -> float:
    """Submits a second, made of messages as the service hands them over."""
    left = iter(range(SUBMITS))

    async def send() -> None:
        for number in left:
            message = OutboundMessage(
                id=f"msg_{number:021}",
                organization_id="org_1",
                env="live",
                channel="sms",
                sender_id="premium",
                to=f"+55119{number:08}",
                type="text",
                payload={"text": {"body": TEXT}},
            )
            if not isinstance(await adapter.send(message, ACCOUNT, 1), Accepted):
                raise RuntimeError("a submit was not taken")

    began = time.perf_counter()
    await asyncio.gather(*(send() for _ in range(CALLS)))
    return SUBMITS / (time.perf_counter() - began)


async def _bare(port: int) -> float:
    """Submits a second of a client that does nothing but fill the window: the same octets each time."""
    loop = asyncio.get_running_loop()
    _, client = await loop.create_connection(_Bare, "127.0.0.1", port)
    began = time.perf_counter()
    await client.done
    return SUBMITS / (time.perf_counter() - began)


class _Bare(asyncio.Protocol):
    """Binds, fills the window, and for each answer writes another submit."""

    def __init__(self) -> None:
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        submits = Submits(lambda text: [text], alphabet="gsm7", wide_reference=False)
        (self._submit,) = submits.bodies("msg_1", source_address("28282"), "+5511987654321", TEXT)
        self._came = b""
        self._sequence = 0
        self._answers = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        body = body_octets(Bind(system_id="recado", password=PASSWORD))
        self._transport.write(HEADER.pack(HEADER_LENGTH + len(body), Command.BIND_TRANSCEIVER, 0, 1) + body)

    def data_received(self, data: bytes) -> None:
        came, at, answers = self._came + data, 0, 0
        while len(came) - at >= HEADER_LENGTH:
            length = int.from_bytes(came[at : at + 4], "big")
            if len(came) - at < length:
                break
            at += length
            answers += 1
        self._came = came[at:]
        if not self._sequence:  # it is bound
            self._write(WINDOW)
            return
        self._answers += answers
        self._write(min(answers, SUBMITS - self._sequence))
        if self._answers >= SUBMITS and not self.done.done():
            self._transport.close()
            self.done.set_result(None)

    def _write(self, submits: int) -> None:
        length, command, body = HEADER_LENGTH + len(self._submit), Command.SUBMIT_SM, self._submit
        first = self._sequence + 1
        self._sequence += submits
        self._transport.write(
            b"".join([HEADER.pack(length, command, 0, first + place) + body for place in range(submits)])
        )
