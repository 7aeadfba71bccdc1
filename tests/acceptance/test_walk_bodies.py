"""Every route that takes a body, with bodies that it must refuse: nothing changes, and the answer says where (C4.3)."""

import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.acceptance.caller import Request, never
from tests.acceptance.served import Served
from tests.acceptance.walk import IN_PARTS, Walk

from recado.http.api.route import MIB, Access, Route

PROXIES = Path(__file__).parents[2] / "deploy" / "proxies"
WRONG_VALUES: dict[str, Any] = {
    "object": {"wrong": 1},
    "array": ["wrong"],
    "number": 17.5,
    "string": "wrong",
    "boolean": True,
}
ID = re.compile(r"([a-z]+_)[0-9A-Za-z]{21}")


def bodied(walk: Walk) -> list[Route]:
    return walk.open_routes(lambda route: route.body is not None)


async def test_what_is_no_json_is_refused(walk: Walk, subtests: pytest.Subtests) -> None:
    texts = {
        "cut off": b'{"name": ',
        "with something behind": b"{} {}",
        "with a number that JSON has not": b'{"a": NaN}',
        "not in UTF-8": b'{"a": "\xff"}',
        "with half a character": b'{"a": "\\ud800"}',
        "very deep": b"[" * 100_000,
        "blank": b"  ",
        "empty": b"",
    }
    for route in bodied(walk):
        good = await walk.some(route)
        async with walk.unchanged():
            for name, text in texts.items():
                if name == "empty" and route.body_optional:
                    continue
                with subtests.test(route.operation_id, body=name):
                    headers = {"Content-Type": "application/json"}
                    answer = await walk.call(route, good, body=None, raw=text, headers=headers)
                    assert (answer.status, answer.code) == (400, "MALFORMED_JSON")


async def test_json_under_another_name_is_refused(walk: Walk, subtests: pytest.Subtests) -> None:
    for route in bodied(walk):
        good = await walk.some(route)
        async with walk.unchanged():
            for name in (
                "text/plain",
                "application/x-www-form-urlencoded",
                "application/json; charset=latin-1",
                "json",
            ):
                with subtests.test(route.operation_id, content_type=name):
                    answer = await walk.call(route, good, headers={"Content-Type": name})
                    assert (answer.status, answer.code) == (415, "UNSUPPORTED_MEDIA_TYPE")


@pytest.mark.long
async def test_a_body_over_the_limit_is_refused(walk: Walk, subtests: pytest.Subtests) -> None:
    routes = bodied(walk) + walk.routes(lambda route: route.raw_body, Access.CALLBACK)
    for route in routes:
        good = await walk.some(route)
        content = (good.content or b"").ljust(route.body_limit + 1)
        token = walk.token(route)
        headers = {"Content-Type": "application/json", **good.headers}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        async with walk.unchanged():
            for name, sent in (("announced", content), ("in chunks", chunks(content))):
                with subtests.test(route.operation_id, length=name):
                    answer = await walk.caller.send(
                        route.method, route.path.format(**good.path), headers=headers, content=sent
                    )
                    assert (answer.status, answer.code) == (413, "BODY_TOO_LARGE")
                    assert answer.body["meta"] == {"limitBytes": route.body_limit}


async def chunks(content: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(content), 65_536):
        yield content[start : start + 65_536]


@pytest.mark.long
async def test_a_body_of_the_limit_is_read(walk: Walk, subtests: pytest.Subtests) -> None:
    for route in bodied(walk):
        with subtests.test(route.operation_id):
            good = await walk.fresh(route)
            content = orjson.dumps(good.body).ljust(route.body_limit)
            answer = await walk.call(
                route, good, body=None, raw=content, headers={"Content-Type": "application/json; charset=UTF-8"}
            )
            assert answer.status in route.responses


def test_the_proxies_of_deploy_let_through_whatever_some_route_takes(served: Served) -> None:
    largest = max(route.body_limit for route in served.routes) // MIB
    for file, limit in (("nginx.conf", r"client_max_body_size (\d+)m;"), ("Caddyfile", r"max_size (\d+)MiB")):
        text = (PROXIES / file).read_text("utf-8")
        assert [int(found) for found in re.findall(limit, text)] == [largest + 1]
        assert f"{largest} MiB" in text  # which is what it says of it


