"""Endpoints of every kind, real ones on this machine: what each does to a delivery, and that none holds up another."""

import asyncio
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.actors.webhooks.conftest import Place, Receiver

Peer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.fixture
async def raw() -> AsyncIterator[Callable[[Peer], Awaitable[str]]]:
    """Serve connections by a function; answers the URL."""
    servers: list[asyncio.Server] = []
    tasks: set[asyncio.Task[None]] = set()

    async def serve(peer: Peer, tls: ssl.SSLContext | None = None) -> str:
        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            tasks.add(task)
            try:
                await peer(reader, writer)
            except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                pass
            finally:
                writer.transport.abort()

        server = await asyncio.start_server(talk, "127.0.0.1", 0, ssl=tls)
        servers.append(server)
        return f"{'https' if tls else 'http'}://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook"

    yield serve
    for server in servers:
        server.close()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def request_of(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
    return head + await reader.readexactly(length)


def answering(*parts: bytes, forever: bytes = b"") -> Peer:
    """A peer that reads one request after another and answers each with the parts, then with one part forever."""

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await request_of(reader)
            for part in parts:
                writer.write(part)
                await writer.drain()
            while forever:
                writer.write(forever)
                await writer.drain()
            if not parts:
                return

    return peer


def trickling(start: bytes, part: bytes) -> Peer:
    """A peer that begins an answer and adds a little to it whenever nothing has happened for a while."""

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        writer.write(start)
        gone = asyncio.ensure_future(reader.read())
        while not gone.done():
            writer.write(part)
            await asyncio.wait([gone], timeout=0.05)

    return peer


def closing(*parts: bytes) -> Peer:
    """A peer that answers one request with the parts and goes."""

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        for part in parts:
            writer.write(part)
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    return peer


async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await request_of(reader)
    await asyncio.Event().wait()


FAILING: dict[str, tuple[Peer, int | None, str]] = {
    "hangs": (hang, None, "no complete answer within 1 s"),
    "closes without an answer": (answering(), None, "closed without an answer"),
    "speaks something else": (answering(b"220 smtp.example.com ESMTP\r\n\r\n"), None, "not HTTP"),
    "switches protocols": (answering(b"HTTP/1.1 101 Switching\r\n\r\n"), None, "not HTTP"),
    "answers 500": (answering(b"HTTP/1.1 500 No\r\nContent-Length: 4\r\n\r\noops"), 500, "answered 500"),
    "answers 404 without a length": (closing(b"HTTP/1.0 404 No\r\n\r\n", b"x"), 404, "answered 404"),
    "redirects to loopback": (
        answering(b"HTTP/1.1 307 Go\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"), 307, "307",
    ),
    "trickles its body": (trickling(OK + b"Content-Length: 1000\r\n\r\n", b"."), None, "no complete answer"),
    "trickles its head": (trickling(OK, b"X: y\r\n"), None, "no complete answer"),
    "answers for now, without end": (
        answering(forever=b"HTTP/1.1 102 Wait\r\n\r\n" * 100), None, "no end to its head",
    ),
    "has a head without end": (answering(OK, forever=b"X: " + b"y" * 8000 + b"\r\n"), None, "no end to its head"),
}  # fmt: skip

DELIVERED: dict[str, Peer] = {
    "a body of 64 MB": answering(OK + b"Content-Length: 67108864\r\n\r\n", *[b"x" * 65_536] * 1024),
    "a body without end": answering(OK + b"\r\n", forever=b"y" * 65_536),
    "chunks without end": answering(CHUNKED, forever=b"1000\r\n" + b"z" * 4096 + b"\r\n"),
    "no content": answering(b"HTTP/1.1 204 None\r\n\r\n"),
    "an interim answer first": answering(b"HTTP/1.1 102 Wait\r\n\r\n", OK + b"Content-Length: 0\r\n\r\n"),
    "chunks": answering(CHUNKED + b"5\r\nhel", b"lo\r\n0\r\n\r\n"),
    "broken chunks": answering(CHUNKED + b"nonsense\r\n"),
    "a length that is none": answering(OK + b"Content-Length: 5, 5\r\n\r\nhello"),
    "another coding": answering(OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n1\r\nx\r\n"),
    "two lengths": answering(OK + b"Content-Length: 0\r\nContent-Length: 5\r\n\r\n"),
    "a connection that breaks inside the body": closing(OK + b"Content-Length: 10\r\n\r\nabc"),
    "a body that ends with the connection": closing(OK + b"\r\n", b"hello"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAILING)
async def test_an_endpoint_that_fails_is_tried_again_later(place: Place, raw: Any, name: str) -> None:
    peer, status, error = FAILING[name]
    if "no complete answer" in error:
        place.http.call_limit = 1.0
    subscription = await place.subscribe(await raw(peer))
    await place.emit()
    row = await place.until_attempted(subscription)
    assert row["last_status"] == status
    assert error in row["last_error"]
    wait = (row["due_at"] - place.clock.now()).total_seconds()
    assert 20 < wait <= 33
    assert len(row["history"]) == 1


@pytest.mark.parametrize("name", DELIVERED)
async def test_a_success_is_a_success_whatever_comes_with_it(place: Place, raw: Any, name: str) -> None:
    subscription = await place.subscribe(await raw(DELIVERED[name]))
    await place.emit(count=3)
    rows = await place.settled(subscription, 3)
    assert {(row["status"], row["last_status"] // 100) for row in rows} == {("delivered", 2)}


async def test_an_endpoint_that_resets_is_tried_again(place: Place, raw: Any) -> None:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.transport.abort()

    subscription = await place.subscribe(await raw(peer))
    await place.emit()
    assert (await place.until_attempted(subscription))["last_status"] is None


async def test_a_closed_port_is_no_connection(place: Place) -> None:
    subscription = await place.subscribe("http://127.0.0.1:1/")
    await place.emit()
    assert "no connection" in (await place.until_attempted(subscription))["last_error"]


def certificate(folder: Path) -> ssl.SSLContext:
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-keyout", "key.pem", "-out", "cert.pem"],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return context


async def test_a_certificate_of_nobody_is_refused(place: Place, raw: Any, tmp_path: Path) -> None:
    asked: list[bytes] = []

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await request_of(reader))

    subscription = await place.subscribe(await raw(peer, certificate(tmp_path)))
    await place.emit()
    assert "certificate" in (await place.until_attempted(subscription))["last_error"]
    assert asked == []


async def test_an_endpoint_without_tls_fails_the_handshake(place: Place, raw: Any) -> None:
    place.http.connect_limit = 0.5  # it waits for what is never said
    url = (await raw(answering(OK))).replace("http://", "https://")
    subscription = await place.subscribe(url)
    await place.emit()
    error = (await place.until_attempted(subscription))["last_error"]
    assert "TLS" in error or "no connection" in error


async def test_of_a_failure_one_kibibyte_is_kept_and_hidden_where_phones_are_shown(
    place: Place, receiver: Receiver
) -> None:
    async def refuse(request: web.Request) -> web.Response:
        return web.Response(status=500, text="+5511987654321 " * 1000)

    receiver.answer = refuse
    plain = await place.subscribe(receiver.url, "wallet.depleted")
    shown = await place.subscribe(receiver.url, "wallet.depleted", include_pii=True)
    await place.emit()
    kept = (await place.until_attempted(plain))["history"][0]
    assert len(kept["answer"]) == 1024
    sealed = (await place.until_attempted(shown))["history"][0]
    assert "answer" not in sealed
    assert "987654321" not in str(sealed)


async def test_a_reused_connection_that_was_closed_over_there_costs_no_attempt(place: Place, raw: Any) -> None:
    requests = 0

    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal requests
        await request_of(reader)
        requests += 1
        writer.write(OK + b"Content-Length: 0\r\n\r\n")  # it promises to stay
        await writer.drain()
        await request_of(reader)  # and goes when the next request is there

    subscription = await place.subscribe(await raw(once))
    for count in (1, 2, 3):
        await place.emit()
        rows = await place.settled(subscription, count)
    assert [row["attempts"] for row in rows] == [1, 1, 1]
    assert requests == 3


async def test_a_dead_and_a_hanging_endpoint_hold_up_nobody(place: Place, raw: Any, receiver: Receiver) -> None:
    dead = await place.subscribe("http://127.0.0.1:1/")
    hanging = await place.subscribe(await raw(hang))
    good = await place.subscribe(receiver.url)
    await place.emit(count=200)
    rows = await place.settled(good, 200, 5.0)
    assert {row["status"] for row in rows} == {"delivered"}
    assert len(await place.pending(dead)) == 200
    assert len(await place.pending(hanging)) == 200


async def test_calls_grow_from_ten_to_a_hundred_while_answers_succeed(place: Place, receiver: Receiver) -> None:
    first, last = asyncio.Event(), asyncio.Event()

    async def wait(request: web.Request) -> web.Response:
        await (first if len(receiver.received) <= 200 else last).wait()
        return web.Response()

    receiver.answer = wait
    subscription = await place.subscribe(receiver.url)
    await place.emit(count=400)
    await receiver.wait_for(10)
    await place.webhooks.poll()
    assert receiver.at_once == 10
    first.set()
    await receiver.wait_for(300)
    await place.webhooks.poll()
    assert receiver.at_once == 100
    last.set()
    await place.settled(subscription, 400)
    assert receiver.most_at_once == 100
