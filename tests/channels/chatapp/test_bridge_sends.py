"""Every way in which a send can go, against a real socket: one table, one harness."""

import asyncio
import logging
import socket
from dataclasses import dataclass, replace
from typing import Any

import pytest
from tests.channels.chatapp.behaviours import (
    Behaviour,
    breaks_inside,
    closes_after_reading,
    hangs,
    resets_after_reading,
    resets_before_reading,
    says,
)

from recado.channels.chatapp.bridge import Bridge
from recado.channels.provider import Accepted, Account, Down, OutboundMessage, Outcome, Refused, SlowDown, Unknown

BRIEF = 1.0  # seconds; for cases that end by a time-out, and whose connection must be made before on a busy machine too


ENDLESS = '{"providerMessageId": "wide", "padding": "' + "x" * 2**20 + '"}'
HALF_ACCEPTED = 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"providerMess'
HALF_REFUSED = 'HTTP/1.1 400 Bad\r\nContent-Length: 100\r\n\r\n{"code": "policy'
LENGTHY = '{"code": "policy_blocked", "message": "' + "é" * 9_999 + '"}'
PLAIN = "the bridge answered with status"


@dataclass(frozen=True)
class Case:
    name: str
    behaviour: Behaviour
    outcome: Outcome
    timeout: float = 5.0