@IN_PARTS
async def test_values_of_another_type_are_pointed_at(walk: Walk, subtests: pytest.Subtests) -> None:
    for route in bodied(walk):
        good = await walk.some(route)
        async with walk.unchanged():
            for value in ([], "text", 1, True, None):
                with subtests.test(route.operation_id, body=value):
                    answer = await walk.call(route, good, body=None, raw=orjson.dumps(value), headers=JSON)
                    assert (answer.status, answer.pointers) == (route.bad_body_status, [""])
            for name, value in misfits(walk, route):
                with subtests.test(route.operation_id, member=name):
                    answer = await walk.call(route, good, body={**good.body, name: value})
                    assert answer.status == route.bad_body_status, answer.body
                    assert all(pointer.startswith(f"/{name}") for pointer in answer.pointers), answer.body
                    assert answer.pointers


async def test_a_missing_or_cleared_required_member_is_pointed_at(walk: Walk, subtests: pytest.Subtests) -> None:
    for route in bodied(walk):
        good = await walk.some(route)
        async with walk.unchanged():
            for name in schema(walk, route).get("required", ()):
                with subtests.test(route.operation_id, member=name):
                    without = {member: value for member, value in good.body.items() if member != name}
                    missing = await walk.call(route, good, body=without)
                    cleared = await walk.call(route, good, body={**good.body, name: None})
                    assert (missing.status, missing.pointers) == (route.bad_body_status, [f"/{name}"])
                    assert missing.body["errors"][0]["code"] == "REQUIRED"
                    assert (cleared.status, cleared.pointers) == (route.bad_body_status, [f"/{name}"])


async def test_the_null_character_is_refused_wherever_it_stands(walk: Walk, subtests: pytest.Subtests) -> None:
    for route in bodied(walk):
        good = await walk.some(route)
        async with walk.unchanged():
            for addition, pointer in (({"other": ["a\0b"]}, "/other/0"), ({"o\0": 1}, "")):
                with subtests.test(route.operation_id, pointer=pointer):
                    answer = await walk.call(route, good, body={**good.body, **addition})
                    assert (answer.status, answer.code) == (422, "INVALID_CHARACTER")
                    assert answer.pointers == [pointer]


async def test_unknown_members_are_ignored_and_owners_are_not_chosen(walk: Walk, subtests: pytest.Subtests) -> None:
    for route in bodied(walk):
        with subtests.test(route.operation_id):
            good = await walk.fresh(route)
            claims = {
                "id": never("msg_"),
                "organizationId": walk.foreign.organization_id,
                "env": "live",
                "unknown": {"of": ["any", "kind", None]},
            }
            answer = await walk.call(route, good, body={**good.body, **claims})
            assert answer.status in route.responses
            told = answer.body or {}
            assert told.get("id") != claims["id"]
            assert told.get("organizationId", walk.mine.organization_id) == walk.mine.organization_id
            assert told.get("env", "test") == "test"


async def test_what_belongs_to_others_is_referred_to_like_what_never_was(walk: Walk, subtests: pytest.Subtests) -> None:
    for route in bodied(walk):
        good = await walk.some(route)
        for name, prefix in references(good):
            async with walk.unchanged():
                foreign, missing, other = [
                    await walk.call(route, good, body={**good.body, name: value})
                    for value in (walk.foreign.ids[prefix], never(prefix), "nothing")
                ]
                with subtests.test(route.operation_id, member=name):
                    assert 400 <= missing.status < 500
                    assert foreign.told == missing.told
                    assert (other.status, other.code) == (missing.status, missing.code)


JSON = {"Content-Type": "application/json"}


def schema(walk: Walk, route: Route) -> Any:
    """The schema of a route's body; where there is one for each channel, that of the sample, chat-app's."""
    found = walk.resolved(walk.described(route)["requestBody"]["content"]["application/json"]["schema"])
    return walk.resolved(found["anyOf"][0]) if "anyOf" in found else found


def misfits(walk: Walk, route: Route) -> Iterator[tuple[str, Any]]:
    """For each member of the body that is of certain types: a value of another one."""
    for name, member in schema(walk, route)["properties"].items():
        allowed = types(walk, member)
        if allowed is not None:
            yield name, next(value for kind, value in WRONG_VALUES.items() if kind not in allowed)


def types(walk: Walk, described: Any) -> set[str] | None:
    """The JSON types that a schema allows; None for any."""
    described = walk.resolved(described)
    if "anyOf" in described:
        parts = [types(walk, part) for part in described["anyOf"]]
        return None if None in parts else set().union(*(part for part in parts if part))
    named = described.get("type")
    if named is None:
        return None
    found = {named} if isinstance(named, str) else set(named)
    return found | {"number"} if "integer" in found else found


def references(request: Request) -> Iterator[tuple[str, str]]:
    """The members of a body that hold an id, with its prefix."""
    for name, value in (request.body or {}).items():
        if isinstance(value, str) and (match := ID.fullmatch(value)):
            yield name, match[1]
