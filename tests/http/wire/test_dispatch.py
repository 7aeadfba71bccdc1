"""The steps before a handler: what each refuses, and in which order (C2.6)."""

import asyncio
import re
from datetime import UTC, datetime
from ipaddress import ip_network
from typing import Any

import pytest
from pydantic import Field
from tests.captured import capture_logs
from tests.http.wire.conftest import LIMITS
from tests.http.wire.test_server import answer_of

from recado.domain.core.errors import Problem, Unavailable, not_found
from recado.http.api.call import Call
from recado.http.api.models import ApiModel, PatchModel, QueryInt, QueryModel
from recado.http.api.route import Access, Idempotency
from recado.http.server import ServerPart
from recado.http.wire.reply import Reply, StreamReply

ID = "thg_" + "0" * 21


class Thing(ApiModel):
    name: str = Field(min_length=1, max_length=5)
    size: int = 1


class Letter(ApiModel):
    channel: str
    text: str


class Filter(QueryModel):
    limit: QueryInt = Field(default=50, ge=1, le=200)
    status: list[str] = Field(default_factory=list)


async def test_an_answer_carries_its_request_id_and_is_not_stored(serve: Any, thing: Any) -> None:
    api = await serve(thing())
    async with api.client.get("/things") as answer:
        assert answer.status == 200
        assert await answer.json() == {"ok": True}
        assert re.fullmatch(r"req_[0-9A-Za-z]{21}", answer.headers["X-Request-Id"])
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["Content-Type"] == "application/json"
        assert answer.headers["Date"] == "Sun, 01 Mar 2026 12:00:00 GMT"


async def test_a_credential_is_looked_up_for_the_network_that_it_comes_from(serve: Any, thing: Any) -> None:
    """So that the look-ups of a stranger who guesses take no place of the others'."""
    api = await serve(thing(), trusted_proxies=(ip_network("127.0.0.1"),))
    for address in ("192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::2"):
        headers = {"Authorization": "Bearer guessed", "X-Forwarded-For": address}
        assert (await api.client.get("/things", headers=headers)).status == 401
    assert api.credentials.asked_for == ["?192.0.2.1", "?192.0.2.2", "?2001:db8::", "?2001:db8::"]


async def test_a_problem_says_everything_that_its_form_asks_for(serve: Any, thing: Any) -> None:
    async def refuse(_: Call) -> Reply:
        raise Problem("INVALID_STATE", "It is closed.", meta={"status": "closed"}, headers={"Retry-After": "3"})

    api = await serve(thing(handler=refuse))
    async with api.client.get("/things?name=Maria") as answer:
        assert answer.status == 409
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert answer.headers["Retry-After"] == "3"
        assert await answer.json(content_type=None) == {
            "type": "https://api.example.com/problems/invalid-state",
            "title": "The state of the resource does not allow this",
            "status": 409,
            "detail": "It is closed.",
            "instance": "/things",
            "code": "INVALID_STATE",
            "kind": "CONFLICT",
            "requestId": answer.headers["X-Request-Id"],
            "meta": {"status": "closed"},
        }


async def code(answer: Any) -> str:
    body = await answer.json(content_type=None)
    assert body["status"] == answer.status
    return body["code"]


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"Authorization": ""}, "UNAUTHORIZED"),
        ({"Authorization": "Basic Z29vZA=="}, "UNAUTHORIZED"),
        ({"Authorization": "Bearer "}, "UNAUTHORIZED"),
        ({"Authorization": "Bearer nobody"}, "UNAUTHORIZED"),
        ({"Authorization": "Bearer old"}, "API_KEY_EXPIRED"),
        ({"Authorization": "Bearer caf\u00e9"}, "UNAUTHORIZED"),
    ],
)
async def test_without_a_valid_credential_the_answer_is_401_with_a_challenge(
    serve: Any, thing: Any, headers: dict[str, str], expected: str
) -> None:
    api = await serve(thing())
    api.credentials.bad["old"] = Problem("API_KEY_EXPIRED", "The key has expired.")
    async with api.client.get("/things", headers=headers) as answer:
        assert answer.status == 401
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        assert "RateLimit" not in answer.headers
        assert await code(answer) == expected


