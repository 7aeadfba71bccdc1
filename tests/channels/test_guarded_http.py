"""Calls to customers' endpoints (C30.6): to the address that was checked and no other, and reading no more than needed.

The endpoints are real ones on this machine; what their names stand for is the test's.
"""

import asyncio
import ssl
import subprocess
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from ipaddress import ip_network
from pathlib import Path

import pytest

from recado.channels.http.guarded_http import Endpoint, GuardedHttp, Response
from recado.channels.http.outbound_guard import OutboundGuard
from recado.engine.clock import VirtualClock

START = datetime(2026, 11, 20, 12, tzinfo=UTC)
HERE, NOT_ALLOWED = "127.0.0.1", "127.0.0.2"
LARGE = 64 * 1024 * 1024


@dataclass
class Peer:
    """An endpoint that counts its connections and requests, and answers each request with `answer`."""

    port: int = 0
    answer: bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
    connections: int = 0
    requests: list[bytes] = field(default_factory=list)
    written: int = 0
    names: list[str | None] = field(default_factory=list)  # that TLS asked for
    arrived: asyncio.Condition = field(default_factory=asyncio.Condition)
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    closes: bool = False  # after each answer, and without saying so

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
                request = head + await reader.readexactly(length)
                async with self.arrived:
                    self.requests.append(request)
                    self.arrived.notify_all()
                for start in range(0, len(self.answer), 65_536):
                    writer.write(self.answer[start : start + 65_536])
                    await writer.drain()
                    self.written = start
                if self.closes:
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.transport.abort()
            self.gone.set()

    async def asked(self, times: int) -> None:
        """Comes back when so many requests are there."""
        async with asyncio.timeout(60), self.arrived:
            await self.arrived.wait_for(lambda: len(self.requests) >= times)


@dataclass
class World:
    """A guard whose names stand for what `addresses` says; this machine's 127.0.0.1 is opened, and nothing else."""

    clock: VirtualClock = field(default_factory=lambda: VirtualClock(START))
    addresses: Sequence[str] = (HERE,)
    asked: int = 0
    tls: ssl.SSLContext | None = None
    call_limit: float = 2.0

    async def lookup(self, host: str, port: int) -> Sequence[str]:
        self.asked += 1
        return self.addresses

    def endpoint(self, url: str) -> Endpoint:
        guard = OutboundGuard(clock=self.clock, allowed=(ip_network(HERE),), lookup=self.lookup)
        http = GuardedHttp(guard, clock=self.clock, connect_limit=2.0, call_limit=self.call_limit, tls=self.tls)
        return http.endpoint(url, live=True)


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    made = Peer()
    server = await asyncio.start_server(made.talk, HERE, 0)
    made.port = server.sockets[0].getsockname()[1]
    yield made
    server.close()


async def post(endpoint: Endpoint) -> Response:
    return await endpoint.post(b"", b"{}")


REFUSED_ANSWERS = [
    [NOT_ALLOWED],
    [HERE, NOT_ALLOWED],
    [HERE, "10.0.0.1"],
    ["169.254.169.254"],
    ["::1"],
    ["::ffff:127.0.0.2"],
    ["64:ff9b::7f00:1"],
    ["2002:7f00:1::"],
    ["0.0.0.0"],
    ["fe80::1%eth0"],
    ["100.64.0.1"],
    [],
]


@pytest.mark.parametrize("answers", REFUSED_ANSWERS, ids=str)
async def test_a_name_that_comes_to_stand_for_another_address_is_not_called_any_more(
    peer: Peer, answers: list[str]
) -> None:
    world = World()
    endpoint = world.endpoint(f"http://hooks.example.com:{peer.port}/")
    assert (await post(endpoint)).status == 200

    world.addresses = answers
    await world.clock.advance(1.0)  # the connection of the first call is still open
    refused = await post(endpoint)
    assert refused.status is None
    assert str(refused.error).startswith("the URL may not be called: ")
    assert not any(address in str(refused.error) for address in answers)
    assert len(peer.requests) == 1

    world.addresses = [HERE]
    await world.clock.advance(1.0)
    assert (await post(endpoint)).status == 200
    endpoint.close()


