"""Bodies on the socket: announced, large, compressed, in pieces, and other than their headers say (C31)."""

import gzip
from io import BytesIO
from typing import Any

from structlog.testing import capture_logs
from tests.http.wire.test_server import HEAD, Thing, answer_of

from recado.http.call import Call
from recado.http.reply import Reply


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


async def test_a_compressed_body_is_read_and_its_limit_is_of_what_it_unpacks_to(serve: Any, thing: Any) -> None:
    api = await serve(thing("POST", body=Thing, body_limit=100_000))
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    async with api.client.post("/things", data=gzip.compress(b'{"name": "y"}'), headers=headers) as answer:
        assert answer.status == 200
    async with api.client.post("/things", data=gzip.compress(b" " * 50_000_000), headers=headers) as answer:
        assert answer.status == 413


async def test_a_body_that_is_not_as_its_headers_announce_is_400(serve: Any, thing: Any) -> None:
    api = await serve(thing("POST", body=Thing))
    for extra, body in (
        (b"Transfer-Encoding: chunked\r\n\r\n", b"zz\r\n{}\r\n"),
        (b"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n", b"{}"),
    ):
        reader, writer = await api.connect()
        with capture_logs() as logs:
            writer.write(b"POST /things HTTP/1.1\r\n" + HEAD + b"Content-Type: application/json\r\n" + extra + body)
            status, _, answer = await answer_of(reader)
            assert await reader.read() == b""
        assert (status, b"application/problem+json" in answer or b'"BAD_REQUEST"' in answer) == (400, True)
        assert logs == []  # a fault of the caller's is none of the operator's