async def test_the_scheme_of_a_credential_is_read_without_case(serve: Any, thing: Any) -> None:
    api = await serve(thing())
    async with api.client.get("/things", headers={"Authorization": "bearer good"}) as answer:
        assert answer.status == 200


async def test_what_is_wrong_first_in_the_order_of_checks_is_answered(serve: Any, thing: Any) -> None:
    async def load(call: Call) -> str:
        if call.path["id"].endswith("9"):
            raise Problem("NOT_FOUND", "No such thing.")
        return "found"

    async def handle(call: Call) -> Reply:
        call.check_revision(7)
        return Reply(200, {"resource": call.resource})

    api = await serve(
        thing(
            "POST",
            "/things/{id}/act",
            handler=handle,
            body=Thing,
            idempotency=Idempotency.REQUIRED,
            versioned=True,
            path_ids={"id": "thg_"},
            load=load,
            rate_class="tiny",
        )
    )
    path, missing = f"/things/{ID}/act", f"/things/{ID[:-1]}9/act"
    everything_wrong: dict[str, Any] = {"data": "{", "headers": {"Content-Type": "text/plain", "If-Match": '"6"'}}

    async def ask(path: str, principal: dict[str, Any] | None, **request: Any) -> str:
        headers = (
            {} if principal is None else api.as_principal(actor_id=f"key_{len(api.credentials.known)}", **principal)
        )
        request["headers"] = {**request.get("headers", {}), **headers}
        async with api.client.post(path, **request) as answer:
            return await code(answer) if answer.status != 200 else "OK"

    nobody = {**everything_wrong, "headers": {**everything_wrong["headers"], "Authorization": "Bearer x"}}
    assert await ask("/things/x/act", None, **nobody) == "UNAUTHORIZED"
    no_scope = {"scopes": frozenset[str](), "suspended": True}
    assert await ask("/things/x/act", no_scope, **everything_wrong) == "SCOPE_REQUIRED"
    assert await ask("/things/x/act", {"suspended": True}, **everything_wrong) == "ORGANIZATION_SUSPENDED"
    assert await ask("/things/x/act", {}, **everything_wrong) == "IDEMPOTENCY_KEY_REQUIRED"
    everything_wrong["headers"]["Idempotency-Key"] = "k" * 256
    assert await ask("/things/x/act", {}, **everything_wrong) == "IDEMPOTENCY_KEY_INVALID"
    everything_wrong["headers"]["Idempotency-Key"] = "k"
    assert await ask("/things/x/act", {}, **everything_wrong) == "UNSUPPORTED_MEDIA_TYPE"
    everything_wrong["headers"]["Content-Type"] = "application/json"
    assert await ask("/things/x/act", {}, **everything_wrong) == "MALFORMED_JSON"
    everything_wrong["data"] = '{"name": ""}'
    assert await ask("/things/x/act", {}, **everything_wrong) == "NOT_FOUND"
    assert await ask(missing, {}, **everything_wrong) == "NOT_FOUND"
    assert await ask(path, {}, **everything_wrong) == "VALIDATION_ERROR"
    everything_wrong["data"] = '{"name": "a"}'
    assert await ask(path, {}, **everything_wrong) == "VERSION_MISMATCH"
    everything_wrong["headers"]["If-Match"] = '"7"'
    assert await ask(path, {}, **everything_wrong) == "OK"


