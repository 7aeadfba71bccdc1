"""`If-Match` and `If-None-Match` (C6.3)."""

from typing import Any

import pytest

from recado.domain.core.errors import Problem
from recado.http.api.call import Call
from recado.http.wire.reply import Reply


async def show(_: Call) -> Reply:
    return Reply(200, {"ok": True}, revision=7)


async def change(call: Call) -> Reply:
    call.check_revision(7)
    return Reply(200, {"ok": True}, revision=8)


@pytest.mark.parametrize(
    ("if_match", "status"),
    [
        (None, 200), ("*", 200), (" * ", 200), ('"7"', 200), ('"6", "7"', 200), ('W/"6","7"', 200),
        ('"6"', 412), ('W/"7"', 412), ("7", 412), ('"x"', 412), ("", 412), ('"7', 412), ('"007x"', 412),
        ('"' + "9" * 100 + '"', 412), ('"\u0667"', 412),
    ],
)  # fmt: skip
async def test_a_write_happens_only_on_the_version_that_was_named(
    serve: Any, thing: Any, if_match: str | None, status: int
) -> None:
    api = await serve(thing("PATCH", "/things", handler=change, versioned=True))
    headers = {} if if_match is None else {"If-Match": if_match}
    async with api.client.patch("/things", headers=headers) as answer:
        assert answer.status == status
        if status == 200:
            assert answer.headers["ETag"] == '"8"'
        else:
            body = await answer.json(content_type=None)
            assert (body["code"], body["kind"]) == ("VERSION_MISMATCH", "PRECONDITION_FAILED")
            assert body["meta"] == {"currentETag": '"7"'}


@pytest.mark.parametrize("if_match", ["*", '"1"', ""])
async def test_a_create_with_if_match_always_fails(serve: Any, thing: Any, if_match: str) -> None:
    api = await serve(thing("POST", handler=show, versioned=True, creates=True))
    async with api.client.post("/things", headers={"If-Match": if_match}) as answer:
        assert (answer.status, (await answer.json(content_type=None))["code"]) == (412, "VERSION_MISMATCH")
    async with api.client.post("/things") as answer:
        assert answer.status == 200


async def refuse(_: Call) -> None:
    raise Problem("PHONE_INVALID", "The phone is none.")


@pytest.mark.parametrize(
    ("examine", "answered"),
    [
        (refuse, (422, "PHONE_INVALID")),
        (lambda call: call.body, (412, "VERSION_MISMATCH")),
        (None, (412, "VERSION_MISMATCH")),
    ],
)
async def test_the_body_of_a_create_is_refused_before_its_if_match(
    serve: Any, thing: Any, examine: Any, answered: tuple[int, str]
) -> None:
    api = await serve(thing("POST", handler=show, creates=True, examine=examine))
    async with api.client.post("/things", headers={"If-Match": "*"}) as answer:
        assert (answer.status, (await answer.json(content_type=None))["code"]) == answered
    async with api.client.post("/things") as answer:
        assert answer.status == 200


@pytest.mark.parametrize(
    ("if_none_match", "status"),
    [(None, 200), ('"7"', 304), ('W/"7"', 304), ("*", 304), ('"1", "7"', 304), ('"6"', 200), ("7", 200)],
)
async def test_who_holds_the_version_is_spared_the_body(
    serve: Any, thing: Any, if_none_match: str | None, status: int
) -> None:
    api = await serve(thing(handler=show, versioned=True))
    headers = {} if if_none_match is None else {"If-None-Match": if_none_match}
    async with api.client.get("/things", headers=headers) as answer:
        assert (answer.status, answer.headers["ETag"]) == (status, '"7"')
        assert await answer.read() == (b"" if status == 304 else b'{"ok":true}')
    async with api.client.get("/things") as answer:  # the connection is still in step
        assert answer.status == 200


async def test_routes_without_versions_ignore_the_headers(serve: Any, thing: Any) -> None:
    api = await serve(thing("POST", handler=show), thing(handler=show))
    async with api.client.post("/things", headers={"If-Match": '"1"'}) as answer:
        assert answer.status == 200
    async with api.client.get("/things", headers={"If-None-Match": '"7"'}) as answer:
        assert answer.status == 200
