"""Bodies on the socket: announced, large, compressed, in pieces, and other than their headers say (C31)."""

import gzip
import hashlib
import os
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from tests.captured import capture_logs
from tests.http.wire.test_server import HEAD, Thing, answer_of

from recado.http.api.call import Call
from recado.http.wire.reply import Reply
from recado.http.wire.spool import IN_MEMORY, STEP
from recado.storage.access.organizations import on_the_move
from recado.storage.core.gathered import AHEAD


async def test_a_client_that_asks_first_is_told_to_continue(serve: Any, thing: Any) -> None:
    api = await serve(thing("POST", body=Thing))
    async with api.client.post("/things", json={"name": "y"}, expect100=True) as answer:
        assert answer.status == 200
    async with api.client.post("/things", json={"name": "y"}, expect100=True, headers={"Authorization": ""}) as answer:
        assert answer.status == 401


async def test_a_body_that_is_too_large_is_refused_by_its_length_and_while_it_comes(serve: Any, thing: Any) -> None:
    api = await serve(thing("POST", body=Thing, body_limit=1000))
    headers = {"Content-Type": "application/json"}

    async def pieces() -> Any:
        for _ in range(20):
            yield b" " * 100

    for data in (b" " * 1001, pieces()):
        async with api.client.post("/things", data=data, headers=headers) as answer:
            body = await answer.json(content_type=None)
            assert (answer.status, body["code"], body["kind"]) == (413, "BODY_TOO_LARGE", "BAD_REQUEST")
            assert body["meta"] == {"limitBytes": 1000}
            assert answer.headers["Connection"] == "close"
    async with api.client.post("/things", data=b"{}" + b" " * 998, headers=headers) as answer:
        assert answer.status == 200


async def test_a_large_body_in_many_pieces_arrives_whole(serve: Any, thing: Any) -> None:
    async def handle(call: Call) -> Reply:
        return Reply(200, {"length": len(call.body.name)})

    api = await serve(thing("POST", handler=handle, body=Thing, body_limit=4 * 1024 * 1024))
    for chunked in (False, True):
        name = "ä" * 1_000_000
        body = ('{"name":"' + name + '"}').encode()
        data: Any = _pieces(body) if chunked else BytesIO(body)
        async with api.client.post("/things", data=data, headers={"Content-Type": "application/json"}) as answer:
            assert (answer.status, await answer.json()) == (200, {"length": 1_000_000})


async def _pieces(data: bytes) -> Any:
    for start in range(0, len(data), 50_000):
        yield data[start : start + 50_000]


async def test_an_encoded_body_is_refused_before_a_byte_of_it_is_unpacked(serve: Any, thing: Any) -> None:
    taken: list[bytes] = []

    async def take(call: Call) -> Reply:
        taken.append(call.raw_body)
        return Reply(200, {})

    api = await serve(
        thing("POST", body=Thing, body_limit=100_000),
        thing("POST", "/raw", raw_body=True, handler=take),
        thing("POST", "/file", spooled={"application/json": None}),
    )
    bomb = gzip.compress(b" " * 50_000_000)
    for path in ("/things", "/raw", "/file"):
        for encoding in ("gzip", "deflate", "br", "x-own"):
            headers = {"Content-Type": "application/json", "Content-Encoding": encoding}
            async with api.client.post(path, data=bomb, headers=headers) as answer:
                body = await answer.json(content_type=None)
                assert (answer.status, body["code"]) == (415, "UNSUPPORTED_MEDIA_TYPE")
                assert answer.headers["Accept-Encoding"] == "identity"
    headers = {"Content-Type": "application/json", "Content-Encoding": "Identity"}
    async with api.client.post("/raw", data=b"{}", headers=headers) as answer:
        assert (answer.status, taken) == (200, [b"{}"])


async def test_a_body_that_trickles_has_a_time_in_all(serve: Any, thing: Any, wait_until: Any) -> None:
    size = 2 * 1024 * 1024  # two seconds more than the first sixty
    api = await serve(
        thing("POST", body=Thing, body_limit=size),
        thing("POST", "/file", spooled={"text/csv": None}, body_limit=size),
    )
    for path, kind in ((b"/things", b"application/json"), (b"/file", b"text/csv")):
        reader, writer = await api.connect()
        writer.write(b"POST %b HTTP/1.1\r\n%bContent-Type: %b\r\nContent-Length: %d\r\n\r\n" % (path, HEAD, kind, size))
        for seconds in (20, 20, 21):  # never idle for long
            await arrived(api, wait_until, writer, b" ")
            await api.clock.advance(seconds)
        await arrived(api, wait_until, writer, b" ")
        await api.clock.advance(0.5)
        await arrived(api, wait_until, writer, b" ")
        await api.clock.advance(1)
        status, head, body = await answer_of(reader)
        assert (status, b"Connection: close" in head, b'"code":"BAD_REQUEST"' in body) == (408, True, True)