async def test_an_exhausted_bucket_is_told_before_a_missing_scope(serve: Any, thing: Any) -> None:
    api = await serve(thing(rate_class="tiny"))
    headers = api.as_principal(scopes=frozenset())
    codes = []
    for _ in range(3):
        async with api.client.get("/things", headers=headers) as answer:
            codes.append(await code(answer))
    assert codes == ["SCOPE_REQUIRED", "SCOPE_REQUIRED", "RATE_LIMITED"]


async def test_a_missing_scope_is_named(serve: Any, thing: Any) -> None:
    api = await serve(thing())
    async with api.client.get("/things", headers=api.as_principal(scopes=frozenset({"other"}))) as answer:
        assert answer.status == 403
        body = await answer.json(content_type=None)
        assert (body["code"], body["meta"]) == ("SCOPE_REQUIRED", {"requiredScope": "things:read"})
        assert "RateLimit" in answer.headers


async def test_any_of_several_scopes_opens_what_its_body_decides_on(serve: Any, thing: Any) -> None:
    api = await serve(thing(or_scopes=("things:send",)))
    answers = {}
    for scope in ("things:read", "things:send", "other"):
        async with api.client.get("/things", headers=api.as_principal(scopes=frozenset({scope}))) as answer:
            answers[scope] = answer.status
    assert answers == {"things:read": 200, "things:send": 200, "other": 403}


@pytest.mark.parametrize(
    ("body", "status", "unknown"),
    [
        ({"name": "a", "text": "x"}, 200, ["/text"]),
        ({"channel": "letters", "text": "x"}, 200, []),
        ({"channel": "letters", "text": "x", "name": "a"}, 200, ["/name"]),
        ({"channel": "letters", "name": "a"}, 422, []),
        ({"channel": ["letters"], "text": "x"}, 422, []),
        ([], 422, []),
    ],
)
async def test_a_body_is_of_the_model_of_its_channel(
    serve: Any, thing: Any, body: Any, status: int, unknown: list[str]
) -> None:
    async def show(call: Call) -> Reply:
        return Reply(200, {"model": type(call.body).__name__})

    api = await serve(thing("POST", body=Thing, bodies={"letters": Letter}, handler=show))
    async with api.client.post("/things", json=body) as answer:
        found = await answer.json(content_type=None)
        assert answer.status == status
        assert [each["path"] for each in found.get("warnings", ())] == unknown
        if status == 200:
            assert found["model"] == ("Letter" if "channel" in body else "Thing")


async def test_a_suspended_organization_can_read_only(serve: Any, thing: Any) -> None:
    api = await serve(thing(), thing("POST"))
    headers = api.as_principal(suspended=True)
    async with api.client.get("/things", headers=headers) as answer:
        assert answer.status == 200
    async with api.client.post("/things", headers=headers) as answer:
        assert (answer.status, await code(answer)) == (403, "ORGANIZATION_SUSPENDED")


async def test_a_session_only_operation_refuses_keys(serve: Any, thing: Any) -> None:
    api = await serve(thing(session_only=True))
    async with api.client.get("/things") as answer:
        assert (answer.status, await code(answer)) == (403, "SESSION_ONLY")
    async with api.client.get("/things", headers=api.as_principal(actor_type="account")) as answer:
        assert answer.status == 200


async def test_a_key_for_other_addresses_is_refused(serve: Any, thing: Any) -> None:
    api = await serve(thing())
    elsewhere = api.as_principal(allowed_ips=(ip_network("10.0.0.0/8"),))
    here = api.as_principal(allowed_ips=(ip_network("10.0.0.0/8"), ip_network("127.0.0.0/8")))
    async with api.client.get("/things", headers=elsewhere) as answer:
        assert (answer.status, await code(answer)) == (403, "IP_NOT_ALLOWED")
    async with api.client.get("/things", headers=here) as answer:
        assert answer.status == 200


async def test_an_unknown_path_is_no_route_and_asks_for_no_credential(serve: Any, thing: Any) -> None:
    api = await serve(thing())
    for path in ("/nothing", "/things/", "/things//", "/things/x", "/"):
        async with api.client.get(path, headers={"Authorization": ""}) as answer:
            assert (answer.status, await code(answer)) == (404, "ROUTE_NOT_FOUND")


