"""Repeats of a request under one key (C6.2)."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from tests.captured import capture_logs
from yarl import URL

from recado.domain.core.errors import Problem, Unavailable
from recado.http.api.call import Call, IdempotencyKey
from recado.http.api.models import ApiModel
from recado.http.api.route import Idempotency
from recado.http.bodies.body_reading import LARGE
from recado.http.wire.deadlines import SLOW_SECONDS, WRITE_SECONDS
from recado.http.wire.reply import Reply


class Thing(ApiModel):
    name: str = "x"
    size: int = 1


KEY = {"Idempotency-Key": "abc"}


class Counting:
    """A handler that counts how often it ran, and fails as long as it is told to."""

    def __init__(self) -> None:
        self.ran = 0
        self.failure: Exception | None = None

    async def __call__(self, call: Call) -> Reply:
        self.ran += 1
        if self.failure is not None:
            raise self.failure
        return Reply(201, {"n": self.ran, "replayed": False})


async def test_a_repeat_gets_the_kept_answer_and_says_so(serve: Any, thing: Any) -> None:
    handler = Counting()
    api = await serve(thing("POST", handler=handler, body=Thing, idempotency=Idempotency.ACCEPTED))
    async with api.client.post("/things", json={"name": "a", "size": 2}, headers=KEY) as first:
        assert (first.status, await first.json()) == (201, {"n": 1, "replayed": False})
        assert "Idempotency-Replayed" not in first.headers
    # The same document in another order and spacing is the same request.
    body = b'{ "size": 2,\n "name": "a" }'
    async with api.client.post("/things", data=body, headers={**KEY, "Content-Type": "application/json"}) as again:
        assert (again.status, await again.json()) == (201, {"n": 1, "replayed": True})
        assert again.headers["Idempotency-Replayed"] == "true"
    assert handler.ran == 1


@pytest.mark.parametrize("large_first", [False, True])
async def test_a_document_that_white_space_makes_large_is_the_same_request(
    serve: Any, thing: Any, large_first: bool
) -> None:
    handler = Counting()
    api = await serve(thing("POST", handler=handler, body=Thing, idempotency=Idempotency.ACCEPTED))
    small = b'{"name":"a","size":2}'
    large = small + b" " * LARGE
    for body in (large, small) if large_first else (small, large):
        async with api.client.post("/things", data=body, headers={**KEY, "Content-Type": "application/json"}) as answer:
            assert answer.status == 201
    assert handler.ran == 1


async def test_without_a_key_every_request_runs(serve: Any, thing: Any) -> None:
    handler = Counting()
    api = await serve(thing("POST", handler=handler, body=Thing, idempotency=Idempotency.ACCEPTED))
    for _ in range(2):
        async with api.client.post("/things", json={}) as answer:
            assert answer.status == 201
    assert (handler.ran, api.idempotency.rows) == (2, {})


@pytest.mark.parametrize(
    ("path", "body"), [("/things/a", {"name": "b"}), ("/things/a?x=1", {}), ("/things/a", {"name": "x ", "size": 1})]
)
async def test_another_request_under_the_same_key_is_refused(serve: Any, thing: Any, path: str, body: Any) -> None:
    api = await serve(thing("POST", "/things/{id}", handler=Counting(), body=Thing, idempotency=Idempotency.ACCEPTED))
    async with api.client.post("/things/a", json={}, headers=KEY) as answer:
        assert answer.status == 201
    async with api.client.post(path, json=body, headers=KEY) as answer:
        assert answer.status == 422
        assert (await answer.json(content_type=None))["code"] == "IDEMPOTENCY_KEY_REUSED"


async def test_the_key_belongs_to_its_path_environment_and_organization_not_to_the_credential(
    serve: Any, thing: Any
) -> None:
    handler = Counting()
    api = await serve(thing("POST", "/things/{id}", handler=handler, body=Thing, idempotency=Idempotency.ACCEPTED))
    rotated = api.as_principal(actor_id="key_2")
    for path, headers, ran in (
        ("/things/a", {}, 1),
        ("/things/a", rotated, 1),
        ("/things/b", {}, 2),
        ("/things/a", api.as_principal(env="test"), 3),
        ("/things/a", api.as_principal(organization_id="org_2"), 4),
    ):
        async with api.client.post(path, json={}, headers={**KEY, **headers}) as answer:
            assert answer.status == 201
        assert handler.ran == ran


@pytest.mark.parametrize("spelling", ["/things/%61_b", "/things/a%5Fb", "/things/a%5fb"])
async def test_another_spelling_of_the_same_path_is_the_same_request(serve: Any, thing: Any, spelling: str) -> None:
    handler = Counting()
    api = await serve(thing("POST", "/things/{id}", handler=handler, body=Thing, idempotency=Idempotency.ACCEPTED))
    for path in ("/things/a_b", spelling):
        url = URL(f"http://127.0.0.1:{api.server.port}{path}", encoded=True)
        async with api.client.post(url, json={}, headers=KEY) as answer:
            assert answer.status == 201
    assert handler.ran == 1


async def test_a_slash_inside_an_id_does_not_make_it_another_path(serve: Any, thing: Any) -> None:
    handler = Counting()
    api = await serve(
        thing("POST", "/things/{id}", handler=handler, body=Thing, idempotency=Idempotency.ACCEPTED),
        thing("POST", "/things/{id}/parts", handler=handler, body=Thing, idempotency=Idempotency.ACCEPTED),
    )
    for path in ("/things/a/parts", "/things/a%2Fparts"):
        url = URL(f"http://127.0.0.1:{api.server.port}{path}", encoded=True)
        async with api.client.post(url, json={}, headers=KEY) as answer:
            assert answer.status == 201
    assert handler.ran == 2


async def test_a_repeat_while_the_first_still_runs_is_told_to_wait(serve: Any, thing: Any) -> None:
    entered, leave = asyncio.Event(), asyncio.Event()

    async def slow(_: Call) -> Reply:
        entered.set()
        await leave.wait()
        return Reply(200, {"n": 1})

    api = await serve(thing("POST", handler=slow, idempotency=Idempotency.ACCEPTED))
    first = asyncio.ensure_future(api.client.post("/things", headers=KEY))
    await entered.wait()
    async with api.client.post("/things", headers=KEY) as answer:
        assert (answer.status, answer.headers["Retry-After"]) == (409, "1")
        assert (await answer.json(content_type=None))["code"] == "IDEMPOTENCY_IN_PROGRESS"
    leave.set()
    async with await first as answer:
        assert answer.status == 200


async def test_a_key_is_held_from_when_the_body_has_come(serve: Any, thing: Any) -> None:
    api = await serve(thing("POST", body=Thing, idempotency=Idempotency.ACCEPTED))
    begun = api.clock.now()
    reader, writer = await api.connect()
    content = b"Content-Type: application/json\r\nContent-Length: 13\r\nIdempotency-Key: a\r\n\r\n"
    writer.write(
        b"POST /things HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer good\r\nExpect: 100-continue\r\n" + content
    )
    assert (await reader.readline()).split()[1] == b"100"
    await api.clock.advance(20)
    writer.write(b'{"name": "a"}')
    assert (await reader.readuntil(b"X-Request-Id")).startswith(b"\r\nHTTP/1.1 200")
    assert api.idempotency.begun == [begun + timedelta(seconds=20)]


@pytest.mark.parametrize("failure", [Problem("INVALID_STATE", "No."), RuntimeError("no"), Unavailable()])
async def test_every_error_frees_the_key(serve: Any, thing: Any, failure: Exception) -> None:
    handler = Counting()
    handler.failure = failure
    api = await serve(thing("POST", handler=handler, body=Thing, idempotency=Idempotency.ACCEPTED))
    with capture_logs():
        async with api.client.post("/things", json={"name": "a"}, headers=KEY) as answer:
            assert answer.status >= 400
    assert api.idempotency.rows == {}
    handler.failure = None
    async with api.client.post("/things", json={"name": "corrected"}, headers=KEY) as answer:
        assert (answer.status, handler.ran) == (201, 2)


async def test_a_body_that_does_not_fit_frees_the_key(serve: Any, thing: Any) -> None:
    handler = Counting()
    api = await serve(thing("POST", handler=handler, body=Thing, idempotency=Idempotency.ACCEPTED))
    async with api.client.post("/things", json={"size": "x"}, headers=KEY) as answer:
        assert answer.status == 422
    async with api.client.post("/things", json={"size": 1}, headers=KEY) as answer:
        assert answer.status == 201


@pytest.mark.parametrize("key", ["", "k" * 256, "tab\there", "caf\u00e9"])
async def test_a_key_of_another_form_is_refused(serve: Any, thing: Any, key: str) -> None:
    api = await serve(thing("POST", idempotency=Idempotency.ACCEPTED))
    async with api.client.post("/things", headers={"Idempotency-Key": key}) as answer:
        assert (answer.status, (await answer.json(content_type=None))["code"]) == (400, "IDEMPOTENCY_KEY_INVALID")


async def test_an_operation_that_binds_its_key_gets_both_hashes(serve: Any, thing: Any) -> None:
    seen: list[IdempotencyKey | None] = []

    async def handle(call: Call) -> Reply:
        seen.append(call.idempotency)
        return Reply(201)

    api = await serve(thing("POST", handler=handle, body=Thing, idempotency=Idempotency.BOUND))
    for key, body in (("a", {"size": 1}), ("a", {"size": 2}), ("b", {"size": 1}), (None, {})):
        headers = {} if key is None else {"Idempotency-Key": key}
        async with api.client.post("/things", json=body, headers=headers):
            pass
    first, changed, other, none = seen
    assert none is None
    assert first is not None
    assert changed is not None
    assert other is not None
    assert len(first.key_hash) == len(first.fingerprint) == 32
    assert (changed.key_hash == first.key_hash, changed.fingerprint == first.fingerprint) == (True, False)
    assert (other.key_hash == first.key_hash, other.fingerprint == first.fingerprint) == (False, True)
    assert api.idempotency.rows == {}


async def test_what_is_kept_can_differ_from_what_is_shown_and_is_rendered_for_each_caller(
    serve: Any, thing: Any
) -> None:
    def shown(call: Call, body: dict[str, Any]) -> dict[str, Any]:
        return {"to": body["to"] if call.can("pii:full") else "***"}

    async def handle(call: Call) -> Reply:
        return Reply(201, {**shown(call, {"to": "+5511"}), "token": "secret"}, stored={"to": "+5511"})

    async def replay(call: Call, status: int, body: Any) -> Reply:
        return Reply(status, shown(call, body))

    api = await serve(thing("POST", handler=handle, idempotency=Idempotency.ACCEPTED, replay=replay))
    async with api.client.post("/things", headers=KEY) as answer:
        assert await answer.json() == {"to": "***", "token": "secret"}
    async with api.client.post("/things", headers=KEY) as answer:
        assert await answer.json() == {"to": "***"}
    full = api.as_principal(scopes=frozenset({"things:write", "pii:full"}))
    async with api.client.post("/things", headers={**KEY, **full}) as answer:
        assert await answer.json() == {"to": "+5511"}
    assert b"secret" not in repr(api.idempotency.rows).encode()


async def test_work_that_is_done_is_answered_also_when_its_answer_cannot_be_kept(serve: Any, thing: Any) -> None:
    api = await serve(thing("POST", idempotency=Idempotency.ACCEPTED))

    async def away(*_: Any) -> None:
        raise Unavailable()

    api.idempotency.finish = away
    with capture_logs() as logs:
        async with api.client.post("/things", headers=KEY) as answer:
            assert answer.status == 200
    assert [entry["event"] for entry in logs] == ["idempotency_answer_not_kept"]


async def test_a_rotation_whose_answer_is_neither_kept_nor_taken_back_is_not_answered(serve: Any, thing: Any) -> None:
    api = await serve(thing("POST", idempotency=Idempotency.ACCEPTED, rotates=True))

    async def away(*_: Any) -> None:
        raise Unavailable()

    api.idempotency.finish = api.idempotency.take_back = away
    with capture_logs() as logs:
        async with api.client.post("/things", headers=KEY) as answer:
            assert answer.status == 503
    events = [entry["event"] for entry in logs]
    assert events[:2] == ["idempotency_answer_not_kept", "idempotency_answer_not_taken_back"]


async def test_a_key_that_cannot_be_freed_does_not_hide_the_answer(serve: Any, thing: Any) -> None:
    handler = Counting()
    handler.failure = Problem("INVALID_STATE", "No.")
    api = await serve(thing("POST", handler=handler, idempotency=Idempotency.ACCEPTED))

    async def away(*_: Any) -> None:
        raise Unavailable()

    api.idempotency.release = away
    with capture_logs() as logs:
        async with api.client.post("/things", headers=KEY) as answer:
            assert answer.status == 409
    assert "idempotency_key_not_released" in [entry["event"] for entry in logs]


class Slow:
    """A handler that runs until it is let go."""

    def __init__(self) -> None:
        self.entered, self.leave = asyncio.Event(), asyncio.Event()

    async def __call__(self, _: Call) -> Reply:
        self.entered.set()
        await self.leave.wait()
        return Reply(200, {"ok": True})


async def test_a_request_without_an_answer_in_time_frees_its_key(serve: Any, thing: Any) -> None:
    handler = Slow()
    api = await serve(thing("POST", handler=handler, idempotency=Idempotency.ACCEPTED))
    first = asyncio.ensure_future(api.client.post("/things", headers=KEY))
    await handler.entered.wait()
    await api.clock.advance(30)
    async with await first as answer:
        assert answer.status == 503
        assert answer.headers["Retry-After"]
    assert api.idempotency.rows == {}


@pytest.mark.parametrize(("slow", "seconds"), [(False, WRITE_SECONDS), (True, SLOW_SECONDS)])
async def test_a_key_is_held_longer_than_its_answer_may_take(
    serve: Any, thing: Any, slow: bool, seconds: float
) -> None:
    api = await serve(thing("POST", idempotency=Idempotency.ACCEPTED, slow=slow))
    async with api.client.post("/things", headers=KEY) as answer:
        assert answer.status == 200
    assert [lock.total_seconds() - seconds for lock in api.idempotency.locks] == [30]


async def test_a_key_that_is_claimed_too_late_for_its_request_is_freed(serve: Any, thing: Any) -> None:
    api = await serve(thing("POST", idempotency=Idempotency.ACCEPTED))
    begin, claimed = api.idempotency.begin, asyncio.Event()

    async def begin_and_hang(*arguments: Any, **lock: Any) -> Any:
        await begin(*arguments, **lock)
        claimed.set()
        await asyncio.Event().wait()

    api.idempotency.begin = begin_and_hang
    first = asyncio.ensure_future(api.client.post("/things", headers=KEY))
    await claimed.wait()
    await api.clock.advance(30)
    async with await first as answer:
        assert answer.status == 503
    assert api.idempotency.rows == {}


async def test_an_answer_that_is_kept_too_late_for_its_request_is_kept(serve: Any, thing: Any) -> None:
    api = await serve(thing("POST", idempotency=Idempotency.ACCEPTED))
    finish, asked, back = api.idempotency.finish, asyncio.Event(), asyncio.Event()

    async def finish_later(*arguments: Any) -> None:
        asked.set()
        await back.wait()
        await finish(*arguments)

    api.idempotency.finish = finish_later
    first = asyncio.ensure_future(api.client.post("/things", headers=KEY))
    await asked.wait()
    await api.clock.advance(30)
    async with await first as answer:
        assert answer.status == 503
    back.set()
    await api.clock.settle()
    async with await api.client.post("/things", headers=KEY) as answer:
        assert (answer.status, answer.headers["Idempotency-Replayed"]) == (200, "true")


async def show_contact(_: Call) -> Reply:
    return Reply(201, {"phone": "+5511"}, revision=1, subject_id="cnt_1")


async def test_a_repeat_whose_answer_went_with_its_contact_is_refused_and_does_nothing(serve: Any, thing: Any) -> None:
    api = await serve(thing("POST", handler=show_contact, idempotency=Idempotency.ACCEPTED))
    api.idempotency.erased.add("cnt_1")
    async with api.client.post("/things", headers=KEY) as answer:
        assert answer.status == 201
    for _ in range(2):
        async with api.client.post("/things", headers=KEY) as answer:
            problem = await answer.json(content_type=None)
            assert (answer.status, problem["code"], problem["meta"]) == (409, "CONFLICT", {"contactId": "cnt_1"})


async def test_an_operation_can_answer_a_repeat_whose_answer_went_with_its_contact(serve: Any, thing: Any) -> None:
    async def what_is_left(call: Call, status: int) -> Reply:
        return Reply(status, {"phone": "***"})

    api = await serve(thing("POST", handler=show_contact, idempotency=Idempotency.ACCEPTED, replay_erased=what_is_left))
    api.idempotency.erased.add("cnt_1")
    async with api.client.post("/things", headers=KEY) as answer:
        assert "Idempotency-Replayed" not in answer.headers
    async with api.client.post("/things", headers=KEY) as answer:
        assert (answer.status, await answer.json()) == (201, {"phone": "***"})
        assert answer.headers["Idempotency-Replayed"] == "true"
