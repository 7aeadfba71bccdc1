"""The simulated SMS centre before the SMPP adapter: every kind of trouble, and a record that agrees with the sender."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import orjson
import pytest
from tests.channels.conftest import a_message
from tests.waiting import until

from recado.channels.core.provider import Accepted, Account, Down, Outcome, Refused, SlowDown, Unknown
from recado.channels.sms.smpp.session import SmppLogin, SmppTimes
from recado.channels.sms.smpp.smpp import Smpp, SmppOptions
from recado.engine.clock import SystemClock
from recado.simulator.behaviour import Given, RequestShares
from recado.simulator.options import SimulatorOptions
from recado.simulator.record import notes, read_record, recipient_hash, unsent
from recado.simulator.server import Simulator
from recado.simulator.smpp_centre import UNBIND, OddReceipts

ACCOUNT = Account(sender_id="premium", organization_id="org_1", env="live", provider_id="gateway_a", owner="gateway_a")
SENT = 60
ROUNDS = 5


class Sender:
    """The adapter, and what it stored; `refuses`: how many batches it will not store."""

    def __init__(self, port: int, *, password: str = "any", answer: float = 20.0) -> None:
        self.adapter = Smpp(
            SmppLogin(host="127.0.0.1", port=port, system_id="recado", password=password),
            SmppOptions(source="28282", times=SmppTimes(bind=20.0, answer=answer)),
            account="gateway_a",
            segments=lambda text, *, wide: self.segments or [text],
            clock=SystemClock(),
            chance=Random(7),
        )
        self.segments: list[str] = []  # empty: the text is one
        self.events: list[dict[str, Any]] = []
        self.refuses = 0

    async def store(self, body: bytes) -> None:
        if self.refuses:
            self.refuses -= 1
            raise ConnectionError
        self.events += orjson.loads(body)["events"]

    async def send(self, place: int) -> Outcome:
        """Again and again while there is no connection."""
        message = a_message(channel="sms", to=f"+55119876500{place:02}", payload={"text": {"body": "Ola"}})
        while isinstance(outcome := await self.adapter.send(message, ACCOUNT, 1), Down):
            await until(lambda: self.adapter.binds > 0, "there is a connection")
        return outcome


@asynccontextmanager
async def before(port: int, **options: Any) -> AsyncIterator[Sender]:
    sender = Sender(port, **options)
    await sender.adapter.start()
    running = asyncio.create_task(sender.adapter.run(sender.store))
    try:
        yield sender
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await sender.adapter.stop()


Start = Callable[..., Any]


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    """Start a simulated centre on the one record."""
    started: list[Simulator] = []

    async def run(**options: Any) -> Simulator:
        options = {"smpp": ("127.0.0.1", 0), "receipt_delay": 0.01, "seed": 3, **options}
        simulator = Simulator(SimulatorOptions(record=tmp_path / "sent.jsonl", secret="s", **options))
        await simulator.start()
        started.append(simulator)
        return simulator

    yield run
    for simulator in started:
        await simulator.stop()


async def test_what_is_sent_is_on_the_record_and_reported(start: Start, tmp_path: Path) -> None:
    simulator = await start()
    async with before(simulator.smpp_port) as sender:
        outcomes = await asyncio.gather(*(sender.send(place) for place in range(SENT)))
        await until(lambda: len(sender.events) == SENT, "each is reported")
    record = read_record(tmp_path / "sent.jsonl")
    assert [Accepted(request.provider_message_id or "") for request in record] == list(outcomes)
    assert {event["providerMessageId"] for event in sender.events} == {each.provider_message_id for each in record}
    assert {event["status"] for event in sender.events} == {"delivered"}
    assert {request.recipient for request in record} == {
        recipient_hash(f"+55119876500{place:02}") for place in range(SENT)
    }
    assert {(request.number, request.protocol) for request in record} == {("28282", "smpp")}
    assert unsent(tmp_path / "sent.jsonl") == []


@pytest.mark.parametrize(
    ("shares", "given", "kinds"),
    [
        (RequestShares(slow_down=1), Given.SLOW_DOWN, SlowDown),
        (RequestShares(refuse=1), Given.REFUSED, Refused),
        (RequestShares(error=1), Given.FAILED, Unknown),
        (RequestShares(silent=1), Given.ACCEPTED, Accepted),
    ],
)
async def test_each_fate_has_its_outcome(
    start: Start, tmp_path: Path, shares: RequestShares, given: Given, kinds: type[Outcome]
) -> None:
    simulator = await start(shares=shares)
    async with before(simulator.smpp_port) as sender:
        outcomes = [await sender.send(place) for place in range(10)]
    assert {type(outcome) for outcome in outcomes} == {kinds}
    assert {request.outcome for request in read_record(tmp_path / "sent.jsonl")} == {given}


async def test_all_trouble_at_once_loses_no_receipt_and_no_connection(start: Start, tmp_path: Path) -> None:
    simulator = await start(
        shares=RequestShares(
            slow_down=0.15, refuse=0.15, lost=0.1, error=0.05, duplicate=0.3, early=0.3, undelivered=0.2, silent=0.1
        ),
        odd_receipts=OddReceipts(unknown=0.3, malformed=0.5),
        latency=0.005,
    )
    async with before(simulator.smpp_port, answer=0.5) as sender:
        outcomes: list[Outcome] = []
        for _ in range(ROUNDS):  # a connection that ends may take all with it that would have been refused
            outcomes += await asyncio.gather(*(sender.send(place) for place in range(SENT)))
            if len({type(outcome) for outcome in outcomes}) == 4:
                break
        record = tmp_path / "sent.jsonl"
        await until(lambda: not unsent(record), "every receipt is taken")
    requests = read_record(record)
    assert len({type(outcome) for outcome in outcomes}) == 4
    assert len(requests) >= SENT
    reported = {event["providerMessageId"]: event["status"] for event in sender.events if event["status"] != "sent"}
    due = {request.provider_message_id for request in requests if request.receipts}
    assert due <= reported.keys()
    assert reported.keys() - due == {"nobody's"}
    answered = {request.provider_message_id for request in requests if request.outcome is Given.ACCEPTED}
    assert {outcome.provider_message_id for outcome in outcomes if isinstance(outcome, Accepted)} <= answered


async def test_an_unbind_is_on_the_record_and_what_it_cut_off_is_not_answered_there(
    start: Start, tmp_path: Path
) -> None:
    simulator = await start(shares=RequestShares(lost=0.2), latency=0.02)
    async with before(simulator.smpp_port, answer=0.5) as sender:
        outcomes = await asyncio.gather(*(sender.send(place) for place in range(SENT)))
    record = tmp_path / "sent.jsonl"
    requests = read_record(record)
    unbinds = [value["id"] for kind, value in notes(record) if kind == UNBIND]
    assert 0 < len(unbinds) < sum(request.outcome is Given.LOST for request in requests)
    assert {request.outcome for request in requests if request.id in unbinds} == {Given.LOST}
    known = {request.provider_message_id for request in requests if request.answered_at is not None}
    assert known == {outcome.provider_message_id for outcome in outcomes if isinstance(outcome, Accepted)}


async def test_the_record_says_which_part_a_submit_is(start: Start, tmp_path: Path) -> None:
    simulator = await start()
    async with before(simulator.smpp_port) as sender:
        sender.segments = ["one", "two"]
        await sender.send(1)
    requests = read_record(tmp_path / "sent.jsonl")
    assert [(each.part, each.parts, len(each.receipts) > 0) for each in requests] == [(1, 2, False), (2, 2, True)]


async def test_what_is_not_stored_is_brought_again(start: Start) -> None:
    simulator = await start()
    async with before(simulator.smpp_port) as sender:
        sender.refuses = 1
        assert isinstance(await sender.send(1), Accepted)
        await until(lambda: len(sender.events) == 1, "it is stored at the second try")
    assert simulator.pending == 0


async def test_a_further_life_brings_the_receipts_that_are_left(start: Start, tmp_path: Path) -> None:
    first = await start(receipt_delay=3600.0)
    async with before(first.smpp_port) as sender:
        outcome = await sender.send(1)
    await first.stop()
    record = tmp_path / "sent.jsonl"
    record.write_bytes(record.read_bytes().replace(b'"delays":[', b'"delays":[0.0],"drawn":['))
    second = await start()
    async with before(second.smpp_port) as sender:
        await until(lambda: len(sender.events) == 1, "the receipt comes after the restart")
    assert isinstance(outcome, Accepted)
    assert sender.events[0]["providerMessageId"] == outcome.provider_message_id
    assert unsent(record) == []


async def test_only_the_password_lets_in(start: Start) -> None:
    simulator = await start(token="right")
    stranger = Sender(simulator.smpp_port, password="wrong")
    await stranger.adapter.start()
    message = a_message(channel="sms", payload={"text": {"body": "Ola"}})
    assert await stranger.adapter.send(message, ACCOUNT, 1) == Down("unauthorized")
    await stranger.adapter.stop()
    async with before(simulator.smpp_port, password="right") as sender:
        assert isinstance(await sender.send(1), Accepted)
