"""The simulated provider as the bridge adapter meets it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.channels.accounts import chatapp_account

from recado.channels.chatapp.bridge import Bridge
from recado.channels.core.errors import ProviderError
from recado.channels.core.events import Status, TemplateVerdict
from recado.channels.core.provider import (
    Accepted,
    Down,
    OutboundMessage,
    Refused,
    SlowDown,
    TemplateSubmission,
    Unknown,
)
from recado.engine.clock import SystemClock
from recado.simulator import operations
from recado.simulator.behaviour import Given, RequestShares
from recado.simulator.record import notes, read_record, recipient_hash
from recado.simulator.server import Simulator, SimulatorOptions

MESSAGE = OutboundMessage(
    id="msg_0000000100000000000a1",
    organization_id="org_000000000000000000001",
    env="live",
    channel="chatapp",
    sender_id="num_000000000000000000001",
    to="+5511987654321",
    type="text",
    payload={"text": {"body": "the secret of the house"}},
)
ACCOUNT = chatapp_account(MESSAGE.sender_id, MESSAGE.organization_id)

Play = Callable[..., Awaitable[tuple[Bridge, Path]]]


@pytest.fixture
async def play(service: Any, secret: str, tmp_path: Path) -> AsyncIterator[Play]:
    """Start a simulator with those shares, and an adapter in front of it."""
    parts: list[Any] = []

    async def start(
        timeout: float = 10.0, token: str = "t", *, idempotent: bool = False, **shares: float
    ) -> tuple[Bridge, Path]:
        record = tmp_path / "record.jsonl"
        simulator = Simulator(
            SimulatorOptions(
                record=record,
                secret=secret,
                token="t",
                shares=RequestShares(**shares),
                receipt_delay=0.002,
                gather_seconds=0,
                retry_after=3,
                idempotent=idempotent,
            )
        )
        await simulator.start()
        parts.append(simulator)
        bridge = Bridge(
            url=simulator.url,
            token=token,
            secret=secret,
            callback_url=service.url,
            clock=SystemClock(),
            timeout=timeout,
        )
        await bridge.start()
        parts.append(bridge)
        return bridge, record

    yield start
    for part in reversed(parts):
        await part.stop()


def reported(service: Any) -> list[str]:
    return [event.status for event in service.events]


async def test_an_accepted_message_is_recorded_and_reported(play: Play, service: Any) -> None:
    bridge, record = await play()

    outcome = await bridge.send(MESSAGE, ACCOUNT, 1)

    assert isinstance(outcome, Accepted)
    (request,) = read_record(record)
    assert (request.id, request.idempotency_key, request.number) == (MESSAGE.id, MESSAGE.id, "pn-1")
    assert (request.outcome, request.provider_message_id) == (Given.ACCEPTED, outcome.provider_message_id)
    assert request.recipient == recipient_hash(MESSAGE.to)
    assert "secret of the house" not in record.read_text()
    assert MESSAGE.to[1:] not in record.read_text()
    await service.until(lambda it: len(it.events) == 2)
    assert reported(service) == ["delivered", "read"]
    for event in service.events:
        assert isinstance(event, Status)
        assert (event.reference, event.provider_message_id) == (MESSAGE.id, outcome.provider_message_id)
        assert event.account == "pn-1"


async def test_every_request_is_recorded_once_with_its_own_provider_id(play: Play, service: Any) -> None:
    bridge, record = await play(silent=1)
    messages = [replace(MESSAGE, id=f"msg_{number:021}") for number in range(200)]

    outcomes = await asyncio.gather(*(bridge.send(message, ACCOUNT, 1) for message in messages))

    requests = read_record(record)
    assert sorted(request.id for request in requests) == [message.id for message in messages]
    given = {request.id: request.provider_message_id for request in requests}
    assert len(set(given.values())) == 200
    assert [given[message.id] for message in messages] == [
        outcome.provider_message_id for outcome in outcomes if isinstance(outcome, Accepted)
    ]


async def test_lost_answers_leave_processed_messages_and_their_receipts(play: Play, service: Any) -> None:
    bridge, record = await play(lost=1, timeout=1.5)
    messages = [replace(MESSAGE, id=f"msg_{number:021}") for number in range(8)]  # enough for both ways to lose one

    outcomes = await asyncio.gather(*(bridge.send(message, ACCOUNT, 1) for message in messages))

    assert outcomes == [Unknown()] * 8
    assert [request.outcome for request in read_record(record)] == [Given.LOST] * 8
    await service.until(lambda it: len(it.events) == 16)
    assert {event.reference for event in service.events} == {message.id for message in messages}


async def test_an_error_after_processing_is_recorded_as_processed(play: Play, service: Any) -> None:
    bridge, record = await play(error=1)

    assert await bridge.send(MESSAGE, ACCOUNT, 1) == Unknown()
    assert read_record(record)[0].outcome.processed
    await service.until(lambda it: len(it.events) == 2)


async def test_a_slow_down_says_for_how_long_and_processes_nothing(play: Play) -> None:
    bridge, record = await play(slow_down=1)

    assert await bridge.send(MESSAGE, ACCOUNT, 1) == SlowDown(3.0)
    assert not read_record(record)[0].outcome.processed


async def test_a_refusal_has_a_code_that_the_service_knows(play: Play) -> None:
    bridge, record = await play(refuse=1)

    outcome = await bridge.send(MESSAGE, ACCOUNT, 1)

    assert isinstance(outcome, Refused)
    assert outcome.code != "provider_error"
    assert read_record(record)[0].outcome is Given.REFUSED


async def test_an_early_receipt_has_been_taken_when_the_answer_comes(play: Play, service: Any) -> None:
    bridge, _ = await play(early=1)

    await bridge.send(MESSAGE, ACCOUNT, 1)

    assert reported(service)[0] == "delivered"


async def test_the_record_says_when_a_request_was_answered_and_which_receipts_follow(play: Play) -> None:
    bridge, record = await play(lost=0.5, unreferenced=1, timeout=1.5)
    messages = [replace(MESSAGE, id=f"msg_{number:021}") for number in range(16)]

    outcomes = await asyncio.gather(*(bridge.send(message, ACCOUNT, 1) for message in messages))

    requests = {request.id: request for request in read_record(record)}
    answered = [requests[message.id].answered_at is not None for message in messages]
    assert answered == [isinstance(outcome, Accepted) for outcome in outcomes]
    assert len(set(answered)) == 2
    for request in requests.values():
        assert request.receipts == ("delivered", "read")
        assert request.referenced is (request.outcome is Given.LOST)  # without an answer there is no other name for it
        assert request.answered_at is None or request.answered_at >= request.at


async def test_receipts_without_reference_name_the_provider_id_and_the_account(play: Play, service: Any) -> None:
    bridge, _ = await play(unreferenced=1, undelivered=1)

    outcome = await bridge.send(MESSAGE, ACCOUNT, 1)

    await service.until(lambda it: len(it.events) == 1)
    (event,) = service.events
    assert isinstance(outcome, Accepted)
    assert (event.reference, event.provider_message_id) == (None, outcome.provider_message_id)
    assert (event.account, event.status, event.code) == ("pn-1", "failed", "recipient_unreachable")


async def test_another_bearer_is_not_let_in_and_not_recorded(play: Play) -> None:
    bridge, record = await play(token="other")

    assert await bridge.send(MESSAGE, ACCOUNT, 1) == Down("unauthorized")
    assert read_record(record) == []


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"id": "a"}'])
async def test_what_is_no_request_of_the_protocol_is_refused(body: bytes, play: Play) -> None:
    bridge, record = await play()
    headers = {"Authorization": "Bearer t"}
    async with aiohttp.ClientSession() as session:
        for operation in ("send", "connect"):
            async with session.post(bridge._base / operation, data=body, headers=headers) as answer:
                assert answer.status == 400
        async with session.get(bridge._base / "send", headers=headers) as answer:
            assert answer.status == 405
    assert read_record(record) == []


async def test_a_number_is_connected_until_it_is_disconnected(play: Play) -> None:
    bridge, _ = await play()
    assert (await bridge.number_health(ACCOUNT)).verified

    await bridge.disconnect(ACCOUNT)
    assert (await bridge.number_health(ACCOUNT)).status == "disconnected"
    await bridge.connect(ACCOUNT)
    await bridge.update_profile(ACCOUNT, {"about": "Oi"})

    health = await bridge.number_health(ACCOUNT)
    assert (health.status, health.profile) == ("connected", {"about": "Oi"})
    with pytest.raises(ProviderError, match="not_found"):
        await bridge.call("dance", ACCOUNT)


@pytest.mark.parametrize(("name", "status"), [("ola", "approved"), ("reject_me", "rejected")])
async def test_a_template_is_judged_listed_and_deleted(
    name: str, status: str, play: Play, service: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "REVIEW_SECONDS", 0.0)
    bridge, _ = await play()
    template = TemplateSubmission(
        id="tpl_000000010000000000001", name=name, language="pt-BR", category="utility", components=[{"type": "BODY"}]
    )

    submission = await bridge.submit_template(ACCOUNT, template)

    await service.until(lambda it: len(it.events) == 1)
    (verdict,) = service.events
    assert isinstance(verdict, TemplateVerdict)
    assert (verdict.provider_template_id, verdict.status) == (submission.provider_template_id, status)
    (listed,) = [each for each in await bridge.list_templates(ACCOUNT) if each.name == name]
    assert (listed.status, listed.components) == (status, [{"type": "BODY"}])
    await bridge.delete_template(ACCOUNT, name, submission.provider_template_id)
    assert name not in {each.name for each in await bridge.list_templates(ACCOUNT)}


async def test_every_account_holds_an_approved_template_of_each_category_until_it_is_deleted(play: Play) -> None:
    bridge, _ = await play()

    held = await bridge.list_templates(ACCOUNT)

    assert [(each.category, each.status) for each in held] == [
        ("utility", "approved"),
        ("authentication", "approved"),
        ("marketing", "approved"),
    ]
    for each in held:
        await bridge.delete_template(ACCOUNT, each.name, each.provider_template_id)
    assert await bridge.list_templates(ACCOUNT) == []


async def test_a_simulator_starts_and_stops_twice_and_frees_its_port(secret: str, tmp_path: Path) -> None:
    first = Simulator(SimulatorOptions(record=tmp_path / "record", secret=secret))
    await first.start()
    await first.start()
    port = int(first.url.rsplit(":", 1)[1])
    taken = Simulator(SimulatorOptions(record=tmp_path / "record", secret=secret, port=port))
    with pytest.raises(OSError, match="in use"):
        await taken.start()
    await first.stop()
    await first.stop()

    await taken.start()
    await taken.stop()


async def test_an_idempotent_bridge_sends_a_key_once_and_answers_a_repeat_with_the_same_id_also_in_its_next_life(
    play: Play, service: Any
) -> None:
    first_life, record = await play(idempotent=True, error=1)

    assert isinstance(await first_life.send(MESSAGE, ACCOUNT, 1), Unknown)
    repeated = await first_life.send(MESSAGE, ACCOUNT, 2)
    next_life, _ = await play(idempotent=True, error=1)
    once_more = await next_life.send(MESSAGE, ACCOUNT, 3)

    (request,) = read_record(record)
    assert request.provider_message_id is not None
    assert repeated == once_more == Accepted(request.provider_message_id)
    repeat = {"id": MESSAGE.id, "providerMessageId": request.provider_message_id}
    assert notes(record) == [("repeat", repeat), ("repeat", repeat)]


async def test_a_repeat_of_what_was_not_sent_is_a_send_of_its_own(play: Play, service: Any) -> None:
    bridge, record = await play(idempotent=True, slow_down=1)

    for attempt in (1, 2):
        assert isinstance(await bridge.send(MESSAGE, ACCOUNT, attempt), SlowDown)

    assert len(read_record(record)) == 2


async def test_media_goes_up_and_comes_down(play: Play) -> None:
    bridge, _ = await play()
    content = bytes(range(256)) * 1_000

    async def pieces() -> AsyncIterator[bytes]:
        yield content

    media_id = await bridge.upload_media(ACCOUNT, pieces(), size=len(content), mime_type="image/png", filename="a.png")
    async with bridge.open_media(ACCOUNT, media_id) as media:
        assert b"".join([chunk async for chunk in media.chunks]) == content
    assert (media.mime_type, media.size) == ("image/png", len(content))
    with pytest.raises(ProviderError, match="refused: not_found"):
        async with bridge.open_media(ACCOUNT, "another"):
            pass