async def test_a_call_goes_where_the_name_was_found_to_point_and_asks_nobody_else(
    peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1/")
    world = World()
    endpoint = world.endpoint(f"http://no.such.name.example:{peer.port}/a?b=c")
    assert [(await post(endpoint)).status for _ in range(3)] == [200] * 3
    assert (world.asked, peer.connections) == (1, 1)
    assert peer.requests[0].startswith(b"POST /a?b=c HTTP/1.1\r\nHost: no.such.name.example:")
    endpoint.close()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_an_answer_and_is_never_followed(peer: Peer, status: int) -> None:
    there = Peer()
    server = await asyncio.start_server(there.talk, HERE, 0)
    port = server.sockets[0].getsockname()[1]
    peer.answer = f"HTTP/1.1 {status} Go\r\nLocation: http://127.0.0.1:{port}/\r\nContent-Length: 0\r\n\r\n".encode()
    endpoint = World().endpoint(f"http://hooks.example.com:{peer.port}/")
    response = await post(endpoint)
    assert (response.status, response.ok) == (status, False)
    assert there.connections == 0
    endpoint.close()
    server.close()


async def test_of_a_large_body_only_its_beginning_is_read(peer: Peer) -> None:
    peer.answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % LARGE + b"x" * LARGE
    endpoint = World().endpoint(f"http://hooks.example.com:{peer.port}/")
    response = await post(endpoint)
    assert (response.status, response.body) == (200, b"x" * 1024)
    await peer.gone.wait()
    assert peer.written < LARGE / 4  # what the kernel's buffers hold, and no more
    endpoint.close()


def certificate(folder: Path, name: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """The context of a server that is `name`, and one of a client who trusts it."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}",
         "-addext", f"subjectAltName=DNS:{name}", "-keyout", "key.pem", "-out", "cert.pem"],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return server, ssl.create_default_context(cafile=str(folder / "cert.pem"))


async def test_tls_verifies_the_name_and_not_the_address(tmp_path: Path) -> None:
    served, trusting = certificate(tmp_path, "hooks.example.com")
    peer = Peer()
    served.sni_callback = lambda _socket, name, _context: peer.names.append(name)
    server = await asyncio.start_server(peer.talk, HERE, 0, ssl=served)
    port = server.sockets[0].getsockname()[1]

    right = World(tls=trusting).endpoint(f"https://hooks.example.com:{port}/")
    assert (await post(right)).status == 200
    wrong = World(tls=trusting).endpoint(f"https://other.example.com:{port}/")
    refused = await post(wrong)
    assert refused.status is None
    assert "certificate is not valid" in str(refused.error)
    assert (len(peer.requests), peer.names) == (1, ["hooks.example.com", "other.example.com"])
    right.close()
    server.close()


async def test_calls_that_are_broken_off_leave_no_connection_behind(peer: Peer) -> None:
    peer.answer = b""  # it never answers
    endpoint = World().endpoint(f"http://hooks.example.com:{peer.port}/")
    call = asyncio.create_task(post(endpoint))
    await peer.asked(1)
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    async with asyncio.timeout(60):
        await peer.gone.wait()
    assert call.cancelled()


async def test_a_connection_is_used_again_after_its_name_was_looked_up_anew(peer: Peer) -> None:
    world = World()
    endpoint = world.endpoint(f"http://hooks.example.com:{peer.port}/")
    for _ in range(3):
        assert (await post(endpoint)).status == 200
        await world.clock.advance(1.5)
    assert (world.asked, peer.connections) == (3, 1)
    endpoint.close()


async def test_calls_on_connections_that_are_used_again_end_in_time_each_for_itself(peer: Peer) -> None:
    endpoint = World(call_limit=1.0).endpoint(f"http://hooks.example.com:{peer.port}/")
    assert [(await each).status for each in [asyncio.ensure_future(post(endpoint)) for _ in range(3)]] == [200] * 3
    answered, peer.answer = peer.answer, b""
    first = asyncio.ensure_future(post(endpoint))
    await peer.asked(4)
    second = asyncio.ensure_future(post(endpoint))
    await peer.asked(5)
    peer.answer = answered
    third = await post(endpoint)  # while two others hang
    assert third.status == 200
    for hanging in (first, second):
        response = await hanging
        assert (response.status, response.error) == (None, "no complete answer within 1 s")
    assert peer.connections == 3
    assert (await post(endpoint)).status == 200
    endpoint.close()


async def test_a_connection_that_was_closed_over_there_is_replaced(peer: Peer) -> None:
    endpoint = World().endpoint(f"http://hooks.example.com:{peer.port}/")
    peer.closes = True
    assert (await post(endpoint)).status == 200
    assert (await post(endpoint)).status == 200
    assert (peer.connections, len(peer.requests)) == (2, 2)
    endpoint.close()
