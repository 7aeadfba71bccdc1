"""SMS centres made by others, each on a port of its own: the npm package `smpp`, and Perl's Net::SMPP."""

import asyncio
import json
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.channels.sms.conftest import GATEWAY, PASSWORD, Stored, segments, sending
from tests.waiting import until

from recado.channels.core.provider import Accepted, Down, Refused, SlowDown
from recado.channels.sms.smpp.session import SmppLogin, SmppTimes
from recado.channels.sms.smpp.smpp import Smpp, SmppOptions
from recado.engine.clock import SystemClock

NODE = Path(__file__).parents[2] / "node"
PERL_MODULE = Path("/usr/share/perl5/Net/SMPP.pm")


def missing(what: str) -> None:
    if os.geteuid() == 0:
        pytest.fail(what)
    pytest.skip(what)


def command(kind: str) -> list[str]:
    """The centre's command; only who may not install it goes without."""
    if kind == "node":
        program = shutil.which("node")
        if program is None or not (NODE / "node_modules" / "smpp").exists():
            missing("smpp for Node.js is not installed: `make test` installs it where nodejs and npm are")
        return [str(program), str(NODE / "smsc.mjs")]
    program = shutil.which("perl")
    if program is None or not PERL_MODULE.exists():
        missing("Net::SMPP is not installed: `make test` installs it, from libnet-smpp-perl")
    return [str(program), str(Path(__file__).with_name("smsc.pl"))]


class Program:
    """A centre that runs; `submits` are the messages as it read them."""

    def __init__(self, process: asyncio.subprocess.Process, port: int) -> None:
        self.process = process
        self.port = port

    async def submit(self) -> dict[str, Any]:
        """The next message that it got."""
        assert self.process.stdout is not None
        read: dict[str, Any] = json.loads(await asyncio.wait_for(self.process.stdout.readline(), 20))
        if "octets" in read:
            octets = bytes.fromhex(read.pop("octets"))
            read["text"] = octets.decode("utf-16-be") if read["coding"] == 8 else octets.decode()
        return read


@pytest.fixture(params=["node", "perl"])
async def smsc(request: pytest.FixtureRequest) -> AsyncIterator[Program]:
    process = await asyncio.create_subprocess_exec(*command(request.param), stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    yield Program(process, int(await asyncio.wait_for(process.stdout.readline(), 20)))
    process.kill()
    await process.wait()


@pytest.fixture
async def adapter(smsc: Program, stored: Stored) -> AsyncIterator[Smpp]:
    made = adapter_at(smsc.port, PASSWORD)
    await made.start()
    running = asyncio.create_task(made.run(stored))
    yield made
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await made.stop()


def adapter_at(port: int, password: str) -> Smpp:
    return Smpp(
        SmppLogin(host="127.0.0.1", port=port, system_id="recado", password=password),
        SmppOptions(source="Recado", message_ids="hex_decimal", times=SmppTimes(bind=20.0, answer=20.0)),
        account=GATEWAY.provider_id,
        segments=segments,
        clock=SystemClock(),
        chance=Random(7),
    )


async def test_a_whole_day_at_an_sms_centre(smsc: Program, adapter: Smpp, stored: Stored) -> None:
    to = "+5511987650001"
    plain = {"from": "Recado", "to": to[1:], "header": "", "receipt": 1}
    assert await sending(adapter, "Hello, Ana", to=to) == Accepted("160")
    assert await smsc.submit() == {**plain, "coding": 0, "text": "Hello, Ana"}
    assert await sending(adapter, "Pão às 7 😀", to=to) == Accepted("161")
    assert await smsc.submit() == {**plain, "coding": 8, "text": "Pão às 7 😀"}

    assert await sending(adapter, "one\ntwo", to=to) == Accepted("163")
    first, second = await smsc.submit(), await smsc.submit()
    assert (first["text"], first["receipt"], second["text"], second["receipt"]) == ("one", 0, "two", 1)
    headers = [bytes.fromhex(each["header"])[-5:] for each in (first, second)]
    assert headers[0][:2] + headers[0][3:] == bytes((0, 3, 2, 1))
    assert headers[1][:2] + headers[1][3:] == bytes((0, 3, 2, 2))
    assert headers[0][2] == headers[1][2]

    assert await sending(adapter, to="+5511987659088") == SlowDown()
    assert await sending(adapter, to="+5511987659020") == SlowDown()
    assert await sending(adapter, to="+5511987659011") == Refused(
        "invalid_number", "the SMS centre answered with status 0x0000000B"
    )
    await until(lambda: len(stored.events) == 3, "three are reported")
    reports = [(event["status"], event["providerMessageId"]) for event in stored.events]
    assert reports == [("delivered", "160"), ("delivered", "161"), ("delivered", "163")]

    assert await sending(adapter, "ping", to=to) == Accepted("164")
    await until(lambda: len(stored.events) == 5, "a report and an answer are there")
    came = stored.events[-1]
    assert (came["kind"], came["from"], came["payload"]) == ("inbound", to[1:], {"text": {"body": "Olá 😀"}})

    assert await sending(adapter, "bye", to=to) == Accepted("165")
    await until(lambda: adapter.binds == 0, "the bind is gone")
    await until(lambda: adapter.binds == 1, "there is another bind")
    assert await sending(adapter, "back again", to=to) == Accepted("166")


async def test_many_at_once_are_each_answered(smsc: Program, adapter: Smpp, stored: Stored) -> None:
    sent = [sending(adapter, f"number {place}") for place in range(300)]
    outcomes = [await each for each in sent]
    assert [each.provider_message_id for each in outcomes if isinstance(each, Accepted)] == [
        str(160 + place) for place in range(300)
    ]
    await until(lambda: len(stored.events) == 300, "each is reported")


async def test_a_wrong_password_is_told(smsc: Program) -> None:
    stranger = adapter_at(smsc.port, "wrong")
    await stranger.start()
    try:
        assert await sending(stranger) == Down("unauthorized")
    finally:
        await stranger.stop()
