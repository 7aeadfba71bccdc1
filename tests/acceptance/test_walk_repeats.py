"""Every route that has versions or takes an idempotency key: preconditions (C6.3) and repeats (C6.2)."""

from dataclasses import replace
from typing import Any

import pytest
from tests.acceptance.caller import Answer, Request
from tests.acceptance.samples import new
from tests.acceptance.walk import IN_PARTS, Walk

from recado.http.api.route import Idempotency, Route

JSON = {"Content-Type": "application/json"}
SHOWN_ONCE = {"token", "secret", "inviteToken"}
LONG = f'"{"9" * 40}"'


def changers(walk: Walk) -> list[Route]:
    """Operations that change a record that has versions."""
    return walk.open_routes(lambda route: route.versioned and route.method != "GET" and not route.creates)


def with_keys(walk: Walk) -> list[Route]:
    """Operations that take an idempotency key."""
    return walk.open_routes(lambda route: route.idempotency is not Idempotency.NONE)


def makes_a_batch(route: Route) -> bool:
    """Whether the operation makes a batch: its key is bound to what it makes, and that is not finished yet."""
    return route.idempotency is Idempotency.BOUND and 202 in route.responses


@IN_PARTS
async def test_a_change_meant_for_another_version_is_refused(walk: Walk, subtests: pytest.Subtests) -> None:
    for route in [*changers(walk), *walk.open_routes(lambda route: route.matches)]:
        request = await walk.some(route)
        found = None
        async with walk.unchanged():
            for tag in (
                '"0"',
                '"999999"',
                '""',
                "1",
                "x",
                '"1',
                'W/"1"',
                '"1.0"',
                '"x", "999999"',
                LONG,
            ):
                with subtests.test(route.operation_id, tag=tag):
                    answer = await walk.call(route, request, headers={"If-Match": tag})
                    assert (answer.status, answer.code) == (412, "VERSION_MISMATCH")
                    found = answer.body["meta"]["currentETag"]
            with subtests.test(route.operation_id, tag="weak, of this version"):
                answer = await walk.call(route, request, headers={"If-Match": f"W/{found}"})
                assert (answer.status, answer.code) == (412, "VERSION_MISMATCH")


async def test_a_change_meant_for_this_version_is_made(walk: Walk, subtests: pytest.Subtests) -> None:
    for route in changers(walk):
        with subtests.test(route.operation_id):
            request = await walk.fresh(route)
            refused = await walk.call(route, request, headers={"If-Match": '"0"'})
            tag = refused.body["meta"]["currentETag"]
            changed = await walk.call(route, request, headers={"If-Match": f'"0", {tag}'})
            assert changed.status in route.responses
            if route.path.partition("/members")[1]:  # a size is no version (C6.3.1)
                assert changed.headers["ETag"] == tag
            elif changed.status != 204:
                assert changed.headers["ETag"] not in (tag, None)
            again = await walk.fresh(route)
            assert (await walk.call(route, again, headers={"If-Match": "*"})).status in route.responses


async def test_nothing_can_match_what_does_not_exist_yet(walk: Walk, subtests: pytest.Subtests) -> None:
    for route in walk.open_routes(lambda route: route.creates):
        request = await walk.some(route)
        async with walk.unchanged():
            for tag in ("*", '"1"', "x"):
                with subtests.test(route.operation_id, tag=tag):
                    answer = await walk.call(route, request, headers={"If-Match": tag})
                    assert (answer.status, answer.code) == (412, "VERSION_MISMATCH")


def test_what_answers_with_a_new_record_is_declared_a_create(walk: Walk) -> None:
    made = {route.operation_id for route in walk.open_routes(lambda route: 201 in route.responses)}
    made -= {"duplicateJourney", "createJourneyVersion"}  # there is a version to match: that of their source
    made |= {"createSegment", "importContacts", "simulateInbound"}  # they answer 200 and 202
    # Accepted, not finished: the batch exists all the same once it was answered.
    made |= {route.operation_id for route in walk.open_routes(makes_a_batch)}
    assert made == {route.operation_id for route in walk.open_routes(lambda route: route.creates)}


async def test_what_the_caller_holds_is_not_sent_again(walk: Walk, subtests: pytest.Subtests) -> None:
    for route in walk.open_routes(lambda route: route.versioned and route.method == "GET"):
        request = await walk.some(route)
        tag = (await walk.call(route, request)).headers["ETag"]
        for held in (tag, f"W/{tag}", "*", f'"0", {tag}'):
            with subtests.test(route.operation_id, held=held):
                answer = await walk.call(route, request, headers={"If-None-Match": held})
                assert (answer.status, answer.body, answer.headers["ETag"]) == (304, None, tag)
        for other in ('"0"', "x", LONG):
            with subtests.test(route.operation_id, held=other):
                answer = await walk.call(route, request, headers={"If-None-Match": other})
                assert (answer.status, answer.headers["ETag"]) == (200, tag)