async def test_another_method_is_answered_with_those_allowed(serve: Any, thing: Any) -> None:
    api = await serve(thing(), thing("POST"))
    for method in ("PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"):
        async with api.client.request(method, "/things") as answer:
            assert (answer.status, await code(answer)) == (405, "METHOD_NOT_ALLOWED")
            assert answer.headers["Allow"] == "GET, HEAD, POST"


async def test_head_answers_like_get_without_the_body(serve: Any, thing: Any) -> None:
    api = await serve(thing())
    async with api.client.head("/things") as answer:
        assert answer.status == 200
        assert answer.headers["Content-Length"] == str(len('{"ok":true}'))
        assert await answer.read() == b""
    async with api.client.get("/things") as answer:  # the connection is still in step
        assert await answer.json() == {"ok": True}


async def test_what_goes_wrong_in_a_handler_is_answered_with_500_and_logged_without_what_was_sent(
    serve: Any, thing: Any
) -> None:
    async def fail(call: Call) -> Reply:
        raise RuntimeError(f"cannot reach {call.body.name}")

    api = await serve(thing("POST", handler=fail, body=Thing))
    with capture_logs() as logs:
        async with api.client.post("/things", json={"name": "Maria"}) as answer:
            assert (answer.status, await code(answer)) == (500, "INTERNAL_ERROR")
            assert "Maria" not in await answer.text()
            request_id = answer.headers["X-Request-Id"]
    (entry,) = logs
    assert (entry["event"], entry["request_id"], entry["error"]) == ("request_failed", request_id, "RuntimeError")
    assert entry["where"][-1].endswith(" fail")
    assert "Maria" not in repr(logs)


@pytest.mark.parametrize(
    ("method", "fails", "status"),
    [
        ("POST", None, 200),
        ("POST", Problem("INVALID_STATE", "It is closed."), 409),
        ("POST", RuntimeError("it broke"), 500),
        ("GET", Problem("INVALID_STATE", "It is closed."), 409),
    ],
)
async def test_what_a_request_changed_holds_in_all_processes_before_it_is_answered_also_when_it_failed(
    serve: Any, thing: Any, method: str, fails: Exception | None, status: int
) -> None:
    async def change(_: Call) -> Reply:
        order.append("changed")
        if fails is not None:
            raise fails
        return Reply(200, {})

    async def others() -> None:
        await asyncio.sleep(0)
        order.append("holds")

    order: list[str] = []
    api = await serve(thing(method, handler=change), part=ServerPart(reached=others))
    async with api.client.request(method, "/things") as answer:
        assert answer.status == status
    assert order == (["changed", "holds"] if method == "POST" else ["changed"])


async def test_a_body_that_json_cannot_hold_is_answered_with_500(serve: Any, thing: Any) -> None:
    async def odd(_: Call) -> Reply:
        return Reply(200, {"it": object()})

    api = await serve(thing(handler=odd))
    with capture_logs() as logs:
        async with api.client.get("/things") as answer:
            assert answer.status == 500
    assert [entry["error"] for entry in logs] == ["TypeError"]


async def test_a_time_in_a_body_has_the_one_form_of_timestamps(serve: Any, thing: Any) -> None:
    async def handle(call: Call) -> Reply:
        return Reply(200, {"at": datetime(2026, 1, 2, 3, 4, 5, 678900, tzinfo=UTC)})

    api = await serve(thing(handler=handle))
    async with api.client.get("/things") as answer:
        assert await answer.json() == {"at": "2026-01-02T03:04:05.678Z"}