@pytest.mark.parametrize(("path", "kind"), [(b"/things", b"application/json"), (b"/file", b"text/csv")])
@pytest.mark.parametrize("becomes", [401, 403, 503])
async def test_who_may_call_no_more_when_a_slow_body_has_come_is_refused(
    serve: Any, thing: Any, wait_until: Any, path: bytes, kind: bytes, becomes: int
) -> None:
    called: list[Call] = []

    async def handle(call: Call) -> Reply:
        called.append(call)
        return Reply(200, {})

    api = await serve(
        thing("POST", handler=handle, body=Thing), thing("POST", "/file", handler=handle, spooled={"text/csv": None})
    )
    reader, writer = await api.connect()
    body = b'{"name":"y"}'
    writer.write(
        b"POST %b HTTP/1.1\r\n%bContent-Type: %b\r\nContent-Length: %d\r\n\r\n" % (path, HEAD, kind, len(body))
    )
    await arrived(api, wait_until, writer, body[:1])
    principal = api.credentials.known.pop("good")
    if becomes == 403:
        api.credentials.known["good"] = replace(principal, suspended=True)
    elif becomes == 503:
        api.credentials.bad["good"] = on_the_move()
    writer.write(body[1:])
    status, _, _ = await answer_of(reader)
    assert (status, called) == (becomes, [])


async def arrived(api: Any, wait_until: Any, writer: Any, data: bytes) -> None:
    """Send `data` and wait until the service has it and waits for more."""

    def waiting() -> list[int]:
        bodies = (connection._incoming for connection in api.server._web.connections)
        return [body.total_bytes for body in bodies if body is not None and body._waiter is not None]

    await wait_until(lambda: len(waiting()) == 1)
    before = waiting()[0]
    writer.write(data)
    await wait_until(lambda: waiting() == [before + len(data)])


async def test_a_body_that_is_not_as_its_headers_announce_is_400(serve: Any, thing: Any) -> None:
    api = await serve(thing("POST", body=Thing))
    for extra, body in (
        (b"Transfer-Encoding: chunked\r\n\r\n", b"zz\r\n{}\r\n"),
        (b"Transfer-Encoding: chunked\r\n\r\n", b"2\r\n{}}\r\n0\r\n\r\n"),
    ):
        reader, writer = await api.connect()
        with capture_logs() as logs:
            writer.write(b"POST /things HTTP/1.1\r\n" + HEAD + b"Content-Type: application/json\r\n" + extra + body)
            status, _, answer = await answer_of(reader)
            assert await reader.read() == b""
        assert (status, b"application/problem+json" in answer or b'"BAD_REQUEST"' in answer) == (400, True)
        assert logs == []  # a fault of the caller's is none of the operator's


async def test_a_folder_without_room_for_bodies_is_told_once_a_minute(serve: Any, thing: Any, tmp_path: Path) -> None:
    full = tmp_path / "full"
    api = await serve(
        thing("POST", spooled={"text/csv": None}, body_limit=4 * IN_MEMORY), spool_folder=full
    )  # a folder that is not there has no room either
    statuses = []
    with capture_logs() as logs:
        for pause in (0, 59, 1):
            await api.clock.advance(pause)
            for _ in range(2):
                body = BytesIO(b" " * (IN_MEMORY + 1))
                async with api.client.post("/things", data=body, headers={"Content-Type": "text/csv"}) as answer:
                    statuses.append((answer.status, answer.headers["Retry-After"]))
    assert statuses == [(503, "1")] * 6
    told = {"event": "body_not_kept", "log_level": "warning", "folder": str(full), "cause": "No such file or directory"}
    assert [entry for entry in logs if entry["event"] == "body_not_kept"] == [told, told]


@pytest.mark.parametrize(
    ("media_type", "stores", "begins"),
    [("application/octet-stream", True, True), ("text/csv", True, False), ("application/octet-stream", False, False)],
)
async def test_the_disk_begins_early_with_bodies_that_are_stored_as_they_are(
    media_type: str, stores: bool, begins: bool, serve: Any, thing: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = list[int]()
    monkeypatch.setattr(os, "posix_fadvise", lambda descriptor, at, length, advice: told.append(length))
    route = thing("POST", spooled={media_type: None}, body_limit=3 * AHEAD)
    api, of_type = await serve(route, spool_folder=tmp_path, stores_bodies=stores), {"Content-Type": media_type}
    async with api.client.post("/things", data=BytesIO(bytes(2 * AHEAD)), headers=of_type) as answer:
        assert answer.status == 200
    assert bool(told) is begins


@pytest.mark.parametrize("sizes", [[70_000], [1] * 600 + [100_000], [STEP, STEP - 1, 3], [IN_MEMORY, 2 * STEP + 1]])
async def test_a_body_for_a_file_comes_whole_however_it_is_cut(sizes: list[int], serve: Any, thing: Any) -> None:
    taken: list[tuple[bytes, int, bytes]] = []

    async def take(call: Call) -> Reply:
        assert call.spool is not None
        taken.append((call.spool.file.read(), call.spool.size, call.spool.digest))
        return Reply(200, {})

    api = await serve(thing("POST", "/file", spooled={"text/csv": None}, handler=take, body_limit=4 * IN_MEMORY))
    reader, writer = await api.connect()
    content = os.urandom(sum(sizes))
    writer.write(
        b"POST /file HTTP/1.1\r\n%bContent-Type: text/csv\r\nContent-Length: %d\r\n\r\n" % (HEAD, len(content))
    )
    at = 0
    for size in sizes:
        writer.write(content[at : at + size])
        await writer.drain()
        at += size
    assert (await answer_of(reader))[0] == 200
    assert taken == [(content, len(content), hashlib.sha256(content).digest())]