@IN_PARTS
async def test_an_idempotency_key_of_another_form_is_refused(walk: Walk, subtests: pytest.Subtests) -> None:
    for route in with_keys(walk):
        request = await walk.some(route)
        async with walk.unchanged():
            for key in ("", "k" * 256, "clé", "a\tb"):
                with subtests.test(route.operation_id, key=key):
                    answer = await walk.call(route, request, headers={"Idempotency-Key": key})
                    assert (answer.status, answer.code) == (400, "IDEMPOTENCY_KEY_INVALID")
            if route.idempotency is Idempotency.REQUIRED:
                with subtests.test(route.operation_id, key=None):
                    answer = await walk.call(route, request, headers={})
                    assert (answer.status, answer.code) == (400, "IDEMPOTENCY_KEY_REQUIRED")


@IN_PARTS
async def test_a_repeat_with_its_key_has_no_further_effect(walk: Walk, subtests: pytest.Subtests) -> None:
    for route in with_keys(walk):
        with subtests.test(route.operation_id):
            keyed = with_key(await walk.fresh(route))
            first = await walk.call(route, keyed)
            assert first.status in route.responses
            assert "Idempotency-Replayed" not in first.headers
            async with walk.unchanged():
                for request in (keyed,) if route.spooled else (keyed, rewritten(keyed)):  # a file is its bytes
                    again = await walk.call(route, request)
                    assert (again.status, again.headers["Idempotency-Replayed"]) == (first.status, "true")
                    assert again.headers.get("ETag") == first.headers.get("ETag")
                    assert repeatable(again, route) == repeatable(first, route)
                    assert (again.body or {}).get("replayed", True) is True
                    assert not SHOWN_ONCE & (again.body or {}).keys()


@IN_PARTS
async def test_a_key_used_with_another_request_is_refused(walk: Walk, subtests: pytest.Subtests) -> None:
    for route in with_keys(walk):
        keyed = with_key(await walk.fresh(route))
        await walk.call(route, keyed)
        async with walk.unchanged():
            others = {"query": replace(keyed, query={"other": "1"})}
            if route.body is not None:
                others["body"] = replace(keyed, body={**(keyed.body or {}), "other": 1})
            for name, request in others.items():
                with subtests.test(route.operation_id, other=name):
                    refused = await walk.call(route, request)
                    assert (refused.status, refused.code) == (422, "IDEMPOTENCY_KEY_REUSED")


async def test_a_key_of_a_refused_request_is_free_again(walk: Walk, subtests: pytest.Subtests) -> None:
    for route in with_keys(walk):
        if route.body is None:
            continue
        with subtests.test(route.operation_id):
            keyed = with_key(await walk.fresh(route))
            async with walk.unchanged():
                refused = await walk.call(route, keyed, body=None, raw=b"[]", headers={**keyed.headers, **JSON})
                assert refused.status == route.bad_body_status
            answer = await walk.call(route, keyed)
            assert answer.status in route.responses
            assert "Idempotency-Replayed" not in answer.headers


async def test_a_key_belongs_to_its_organization_and_path(walk: Walk, subtests: pytest.Subtests) -> None:
    for route in with_keys(walk):
        with subtests.test(route.operation_id):
            first, second = await walk.fresh(route), await walk.fresh(route)
            if not route.path_ids:
                continue
            headers = {"Idempotency-Key": new("shared ")}
            for request in (first, second):
                answer = await walk.call(route, request, headers=headers)
                assert answer.status in route.responses
                assert "Idempotency-Replayed" not in answer.headers


def with_key(request: Request) -> Request:
    """The request with an idempotency key that is new."""
    return replace(request, headers={**request.headers, "Idempotency-Key": new("key ")})


def rewritten(request: Request) -> Request:
    """The same request in other bytes: members in another order."""
    body: Any = request.body
    return request if body is None else replace(request, body=dict(reversed(body.items())))


def repeatable(answer: Answer, route: Route) -> Any:
    """What a repeat must tell again: everything but secrets and the mark of a repeat.

    Of what was sent at once it tells how that is now.
    """
    left_out = {*SHOWN_ONCE, "replayed", *(["status"] if route.idempotency is Idempotency.REQUIRED else [])}
    return {name: value for name, value in (answer.body or {}).items() if name not in left_out}