async def test_unavailable_is_503_with_the_time_to_wait(serve: Any, thing: Any) -> None:
    async def busy(_: Call) -> Reply:
        raise Unavailable(retry_after=4)

    api = await serve(thing(handler=busy))
    async with api.client.get("/things") as answer:
        assert (answer.status, await code(answer)) == (503, "SERVICE_UNAVAILABLE")
        assert answer.headers["Retry-After"] == "4"


async def test_the_handler_gets_what_was_parsed(serve: Any, thing: Any) -> None:
    seen: list[Call] = []

    async def handle(call: Call) -> Reply:
        seen.append(call)
        return Reply(201, headers={"X-More": "a\r\nInjected: b"})

    api = await serve(thing("POST", "/things/{id}/parts/{part}", handler=handle, body=Thing, query=Filter))
    async with api.client.post(
        "/things/a/parts/b%20c?limit=7&status=x&status=y&other=1", json={"name": "  abc ", "unknown": 1}
    ) as answer:
        assert answer.status == 201
        assert answer.headers["X-More"] == "a??Injected: b"
        assert await answer.read() == b""
    (call,) = seen
    assert call.path == {"id": "a", "part": "b c"}
    assert (call.query.limit, call.query.status) == (7, ["x", "y"])
    assert (call.body.name, call.body.size) == ("abc", 1)
    assert call.client_ip == "127.0.0.1"
    assert call.now == datetime(2026, 3, 1, 12, tzinfo=UTC)


async def test_a_bad_query_parameter_is_400_or_422_as_the_operation_says(serve: Any, thing: Any) -> None:
    api = await serve(thing(query=Filter), thing("GET", "/others", query=Filter, bad_query_status=422))
    for path, expected in (("/things", (400, "INVALID_PARAMETER")), ("/others", (422, "VALIDATION_ERROR"))):
        for value in ("0", "201", "x", "1.0", "1_0", "", "%00"):
            async with api.client.get(f"{path}?limit={value}") as answer:
                assert (answer.status, await code(answer)) == expected
                body = await answer.json(content_type=None)
                assert [error["path"] for error in body["errors"]] == ["limit"]


async def test_a_patch_tells_null_from_absent(serve: Any, thing: Any) -> None:
    class Change(PatchModel):
        name: str = ""
        note_text: str | None = None

    async def handle(call: Call) -> Reply:
        return Reply(200, call.body.changes())

    api = await serve(thing("PATCH", "/things", handler=handle, body=Change))
    for sent, changes in (({}, {}), ({"noteText": None}, {"note_text": None}), ({"name": " a "}, {"name": "a"})):
        async with api.client.patch("/things", json=sent) as answer:
            assert await answer.json() == changes
    async with api.client.patch("/things", json={"name": None}) as answer:
        assert answer.status == 422
        assert (await answer.json(content_type=None))["errors"][0]["path"] == "/name"


async def test_an_empty_body_is_valid_where_every_field_is_optional(serve: Any, thing: Any) -> None:
    class Options(ApiModel):
        size: int = 3

    class Thing(Options):
        name: str

    async def handle(call: Call) -> Reply:
        return Reply(200, {"size": call.body.size})

    api = await serve(thing("POST", handler=handle, body=Options), thing("POST", "/strict", body=Thing))
    async with api.client.post("/things") as answer:
        assert await answer.json() == {"size": 3}
    async with api.client.post("/strict", headers={"Content-Type": "application/json"}) as answer:
        assert (answer.status, await code(answer)) == (400, "MALFORMED_JSON")
    async with api.client.post("/strict") as answer:
        assert (answer.status, await code(answer)) == (415, "UNSUPPORTED_MEDIA_TYPE")


async def test_a_body_where_none_is_taken_does_no_harm(serve: Any, thing: Any) -> None:
    api = await serve(thing())
    for _ in range(3):
        async with api.client.get("/things", data=b"x" * 100_000) as answer:
            assert answer.status == 200