CASES = [
    Case("accepts", says(200, '{"providerMessageId": "p-1"}'), Accepted("p-1")),
    Case("accepts with 202", says(202, '{"providerMessageId": "p-2", "more": 1}'), Accepted("p-2")),
    Case("accepts without an id", says(200, "{}"), Unknown()),
    Case("accepts with an empty id", says(200, '{"providerMessageId": ""}'), Unknown()),
    Case("accepts with a numeric id", says(200, '{"providerMessageId": 7}'), Unknown()),
    Case("accepts with an id that cannot be stored", says(200, '{"providerMessageId": "a\\u0000"}'), Unknown()),
    Case("accepts with a list", says(200, "[]"), Unknown()),
    Case("accepts with garbage", says(200, "<html>"), Unknown()),
    Case("accepts with bytes that are no text", says(200, b'{"providerMessageId": "\xff"}'), Unknown()),
    Case("accepts endlessly", says(200, ENDLESS), Unknown()),
    Case("stops inside its acceptance", breaks_inside(HALF_ACCEPTED, then_hangs=False), Unknown()),
    Case("trickles its acceptance", breaks_inside(HALF_ACCEPTED, then_hangs=True), Unknown(), BRIEF),
    Case("refuses", says(400, '{"code": "policy_blocked", "message": "no"}'), Refused("policy_blocked", "no")),
    Case("refuses with 422", says(422, '{"code": "media_invalid", "message": "m"}'), Refused("media_invalid", "m")),
    Case("refuses for its own reason", says(400, '{"code": "E-77", "message": "m"}'), Refused("provider_error", "m")),
    Case("refuses by our code", says(400, '{"code": "withdrawn", "message": "m"}'), Refused("provider_error", "m")),
    Case("refuses with odd types", says(400, '{"code": [], "message": {}}'), Refused("provider_error", f"{PLAIN} 400")),
    Case("refuses in garbage", says(422, "%%"), Refused("provider_error", f"{PLAIN} 422")),
    Case("refuses the size", says(413), Refused("provider_error", f"{PLAIN} 413")),
    Case("stops inside its refusal", breaks_inside(HALF_REFUSED, False), Refused("provider_error", f"{PLAIN} 400")),
    Case("trickles its refusal", breaks_inside(HALF_REFUSED, True), Refused("provider_error", f"{PLAIN} 400"), BRIEF),
    Case(
        "quotes the recipient",
        says(
            400, '{"code": "recipient_unreachable", "message": "+55 11 98765-4321, or 5511987654321, is\\n not there"}'
        ),
        Refused("recipient_unreachable", "***, or ***, is not there"),
    ),
    Case(
        "quotes the text and the token",
        says(400, '{"code": "policy_blocked", "message": "the  secret of the house, bridge-token-9f2c, a@b.example"}'),
        Refused("policy_blocked", "***, ***, ***"),
    ),
    Case("refuses at length", says(400, LENGTHY), Refused("policy_blocked", "é" * 200)),
    Case("does not know us", says(401), Down("unauthorized")),
    Case("does not let us in", says(403), Down("forbidden")),
    Case("is not at this address", says(404), Down("not_found")),
    Case("has moved", says(307, "", "Location: http://127.0.0.1:9/send\r\n"), Down("redirected")),
    Case("is busy", says(429, "", "Retry-After: 7\r\n"), SlowDown(7.0)),
    Case("is busy at once", says(429, "", "Retry-After: 0\r\n"), SlowDown(1.0)),
    Case("is busy until a date", says(503, "", "Retry-After: Fri, 20 Nov 2026 12:00:30 GMT\r\n"), SlowDown(30.0)),
    Case("was busy until a past date", says(503, "", "Retry-After: Fri, 20 Nov 2020 12:00:30 GMT\r\n"), SlowDown(1.0)),
    Case("is busy for a century", says(503, "", "Retry-After: 3155760000\r\n"), SlowDown(21_600.0)),
    Case("is busy for a while", says(503, "", "Retry-After: soon\r\n"), SlowDown(None)),
    Case("is busy without a word", says(503), SlowDown(None)),
    Case("fails", says(500, '{"providerMessageId": "p-1"}'), Unknown()),
    Case("has a failing gateway", says(502), Unknown()),
    Case("has a slow gateway", says(504), Unknown()),
    Case("timed out reading us", says(408), Unknown()),
    Case("is at work on the same key", says(409), Unknown()),
    Case("resets before it reads", resets_before_reading, Unknown()),
    Case("resets after it has read", resets_after_reading, Unknown()),
    Case("closes after it has read", closes_after_reading, Unknown()),
    Case("never answers", hangs, Unknown(), BRIEF),
    Case("speaks another protocol", breaks_inside("220 mail.example ESMTP\r\n", then_hangs=True), Unknown(), BRIEF),
    Case("says too much in its head", breaks_inside("HTTP/1.1 200 OK\r\nX: " + "x" * 99_999, False), Unknown()),
]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
async def test_a_bridge_that(
    case: Case,
    fake_bridge: Any,
    bridge_to: Any,
    message: OutboundMessage,
    account: Account,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    fake_bridge.behaviour = case.behaviour
    bridge: Bridge = await bridge_to(fake_bridge.url, timeout=case.timeout)

    outcome = await bridge.send(message, account, 1)

    assert outcome == case.outcome
    assert len(fake_bridge.requests) <= 1, "a POST is never repeated"
    for personal in (message.to, message.to[1:], "secret of the house", "bridge-token-9f2c", "number-token"):
        assert personal not in repr((outcome, message, account)) + caplog.text


async def test_a_send_carries_the_message_and_its_idempotency_key(
    fake_bridge: Any, bridge_to: Any, message: OutboundMessage, account: Account
) -> None:
    fake_bridge.behaviour = says(200, '{"providerMessageId": "p-1"}')
    bridge: Bridge = await bridge_to(fake_bridge.url + "/")

    await bridge.send(message, account, 1)

    (request,) = fake_bridge.requests
    assert request.path == "/base/send"
    assert request.headers["authorization"] == "Bearer bridge-token-9f2c"
    assert request.headers["idempotency-key"] == message.id
    assert request.json == {
        "id": message.id,
        "channel": "chatapp",
        "env": "live",
        "organizationId": account.organization_id,
        "account": "pn-1",
        "to": "+5511987654321",
        "content": {"type": "text", "payload": {"text": {"body": "the secret of the house"}}},
        "callbackUrl": "https://recado.test/v2/callbacks/chatapp/bridge",
    }


async def test_a_template_travels_with_its_variables(
    fake_bridge: Any, bridge_to: Any, message: OutboundMessage, account: Account
) -> None:
    fake_bridge.behaviour = says(200, '{"providerMessageId": "p-1"}')
    bridge: Bridge = await bridge_to(fake_bridge.url)
    components = [{"type": "BODY", "payload": {"text": "Olá {{1}}!"}}]

    await bridge.send(
        replace(
            message,
            type="template",
            payload=None,
            template_name="ola",
            template_language="pt-BR",
            template_components=components,
            template_vars=["Ana"],
        ),
        account,
        1,
    )

    assert fake_bridge.requests[0].json["content"] == {
        "type": "template",
        "template": {"name": "ola", "language": "pt-BR", "components": components, "variables": ["Ana"]},
    }


async def test_nobody_at_the_port_is_down(bridge_to: Any, message: OutboundMessage, account: Account) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    bridge: Bridge = await bridge_to(f"http://127.0.0.1:{port}")

    assert await bridge.send(message, account, 1) == Down("connect_failed")


async def test_a_name_that_does_not_resolve_is_down(
    bridge_to: Any, message: OutboundMessage, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unresolved(*args: object, **kwargs: object) -> object:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", unresolved)
    bridge: Bridge = await bridge_to("http://bridge.invalid")

    assert await bridge.send(message, account, 1) == Down("connect_failed")


async def test_a_server_without_tls_is_down_for_https(
    fake_bridge: Any, bridge_to: Any, message: OutboundMessage, account: Account
) -> None:
    bridge: Bridge = await bridge_to(fake_bridge.url.replace("http:", "https:"))

    assert await bridge.send(message, account, 1) == Down("connect_failed")
    assert fake_bridge.requests == []


async def test_a_kept_connection_that_closes_under_the_next_send_leaves_it_in_doubt_and_unrepeated(
    fake_bridge: Any, bridge_to: Any, message: OutboundMessage, account: Account
) -> None:
    async def answers_once(connection: Any) -> None:
        await connection.read_request()
        await connection.answer(200, b'{"providerMessageId": "p-1"}')
        await connection.read_request()

    fake_bridge.behaviour = answers_once
    bridge: Bridge = await bridge_to(fake_bridge.url)

    assert await bridge.send(message, account, 1) == Accepted("p-1")
    assert await bridge.send(message, account, 1) == Unknown()
    assert len(fake_bridge.requests) == 2


async def test_stopping_leaves_what_is_in_flight_in_doubt_and_refuses_the_rest(
    fake_bridge: Any, bridge_to: Any, message: OutboundMessage, account: Account
) -> None:
    arrived = asyncio.Event()

    async def reads_and_hangs(connection: Any) -> None:
        await connection.read_request()
        arrived.set()
        await connection.hang()

    fake_bridge.behaviour = reads_and_hangs
    bridge: Bridge = await bridge_to(fake_bridge.url)
    sending = asyncio.create_task(bridge.send(message, account, 1))
    await arrived.wait()

    await bridge.stop()
    await bridge.stop()

    assert await sending == Unknown()
    assert await bridge.send(message, account, 1) == Down("connect_failed")


async def test_a_cancelled_send_stays_cancelled(
    fake_bridge: Any, bridge_to: Any, message: OutboundMessage, account: Account
) -> None:
    arrived = asyncio.Event()

    async def reads_and_hangs(connection: Any) -> None:
        await connection.read_request()
        arrived.set()
        await connection.hang()

    fake_bridge.behaviour = reads_and_hangs
    bridge: Bridge = await bridge_to(fake_bridge.url)
    sending = asyncio.create_task(bridge.send(message, account, 1))
    await arrived.wait()
    sending.cancel()

    with pytest.raises(asyncio.CancelledError):
        await sending


async def test_the_proxy_of_the_environment_is_not_used(
    fake_bridge: Any, bridge_to: Any, message: OutboundMessage, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    fake_bridge.behaviour = says(200, '{"providerMessageId": "p-1"}')
    bridge: Bridge = await bridge_to(fake_bridge.url)

    assert await bridge.send(message, account, 1) == Accepted("p-1")
