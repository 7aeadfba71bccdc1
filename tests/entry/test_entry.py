"""The entry: which cell gets a request, what it is told of the caller, and what a cell that is away means."""

import asyncio
import contextlib
import hashlib
import io
import os
import socket
from collections.abc import AsyncIterator, Callable

import aiohttp
import pytest
from aiohttp import web
from tests.entry.conftest import LIMITS, PROXY, Answer, StubCell, Two, bearer, between
from tests.program import free_port
from tests.waiting import until
from yarl import URL

from recado.domain.core.tokens import mint_token
from recado.entry import cell_finder, entry, forwarding, passed_body
from recado.storage.cells import whereabouts
from recado.storage.cells.cell_map import Cell
from recado.storage.core.connections.batch import batchers


def unknown() -> dict[str, str]:
    """A token of nobody, which no other request has shown."""
    return bearer(mint_token("svc_test_", os.urandom))


def asked(cell: str) -> int:
    """How many questions the database of a cell was asked."""
    return sum(each.rows for each in batchers() if each.name == f"cell {cell}")


def cell_of(two: Two, name: str, *, media: str) -> Cell:
    return Cell(name, f"CELL_{name.upper()}", getattr(two, name).url, media)


async def refusing(request: web.BaseRequest) -> web.StreamResponse:
    return web.json_response({"code": "UNAUTHORIZED"}, status=401)


async def test_a_request_goes_to_the_cell_of_its_key_as_it_came_and_with_the_one_address_that_counts(
    two: Two, client: aiohttp.ClientSession
) -> None:
    for cell in (two.a, two.b):
        _, token = await cell.organization()
        headers = {**bearer(token), "X-Forwarded-For": "203.0.113.7", "X-Forwarded-Host": "x", "X-Own": "ç", "TE": "x"}
        target = URL(f"{two.url}/numbers/%C3%A7?a=%2F&b", encoded=True)
        async with client.post(target, data=b"x" * 3000, headers=headers) as answer:
            said = await answer.json()
            assert (answer.status, answer.headers["X-From"]) == (200, cell.name)
        assert (said["target"], said["size"]) == ("/numbers/%C3%A7?a=%2F&b", 3000)
        there = said["headers"]
        assert there["X-Forwarded-For"] == "127.0.0.1"  # nobody is believed who is no proxy
        assert (there["Host"], there["X-Own"]) == (f"127.0.0.1:{two.port}", "ç")
        assert not there.keys() & {"X-Forwarded-Host", "TE"}
    proxy = aiohttp.TCPConnector(local_addr=(PROXY, 0))
    async with aiohttp.ClientSession(connector=proxy) as through:
        headers = {**bearer(token), "X-Forwarded-For": "203.0.113.7, 198.51.100.4"}
        async with through.get(f"{two.url}/numbers", headers=headers) as answer:
            assert (await answer.json())["headers"]["X-Forwarded-For"] == "198.51.100.4"