async def test_administrator_routes_exist_only_with_a_token(serve: Any, thing: Any) -> None:
    route = thing("GET", "/v2/admin/things", access=Access.ADMIN, scope=None, rate_class="")
    without = await serve(route)
    async with without.client.get("/v2/admin/things") as answer:
        assert (answer.status, await code(answer)) == (404, "ROUTE_NOT_FOUND")
    api = await serve(route, admin_token="secret-of-the-house")
    for headers in ({}, {"Authorization": ""}, {"Authorization": "Bearer secret-of-the-mouse"}):
        async with api.client.get("/v2/admin/things", headers=headers) as answer:
            assert (answer.status, await code(answer)) == (401, "UNAUTHORIZED")
    async with api.client.get("/v2/admin/things", headers={"Authorization": "Bearer secret-of-the-house"}) as answer:
        assert answer.status == 200


async def test_a_callback_is_read_raw_and_within_its_own_limit(serve: Any, thing: Any) -> None:
    async def handle(call: Call) -> Reply:
        return Reply(200, {"bytes": len(call.raw_body), "organization": call.principal.organization_id})

    api = await serve(
        thing(
            "POST",
            "/v2/callbacks/a",
            handler=handle,
            access=Access.CALLBACK,
            scope=None,
            rate_class="",
            raw_body=True,
            body_limit=1000,
        )
    )
    headers = {"Authorization": "", "Content-Type": "text/plain"}
    async with api.client.post("/v2/callbacks/a", data=b"\xff" * 1000, headers=headers) as answer:
        assert await answer.json() == {"bytes": 1000, "organization": ""}
    async with api.client.post("/v2/callbacks/a", data=b"\xff" * 1001, headers=headers) as answer:
        assert (answer.status, await code(answer)) == (413, "BODY_TOO_LARGE")


async def test_a_callback_that_nobody_takes_is_refused_before_its_body_comes(serve: Any, thing: Any) -> None:
    def nobody(_: Call) -> None:
        raise not_found()

    route = thing(
        "POST", "/v2/callbacks/a", access=Access.CALLBACK, scope=None, rate_class="", raw_body=True, before_body=nobody
    )
    api = await serve(route, limits={**LIMITS, "anonymous": (0.5, 2)})
    statuses = []
    for _ in range(3):
        reader, writer = await api.connect()
        writer.write(b"POST /v2/callbacks/a HTTP/1.1\r\nHost: x\r\nContent-Length: 900000\r\n\r\n")
        status, _, _ = await answer_of(reader)
        statuses.append(status)
    assert statuses == [404, 404, 429]


async def test_an_answer_in_pieces_is_written_as_it_comes(serve: Any, thing: Any) -> None:
    closed = []

    async def pieces() -> Any:
        try:
            yield b"data: 1\n\n"
            yield b"data: 2\n\n"
        finally:
            closed.append(True)

    async def handle(_: Call) -> Reply:
        return StreamReply(200, pieces(), content_type="text/event-stream")

    api = await serve(thing(handler=handle))
    async with api.client.get("/things") as answer:
        assert answer.headers["Content-Type"] == "text/event-stream"
        assert answer.headers["X-Request-Id"].startswith("req_")
        assert await answer.read() == b"data: 1\n\ndata: 2\n\n"
    assert closed == [True]
    async with api.client.head("/things") as answer:
        assert answer.status == 200


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"scope": None}, "needs a scope"),
        ({"rate_class": ""}, "rate class"),
        ({"rate_class": "fast"}, "no such class"),
        ({"access": Access.PUBLIC}, "no credential"),
        ({"idempotency": Idempotency.ACCEPTED}, "no POST"),
        ({"path_ids": {"id": "thg_"}}, "no parameter id"),
        ({"body": Thing, "raw_body": True}, "in one way"),
        ({"before_body": lambda _: None}, "told after it"),
    ],
)
async def test_a_route_that_contradicts_itself_is_refused_at_start(
    serve: Any, thing: Any, options: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        await serve(thing(**options))
