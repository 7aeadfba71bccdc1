"""Every way in which a send can go, over every adapter, against a real socket: a send never raises and never tells."""

import asyncio
import logging
import socket
from typing import Any

import pytest
from tests.channels.behaviours import says
from tests.channels.conformance.adapters import ALL
from tests.channels.conformance.conftest import Start
from tests.channels.conformance.tried import Outgoing, Sends, Tried
from tests.channels.peer import Connection, FakeBridge

from recado.channels.core.provider import Accepted, Account, Down, OutboundMessage, Unknown

SENDERS = [(tried, tried.sends) for tried in ALL if tried.sends is not None]
CASES = [(tried, case) for tried, sends in SENDERS for case in sends.cases]

each = pytest.mark.parametrize(("tried", "sends"), SENDERS, ids=[tried.name for tried, _ in SENDERS])


@pytest.mark.parametrize(("tried", "case"), CASES, ids=[f"{tried.name} {case.name}" for tried, case in CASES])
async def test_a_provider_that(
    tried: Tried,
    case: Outgoing,
    fake_bridge: FakeBridge,
    started: Start,
    message: OutboundMessage,
    account: Account,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    fake_bridge.behaviour = case.behaviour
    adapter = await started(tried, fake_bridge.url, case.timeout)

    outcome = await adapter.send(message, account, 1)

    assert outcome == case.outcome
    assert len(fake_bridge.requests) <= 1, "a POST is never repeated"
    for personal in (message.to, message.to[1:], "secret of the house", *tried.secrets):
        assert personal not in repr((outcome, message, account)) + caplog.text


@each
async def test_nobody_at_the_port_is_down(
    tried: Tried, sends: Sends, started: Start, message: OutboundMessage, account: Account
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    adapter = await started(tried, f"http://127.0.0.1:{port}")

    assert await adapter.send(message, account, 1) == Down("connect_failed")


@each
async def test_a_name_that_does_not_resolve_is_down(
    tried: Tried,
    sends: Sends,
    started: Start,
    message: OutboundMessage,
    account: Account,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def unresolved(*args: object, **kwargs: object) -> object:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", unresolved)
    adapter = await started(tried, "http://bridge.invalid")

    assert await adapter.send(message, account, 1) == Down("connect_failed")


@each
async def test_a_server_without_tls_is_down_for_https(
    tried: Tried, sends: Sends, fake_bridge: FakeBridge, started: Start, message: OutboundMessage, account: Account
) -> None:
    adapter = await started(tried, fake_bridge.url.replace("http:", "https:"))

    assert await adapter.send(message, account, 1) == Down("connect_failed")
    assert fake_bridge.requests == []


@each
async def test_a_kept_connection_that_closes_under_the_next_send_leaves_it_in_doubt_and_unrepeated(
    tried: Tried, sends: Sends, fake_bridge: FakeBridge, started: Start, message: OutboundMessage, account: Account
) -> None:
    async def answers_once(connection: Connection) -> None:
        await connection.read_request()
        await connection.answer(200, sends.taken.encode())
        await connection.read_request()

    fake_bridge.behaviour = answers_once
    adapter = await started(tried, fake_bridge.url)

    assert await adapter.send(message, account, 1) == Accepted("p-1")
    assert await adapter.send(message, account, 1) == Unknown()
    assert len(fake_bridge.requests) == 2


async def in_flight(adapter: Any, peer: FakeBridge, message: OutboundMessage, account: Account) -> asyncio.Task[Any]:
    """A send whose provider has read it, and does not answer."""
    arrived = asyncio.Event()

    async def reads_and_hangs(connection: Connection) -> None:
        await connection.read_request()
        arrived.set()
        await connection.hang()

    peer.behaviour = reads_and_hangs
    sending = asyncio.create_task(adapter.send(message, account, 1))
    await arrived.wait()
    return sending


@each
async def test_stopping_leaves_what_is_in_flight_in_doubt_and_refuses_the_rest(
    tried: Tried, sends: Sends, fake_bridge: FakeBridge, started: Start, message: OutboundMessage, account: Account
) -> None:
    adapter = await started(tried, fake_bridge.url)
    sending = await in_flight(adapter, fake_bridge, message, account)

    await adapter.stop()
    await adapter.stop()

    assert await sending == Unknown()
    assert await adapter.send(message, account, 1) == Down("connect_failed")


@each
async def test_a_cancelled_send_stays_cancelled(
    tried: Tried, sends: Sends, fake_bridge: FakeBridge, started: Start, message: OutboundMessage, account: Account
) -> None:
    adapter = await started(tried, fake_bridge.url)
    sending = await in_flight(adapter, fake_bridge, message, account)
    sending.cancel()

    with pytest.raises(asyncio.CancelledError):
        await sending


@each
async def test_the_proxy_of_the_environment_is_not_used(
    tried: Tried,
    sends: Sends,
    fake_bridge: FakeBridge,
    started: Start,
    message: OutboundMessage,
    account: Account,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    fake_bridge.behaviour = says(200, sends.taken)
    adapter = await started(tried, fake_bridge.url)

    assert await adapter.send(message, account, 1) == Accepted("p-1")