async def test_a_request_that_the_cell_it_was_in_refuses_goes_to_the_one_that_has_it_now(
    two: Two, client: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    organization_id, token = await two.a.organization()
    async with client.get(f"{two.url}/numbers", headers=bearer(token)) as answer:
        assert answer.headers["X-From"] == "a"
    await two.move(organization_id)
    two.a.answers = refusing
    monkeypatch.setattr(cell_finder, "CERTAIN", 0.0)  # as after a second
    async with client.get(f"{two.url}/numbers", headers=bearer(token)) as answer:
        assert (answer.status, answer.headers["X-From"]) == (200, "b")
    assert two.a.targets == ["/numbers"] * 2


async def test_one_whose_body_the_left_cell_has_is_sent_again_by_its_caller(
    two: Two, client: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    organization_id, token = await two.a.organization()
    async with client.get(f"{two.url}/numbers", headers=bearer(token)) as answer:
        assert answer.status == 200
    await two.move(organization_id)

    async def reads_and_refuses(request: web.BaseRequest) -> web.StreamResponse:
        await request.read()
        return await refusing(request)

    two.a.answers = reads_and_refuses
    monkeypatch.setattr(cell_finder, "CERTAIN", 0.0)
    for status in (503, 200):
        async with client.post(f"{two.url}/messages", headers=bearer(token), data=b"x" * 70_000) as answer:
            assert answer.status == status
            assert status == 200 or answer.headers["Retry-After"] == "5"


async def test_a_large_body_passes_as_fast_as_the_cell_takes_it_and_no_faster(
    two: Two, client: aiohttp.ClientSession
) -> None:
    _, token = await two.a.organization()
    reads, sent = asyncio.Event(), 0
    digest, piece = hashlib.sha256(), os.urandom(256 * 1024)

    async def late(request: web.BaseRequest) -> web.StreamResponse:
        await reads.wait()
        there = hashlib.sha256()
        async for each in request.content.iter_any():
            there.update(each)
        return web.Response(text=there.hexdigest())

    async def body() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(160):  # 40 MiB
            sent += len(piece)
            digest.update(piece)
            yield piece

    two.a.answers = late
    length = {"Content-Length": str(160 * len(piece))}
    sending = asyncio.create_task(client.post(f"{two.url}/up", data=body(), headers={**bearer(token), **length}))
    seen = -1

    async def stands() -> bool:
        nonlocal seen
        before, seen = seen, sent
        return bool(two.a.targets) and before == seen

    await until(stands, "the body stands", every=0.3)
    assert sent < 24 * 1024 * 1024  # what the kernel has of two connections is most of it
    reads.set()
    async with await sending as answer:
        assert await answer.text() == digest.hexdigest()


async def test_an_answer_comes_piece_by_piece_and_one_that_breaks_off_does_so_for_its_caller(
    two: Two, client: aiohttp.ClientSession
) -> None:
    _, token = await two.b.organization()
    more = asyncio.Event()

    async def news(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "X-Range": request.headers["Range"]}
        )
        await response.prepare(request)
        await response.write(b"data: one\n\n")
        await more.wait()
        assert request.transport is not None
        request.transport.abort()
        return response

    two.b.answers = news
    async with client.get(f"{two.url}/news", headers={**bearer(token), "Range": "bytes=3-5"}) as answer:
        assert await answer.content.readany() == b"data: one\n\n"
        assert answer.headers["X-Range"] == "bytes=3-5"
        more.set()
        with pytest.raises(aiohttp.ClientPayloadError):
            await answer.content.read()


async def test_an_answer_before_the_end_of_the_body_is_given_at_once(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passed_body, "HELD_SECONDS", 0.05)
    _, token = await two.a.organization()
    two.a.answers = refusing
    reader, writer = await asyncio.open_connection("127.0.0.1", two.port)
    head = f"POST /up HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Length: 1000000\r\n\r\n"
    writer.write(head.encode() + b"x" * 1000)
    async with asyncio.timeout(60):
        assert (await reader.readline()).startswith(b"HTTP/1.1 401 ")
    writer.close()


async def test_links_invitations_and_files_are_found_by_what_their_address_shows(
    two: Two, client: aiohttp.ClientSession
) -> None:
    organization_id, _ = await two.b.organization()
    await two.b.session.execute(
        "insert into origin_links values ($1, 'test', 'x', 'n', 'n', 't', 'outra', null, 'abcdEFGH', 0, now())",
        organization_id,
    )
    body = organization_id.removeprefix("org_")
    for path in (
        "/c/abcdEFGH?utm=1",
        f"/o/t{body}{'0' * 21}{'x' * 22}.gif",
        f"/u/l{body}{'0' * 42}{'x' * 65}",
        f"/storage/{organization_id}/live/media/2026/11/name?sig=x",
    ):
        async with client.get(two.url + path) as answer:
            assert (answer.status, answer.headers["X-From"], (await answer.json())["target"]) == (200, "b", path)
    assert two.a.targets == []


async def test_during_a_move_a_link_that_neither_cell_has_leads_nowhere_only_for_now(
    two: Two, client: aiohttp.ClientSession
) -> None:
    organization_id, token = await two.a.organization()
    async with client.get(f"{two.url}/c/abcdEFGH") as answer:
        assert answer.status == 200  # of a cell, which says what it says of links that lead nowhere
    await two.map.settle(organization_id, "a")
    await two.map.moving(organization_id, "b")

    async def is_refused() -> bool:
        async with client.get(f"{two.url}/c/{os.urandom(4).hex()}") as answer:
            return answer.status == 503 and answer.headers["Retry-After"] == "5"

    await until(is_refused, "the map was read", every=0.1)
    async with client.get(f"{two.url}/numbers", headers=bearer(token)) as answer:
        assert answer.status == 200
    for channel, status in (("payments", 503), ("chatapp", 200)):  # a payment waits nowhere but at its provider
        async with client.post(f"{two.url}/v2/callbacks/{channel}/bridge", data=b"signed") as answer:
            assert answer.status == status


async def test_a_cell_whose_database_is_away_is_waited_for_by_nobody_whose_cell_is_known(
    two: Two, client: aiohttp.ClientSession
) -> None:
    _, token = await two.a.organization()
    _, there = await two.b.organization()
    async with client.get(f"{two.url}/numbers", headers=bearer(there)) as answer:
        assert answer.headers["X-From"] == "b"
    with socket.socket() as silent:  # takes connections, and says nothing
        silent.bind(("127.0.0.1", free_port()))
        silent.listen()
        host, port = silent.getsockname()
        two.urls["CELL_B"] = f"postgresql://nobody@{host}:{port}/nowhere"
        await two.map.add(cell_of(two, "b", media="moved"))  # the map has something new of it: it is opened anew

        async def unknown_is_not_said() -> bool:
            async with client.get(f"{two.url}/numbers", headers=unknown()) as answer:
                return answer.status == 503

        await until(unknown_is_not_said, "the cell is away", every=0.5)
        async with client.get(f"{two.url}/numbers", headers=bearer(there)) as answer:
            assert answer.headers["X-From"] == "b"  # as far as anybody knows
        async with client.get(f"{two.url}/numbers", headers=bearer(token)) as answer:
            assert answer.headers["X-From"] == "a"


async def test_a_service_that_is_away_is_503_to_its_own_and_no_page_less_for_all(
    two: Two, client: aiohttp.ClientSession
) -> None:
    _, token = await two.a.organization()
    await two.a.stop()
    async with client.get(f"{two.url}/numbers", headers=bearer(token)) as answer:
        assert (answer.status, answer.headers["Retry-After"]) == (503, "5")
        assert (await answer.json())["type"] == "https://api.example.com/problems/service-unavailable"
    for number in range(8):
        async with client.get(f"{two.url}/docs/{number}", headers={"X-Forwarded-For": f"203.0.113.{number}"}) as answer:
            assert answer.headers["X-From"] == "b"


async def test_a_service_that_says_nothing_holds_up_its_own_alone(
    two: Two, client: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, token = await two.a.organization()
    _, there = await two.b.organization()
    never = asyncio.Event()

    async def silent(request: web.BaseRequest) -> web.StreamResponse:
        await never.wait()
        return web.Response()

    two.a.answers = silent
    monkeypatch.setattr(forwarding, "READ_PATIENCE", 0.3)
    monkeypatch.setattr(entry, "CALLBACK_PATIENCE", 0.3)
    async with client.get(f"{two.url}/numbers", headers=bearer(token)) as answer:
        assert (answer.status, answer.headers["Retry-After"]) == (503, "5")
    async with client.get(f"{two.url}/numbers", headers=bearer(there)) as answer:
        assert answer.headers["X-From"] == "b"
    async with client.post(f"{two.url}/v2/callbacks/sms/smpp", data=b"signed") as answer:
        assert answer.status == 503  # the provider sends it again
    assert two.b.targets == ["/numbers", "/v2/callbacks/sms/smpp"]
    async with client.get(f"{two.url}/docs") as answer:
        assert answer.headers["X-From"] == "b"


async def test_what_a_cell_says_unasked_is_nobodys_answer_and_what_is_no_answer_is_none(
    two: Two, client: aiohttp.ClientSession
) -> None:
    _, token = await two.a.organization()
    rests, spoke = asyncio.Event(), asyncio.Event()
    ok = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n"
    by_path = {
        b"/early": b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + ok + b"own",
        b"/upgraded": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",
        b"/odd": b"HTTP/1.1 099 Odd\r\nContent-Length: 3\r\n\r\nodd",
    }

    async def cell(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                path = (await reader.readuntil(b"\r\n\r\n")).split()[1]
                writer.write(by_path.get(path, ok + b"own"))
                if path == b"/late":
                    await rests.wait()
                    writer.write(b"HTTP/1.1 408 Late\r\nContent-Length: 3\r\n\r\nnot")
                    spoke.set()
        writer.close()

    await two.a.stop()
    async with await asyncio.start_server(cell, "127.0.0.1", two.a.port):

        async def said(path: str) -> tuple[int, bytes]:
            async with client.get(two.url + path, headers=bearer(token)) as answer:
                return answer.status, (await answer.read())[:3]

        assert await said("/late") == (200, b"own")
        rests.set()
        await spoke.wait()
        async with client.get(f"{two.url}/healthz") as answer:  # by then it has heard of it
            assert answer.status == 200
        for _ in range(3):
            assert await said("/numbers") == (200, b"own")
        assert await said("/early") == (200, b"own")
        for path in ("/upgraded", "/odd"):
            assert (await said(path))[0] == 503
        assert await said("/numbers") == (200, b"own")


async def test_a_head_is_a_head_and_the_connection_goes_on(two: Two, client: aiohttp.ClientSession) -> None:
    _, token = await two.a.organization()

    async def long(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=b"x" * 200_000)

    two.a.answers = long
    for _ in range(2):
        async with client.head(f"{two.url}/numbers", headers=bearer(token)) as answer:
            assert (answer.status, answer.headers["Content-Length"]) == (200, "200000")
            assert await answer.read() == b""
    reader, writer = await asyncio.open_connection("127.0.0.1", two.port)
    writer.write(f"GET /numbers HTTP/1.0\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
    async with asyncio.timeout(60):
        assert (await reader.read()).endswith(b"x" * 200_000)
    writer.close()


async def has_account(cell: StubCell, email: str) -> None:
    organization_id, _ = await cell.organization()
    await cell.session.execute(
        "insert into accounts (organization_id, id, name, email, email_key, role, extra_scopes, status, updated_at)"
        " values ($1, 'acc', 'Ana', $2, lower($2), 'owner', '{}', 'active', now())",
        organization_id, email,
    )  # fmt: skip


def signing_in(right: bytes) -> Answer:
    async def signs_in(request: web.BaseRequest) -> web.StreamResponse:
        said = await request.read()
        return web.json_response({}, status=201 if b'"' + right + b'"' in said else 401)

    return signs_in


async def test_who_signs_in_in_vain_learns_the_same_whether_or_not_there_is_an_account(
    two: Two, client: aiohttp.ClientSession
) -> None:
    await has_account(two.a, "Ana@a.example")

    async def tried(email: str, password: str = "wrong") -> tuple[int, str | None]:
        body = {"email": email, "password": password}
        async with client.post(f"{two.url}/v2/sessions", json=body) as answer:
            return answer.status, (await answer.json()).get("detail")

    two.a.answers = two.b.answers = signing_in(b"right")
    assert [await tried(" ANA@a.example"), await tried("nobody@a.example")] == [(401, None)] * 2
    assert await tried("ana@a.example", "right") == (201, None)
    assert two.a.targets.count("/v2/sessions") >= 2

    async def nobody_is_told() -> bool:
        return (await tried("nobody@a.example"))[0] == 503

    async def same_for_all() -> None:
        refused, right = await tried("ana@a.example"), await tried("ana@a.example", "right")
        assert (refused, right) == (await tried("nobody@a.example"), (201, None))

    await two.b.stop()  # its database is there
    await until(nobody_is_told, "a service is away", every=0.2)
    await same_for_all()
    two.urls["CELL_B"] = f"postgresql://nobody@127.0.0.1:{free_port()}/nowhere"
    await two.map.add(cell_of(two, "b", media="moved"))
    await two.b.start()
    await until(nobody_is_told, "a database is away", every=0.2)
    await same_for_all()


async def test_an_address_that_two_cells_have_signs_in_where_its_password_is_right(
    two: Two, client: aiohttp.ClientSession
) -> None:
    """Else whoever makes an account in one cell keeps the user of another cell from signing in."""
    for cell, password in ((two.a, b"of-a"), (two.b, b"of-b")):
        await has_account(cell, "ana@a.example")
        cell.answers = signing_in(password)
    for password, status, cell_name in (("of-a", 201, "a"), ("of-b", 201, "b"), ("of-none", 401, None)):
        body = {"email": "ana@a.example", "password": password}
        async with client.post(f"{two.url}/v2/sessions", json=body) as answer:
            assert answer.status == status
            assert cell_name in (None, answer.headers["X-From"])


async def test_the_entry_is_ready_again_when_a_database_is_and_nobody_asks(
    two: Two, client: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def readiness() -> int:
        async with client.get(f"{two.url}/readyz") as answer:
            return answer.status

    async def away(*_: object) -> None:
        raise OSError

    with monkeypatch.context() as databases:
        databases.setattr(whereabouts, "having", away)
        async with client.get(f"{two.url}/numbers", headers=unknown()) as answer:
            assert answer.status == 503
        assert await readiness() == 503

    async def is_ready() -> bool:
        return await readiness() == 200

    await until(is_ready, "it is ready", every=0.2)
    for name in "ab":
        del two.urls[f"CELL_{name.upper()}"]  # the address of its database: the entry cannot know who is there
        await two.map.add(cell_of(two, name, media="moved"))

    async def is_not() -> bool:
        return await readiness() == 503

    await until(is_not, "no cell is known", every=0.2)


async def test_no_target_is_a_part_of_the_cells_host_or_another_one_for_the_cell(two: Two) -> None:
    for line, status, target in (
        ("OPTIONS * HTTP/1.1", 200, "/*"),
        ("GET http://other.example/docs HTTP/1.1", 200, "/docs"),
        ("GET /v2/admin#x HTTP/1.1", 404, None),
        ("GET /docs#x HTTP/1.1", 200, "/docs"),
    ):
        two.a.targets.clear()
        two.b.targets.clear()
        reader, writer = await asyncio.open_connection("127.0.0.1", two.port)
        writer.write(f"{line}\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        async with asyncio.timeout(60):
            answer = await reader.read()
        writer.close()
        assert int(answer.split()[1]) == status, line
        assert two.a.targets + two.b.targets == ([] if target is None else [target]), line


async def test_who_reads_large_answers_slowly_keeps_nobody_waiting_who_asks_for_little(
    two: Two, client: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forwarding, "PLACES_OF_CALLER", 1)
    _, token = await two.a.organization()

    async def large(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=b"x" * (32 * 1024 * 1024 if request.path == "/large" else 10))

    two.a.answers = large
    async with client.get(f"{two.url}/large", headers=bearer(token)) as unread:
        assert unread.status == 200
        async with client.get(f"{two.url}/small", headers=bearer(token)) as answer:
            assert (answer.status, await answer.read()) == (200, b"x" * 10)
        unread.close()


async def test_a_cell_that_takes_no_more_of_a_body_is_given_up(
    two: Two, client: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forwarding, "SILENT_SECONDS", 0.5)
    _, token = await two.a.organization()
    await two.a.stop()
    with (
        socket.socket() as stands_still
    ):  # as the kernel of a service that is stopped: it takes connections, and reads nothing
        stands_still.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        stands_still.bind(("127.0.0.1", two.a.port))
        stands_still.listen()
        async with client.post(
            f"{two.url}/v2/media", data=io.BytesIO(bytes(12 * 1024 * 1024)), headers=bearer(token)
        ) as answer:
            assert answer.status == 503


async def test_a_callback_comes_to_all_cells_and_one_that_is_none_to_a_single_one(
    two: Two, client: aiohttp.ClientSession
) -> None:
    async def verifies(request: web.BaseRequest) -> web.StreamResponse:
        return web.json_response({}, status=200 if await request.read() == b"signed" * 1000 else 401)

    two.a.answers = two.b.answers = verifies
    path = "/v2/callbacks/chatapp/bridge"
    for body, status, seen in ((b"signed" * 1000, 200, 2), (b"forged", 401, 3)):
        async with client.post(two.url + path, data=body) as answer:
            assert answer.status == status
        assert len(two.a.targets + two.b.targets) == seen

    # Whoever is not there, or has no database: the other one has it nevertheless, and the provider sends it again.
    async def unavailable(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=503)

    for failing, other in ((two.a, two.b), (two.b, two.a)):
        failing.answers = unavailable
        other.targets.clear()
        async with client.post(two.url + path, data=b"signed" * 1000) as answer:
            assert (answer.status, answer.headers["Retry-After"]) == (503, "5")
        assert other.targets == [path]
        failing.answers = verifies
    await two.b.stop()
    two.a.targets.clear()
    async with client.post(two.url + path, data=b"signed" * 1000) as answer:
        assert (answer.status, answer.headers["Retry-After"]) == (503, "5")
    assert two.a.targets == [path]


async def test_a_cell_that_leaves_the_map_is_not_waited_for_any_more(two: Two, client: aiohttp.ClientSession) -> None:
    await two.b.stop()

    async def taken() -> bool:
        async with client.post(f"{two.url}/v2/callbacks/chatapp/bridge", data=b"signed") as answer:
            return answer.status == 200

    assert not await taken()
    assert await two.map.remove("b", lost=True) == []
    await until(taken, "the map was read", every=0.1)


async def test_a_stranger_with_guessed_tokens_makes_no_cell_work_beyond_his_share_and_costs_nobody_else(
    two: Two, client: aiohttp.ClientSession
) -> None:
    _, token = await two.b.organization()
    refill, capacity = LIMITS["failed"]
    before = asked("a")
    loop = asyncio.get_running_loop()
    began = loop.time()
    statuses: dict[int, int] = {}
    stranger = aiohttp.TCPConnector(local_addr=("127.0.0.77", 0))
    async with aiohttp.ClientSession(connector=stranger) as guessing:

        async def guess() -> None:
            for _ in range(20):
                headers = {"Authorization": "Bearer " + mint_token("svc_live_", os.urandom)}
                async with guessing.get(f"{two.url}/numbers", headers=headers) as answer:
                    statuses[answer.status] = statuses.get(answer.status, 0) + 1

        guesses = asyncio.gather(*(guess() for _ in range(20)))
        async with client.get(f"{two.url}/numbers", headers=bearer(token)) as answer:
            assert answer.headers["X-From"] == "b"
        await guesses
        most = capacity + refill * (loop.time() - began) + 20  # as many as began together
        assert 0 < asked("a") - before <= most
        assert statuses[429] > 0
        # Without a form, and the same again: nobody is asked at all.
        before = asked("a")
        again = unknown()["Authorization"]
        for guess_again in ("Bearer svc_live_short", "Basic x", again, again):
            async with client.get(f"{two.url}/numbers", headers={"Authorization": guess_again}) as answer:
                assert answer.status == 200  # of the cell, which refuses it
        assert asked("a") - before == 1


async def test_what_each_cell_has_for_itself_is_not_reached(two: Two, client: aiohttp.ClientSession) -> None:
    for path in ("/v2/%61dmin", "/v2/admin", "/v2/admin/organizations"):
        async with client.get(two.url + path, headers={"Authorization": "Bearer administrator"}) as answer:
            assert (answer.status, (await answer.json())["code"]) == (404, "ROUTE_NOT_FOUND")
    async with client.get(f"{two.url}/v2/ops/numbers", headers={"Authorization": "Bearer administrator"}) as answer:
        assert answer.status == 401
    for path in ("/healthz", "/readyz"):
        async with client.get(two.url + path) as answer:
            assert (answer.status, await answer.json()) == (200, {"status": "ok"})
    assert two.a.targets + two.b.targets == []


class Places:
    """Where a test says that cells are."""

    def __init__(self) -> None:
        self.urls: dict[str, str] = {}
        self.missed: list[str] = []

    async def start(self) -> None:
        return

    async def stop(self) -> None:
        return

    def url(self, cell: Cell) -> str | None:
        return self.urls.get(cell.name)

    def not_reached(self, cell: Cell, url: str) -> None:
        self.missed.append(cell.name)

    def tell_left(self, told: Callable[[str], None]) -> None:
        self.left = told


async def test_a_cell_is_asked_where_it_is_at_the_moment_and_is_away_while_it_is_nowhere(
    cell_urls: dict[str, str], client: aiohttp.ClientSession
) -> None:
    places = Places()
    async with between(dict(cell_urls), find_places=lambda _: places) as two:
        _, token = await two.a.organization()
        url = f"{two.url}/numbers"
        async with client.get(url, headers=bearer(token)) as answer:
            assert (answer.status, answer.headers["Retry-After"]) == (503, "5")
        async with client.get(f"{two.url}/docs") as answer:
            assert answer.status == 503
        places.urls["a"] = two.b.url  # not where the map has it
        async with client.get(url, headers=bearer(token)) as answer:
            assert (answer.status, answer.headers["X-From"]) == (200, "b")
        async with client.get(f"{two.url}/docs") as answer:
            assert (answer.status, answer.headers["X-From"]) == (200, "b")
        places.urls["a"] = f"http://127.0.0.1:{free_port()}"
        async with client.get(url, headers=bearer(token)) as answer:
            assert (answer.status, places.missed) == (503, ["a"])


async def test_without_a_map_there_is_one_cell(cell_urls: dict[str, str], client: aiohttp.ClientSession) -> None:
    places = Places()
    variables = {"RECADO_DATABASE_URL": cell_urls["CELL_A"]}
    async with between(dict(cell_urls), find_places=lambda _: places, variables=variables, mapped=False) as two:
        places.urls["main"] = two.a.url
        _, token = await two.a.organization()
        async with client.get(f"{two.url}/numbers", headers=bearer(token)) as answer:
            assert (answer.status, answer.headers["X-From"]) == (200, "a")
        async with client.get(f"{two.url}/readyz") as answer:
            assert answer.status == 200


async def test_what_is_under_way_to_a_machine_that_a_cell_left_is_broken_off(
    cell_urls: dict[str, str], client: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forwarding, "PLACES_OF_CALLER", 2)
    places, never = Places(), asyncio.Event()

    async def frozen(request: web.BaseRequest) -> web.StreamResponse:
        if request.method == "GET":
            response = web.StreamResponse()
            await response.prepare(request)
            await response.write(b"begun")
        await never.wait()
        return web.Response()

    async with between(dict(cell_urls), find_places=lambda _: places) as two, asyncio.timeout(60):
        _, token = await two.a.organization()
        two.a.answers = frozen
        left = places.urls["a"] = two.a.url

        async def posted() -> int:
            async with client.post(f"{two.url}/messages", headers=bearer(token), data=b"{}") as answer:
                assert answer.headers["Retry-After"] == "5"
                return answer.status

        async with client.get(f"{two.url}/numbers", headers=bearer(token)) as reading:
            assert await reading.content.readexactly(5) == b"begun"
            under_way = [asyncio.create_task(posted()) for _ in range(3)]  # of which one waits for its turn
            await until(lambda: len(two.a.targets) == 3, "two of them are there")
            places.urls["a"] = two.b.url
            places.left(left)
            assert await asyncio.gather(*under_way) == [503] * 3
            with pytest.raises(aiohttp.ClientPayloadError):
                await reading.read()
        assert len(two.a.targets) == 3
        async with client.get(f"{two.url}/numbers", headers=bearer(token)) as answer:
            assert (answer.status, answer.headers["X-From"], places.missed) == (200, "b", [])
