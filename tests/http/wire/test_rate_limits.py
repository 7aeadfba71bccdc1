"""Token buckets per caller and class (C6.1)."""

import math
from ipaddress import ip_network
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.http.wire.conftest import BASE_URL, LIMITS

from recado.domain.core.errors import Problem
from recado.http.api.call import Call
from recado.http.api.route import Access
from recado.http.callers.principal import Principal
from recado.http.callers.rate_limits import Bucket, RateLimiter
from recado.http.routes.service.service import service_routes
from recado.http.wire.reply import Reply


def principal(actor_id: str, **more: Any) -> Principal:
    return Principal("org_1", "live", "key", actor_id, frozenset(), **more)


async def test_every_authenticated_answer_tells_its_limit(serve: Any, thing: Any) -> None:
    api = await serve(thing(rate_class="tiny"))
    seen = []
    for _ in range(3):
        async with api.client.get("/things") as answer:
            seen.append((answer.status, answer.headers["RateLimit-Policy"], answer.headers["RateLimit"]))
    policy = '"tiny";q=2;w=4'
    assert seen == [
        (200, policy, '"tiny";r=1;t=2'),
        (200, policy, '"tiny";r=0;t=4'),
        (429, policy, '"tiny";r=0;t=4'),
    ]


async def test_an_empty_bucket_says_when_to_come_back_and_fills_again(serve: Any, thing: Any) -> None:
    api = await serve(thing(rate_class="tiny"))
    for _ in range(2):
        async with api.client.get("/things"):
            pass
    async with api.client.get("/things") as answer:
        body = await answer.json(content_type=None)
        assert (answer.status, answer.headers["Retry-After"]) == (429, "2")
        assert (body["code"], body["kind"], body["meta"]) == (
            "RATE_LIMITED", "RATE_LIMITED", {"policy": '"tiny";q=2;w=4'},
        )  # fmt: skip
    await api.clock.advance(2.0)
    async with api.client.get("/things") as answer:
        assert (answer.status, answer.headers["RateLimit"]) == (200, '"tiny";r=0;t=4')


async def test_an_unlimited_credential_is_not_counted(serve: Any, thing: Any) -> None:
    api = await serve(thing(rate_class="tiny"))
    headers = api.as_principal(unlimited=True)
    for _ in range(5):
        async with api.client.get("/things", headers=headers) as answer:
            assert answer.status == 200
            assert "RateLimit" not in answer.headers
            assert "RateLimit-Policy" not in answer.headers


async def test_a_credential_may_have_limits_of_its_own(serve: Any, thing: Any) -> None:
    api = await serve(thing(rate_class="tiny"))
    headers = api.as_principal(actor_id="key_2", rate_limits={"tiny": (1.0, 3), "other": (1.0, 1)})
    async with api.client.get("/things", headers=headers) as answer:
        assert answer.headers["RateLimit-Policy"] == '"tiny";q=3;w=3'
    async with api.client.get("/things") as answer:
        assert answer.headers["RateLimit-Policy"] == '"tiny";q=2;w=4'


async def test_all_credentials_of_an_organization_stay_below_its_ceiling(serve: Any, thing: Any) -> None:
    api = await serve(thing(rate_class="read"), ceilings={"read": (0.5, 3)})
    seen = []
    for number in range(5):
        async with api.client.get("/things", headers=api.as_principal(actor_id=f"key_{number}")) as answer:
            seen.append((answer.status, answer.headers["RateLimit-Policy"], answer.headers["RateLimit"]))
            refusal = await answer.json(content_type=None)
    assert seen[:3] == [(200, '"read";q=1000;w=2', '"read";r=999;t=1')] * 3
    assert seen[3:] == [(429, '"read";q=3;w=6', '"read";r=0;t=6')] * 2
    assert refusal["meta"] == {"policy": '"read";q=3;w=6'}
    assert "all keys and sessions of the organization" in refusal["detail"]
    others = (api.as_principal(organization_id="org_2"), api.as_principal(env="test"))
    for headers in others:
        async with api.client.get("/things", headers=headers) as answer:
            assert answer.status == 200
    await api.clock.advance(2.0)
    async with api.client.get("/things", headers=api.as_principal(actor_id="key_new")) as answer:
        assert answer.status == 200


async def test_only_the_operator_lets_a_key_go_above_the_ceiling(serve: Any, thing: Any) -> None:
    api = await serve(thing(rate_class="read"), ceilings={"read": (2.0, 3)})
    high = {"read": (100.0, 200)}
    statuses = {}
    for name, more in (("by hand", {"from_operator": True}), ("from before the ceiling", {})):
        headers = api.as_principal(actor_id=name, organization_id=name, rate_limits=high, **more)
        statuses[name] = []
        for _ in range(4):
            async with api.client.get("/things", headers=headers) as answer:
                statuses[name].append((answer.status, answer.headers["RateLimit-Policy"]))
    assert statuses["by hand"] == [(200, '"read";q=200;w=2')] * 4
    assert statuses["from before the ceiling"] == [(200, '"read";q=3;w=2')] * 3 + [(429, '"read";q=3;w=2')]


async def test_failed_credentials_are_limited_without_harm_to_valid_ones(serve: Any, thing: Any) -> None:
    api = await serve(thing())
    statuses = []
    for _ in range(52):
        async with api.client.get("/things", headers={"Authorization": "Bearer guess"}) as answer:
            statuses.append(answer.status)
    assert statuses == [401] * 50 + [429] * 2
    async with api.client.get("/things") as answer:
        assert answer.status == 200
    await api.clock.advance(0.02)
    async with api.client.get("/things", headers={"Authorization": ""}) as answer:
        assert answer.status == 401


async def test_wrong_signatures_of_callbacks_are_failed_credentials(serve: Any, thing: Any) -> None:
    async def handle(call: Call) -> Reply:
        if call.raw_body != b"signed":
            raise Problem("INVALID_SIGNATURE", "The signature of the callback is not valid.")
        return Reply(200, {})

    path = "/v2/callbacks/a"
    route = thing("POST", path, handler=handle, access=Access.CALLBACK, scope=None, rate_class="", raw_body=True)
    api = await serve(route)
    statuses = []
    for _ in range(52):
        async with api.client.post(path, data=b"guess") as answer:
            statuses.append(answer.status)
    assert statuses == [401] * 50 + [429] * 2
    async with api.client.post(path, data=b"signed") as answer:
        assert answer.status == 200


async def test_on_public_routes_only_what_is_unknown_costs(serve: Any, thing: Any) -> None:
    async def handle(call: Call) -> Reply:
        return Reply(200 if call.path["code"] == "known" else 404)

    api = await serve(thing("GET", "/l/{code}", handler=handle, access=Access.PUBLIC, scope=None, rate_class="public"))
    for _ in range(10):
        async with api.client.get("/l/known") as answer:
            assert answer.status == 200
    statuses = []
    for _ in range(4):
        async with api.client.get("/l/unknown") as answer:
            statuses.append(answer.status)
    assert statuses == [404, 404, 404, 429]


async def test_callers_without_credential_are_counted_by_address(serve: Any, thing: Any) -> None:
    api = await serve(thing("POST", "/v2/sessions", access=Access.PUBLIC, scope=None, rate_class="login"))
    statuses = []
    for _ in range(11):
        async with api.client.post("/v2/sessions") as answer:
            statuses.append(answer.status)
            assert "RateLimit" not in answer.headers
    assert statuses == [200] * 10 + [429]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/thigs", 404), ("PATCH", "/things", 405), ("GET", "/v2/admin/things", 404), ("GET", "/docs", 200)],
)
async def test_what_asks_for_no_credential_has_a_limit_per_address(
    serve: Any, thing: Any, method: str, path: str, status: int
) -> None:
    administration = thing("GET", "/v2/admin/things", access=Access.ADMIN, scope=None, rate_class="")
    page = thing("GET", "/docs", access=Access.PUBLIC, scope=None, rate_class="anonymous")
    api = await serve(thing(), administration, page, limits={**LIMITS, "anonymous": (0.5, 3)})
    statuses = []
    for _ in range(5):
        async with api.client.request(method, path) as answer:
            statuses.append(answer.status)
    assert statuses == [status] * 3 + [429] * 2
    assert (answer.headers["Retry-After"], answer.content_type) == ("2", "application/problem+json")
    async with api.client.get("/things") as answer:
        assert answer.status == 200


async def test_strangers_behind_a_trusted_proxy_are_counted_one_by_one(serve: Any, thing: Any) -> None:
    api = await serve(thing(), limits={**LIMITS, "anonymous": (0.5, 1)}, trusted_proxies=[ip_network("127.0.0.1")])
    statuses = []
    for address in ("203.0.113.1", "203.0.113.1", "203.0.113.2", "2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"):
        async with api.client.get("/nothing", headers={"X-Forwarded-For": address}) as answer:
            statuses.append(answer.status)
    assert statuses == [404, 429, 404, 404, 429, 404]


async def test_no_probe_is_ever_refused(serve: Any) -> None:
    async def ready() -> dict[str, bool]:
        return {"database": True}

    routes = service_routes((), ready=ready, base_url=BASE_URL, version="1")
    api = await serve(*routes, limits={**LIMITS, "anonymous": (0.5, 1)})
    for path in ("/problems", "/problems", *["/healthz", "/readyz"] * 20):
        async with api.client.get(path) as answer:
            assert answer.status == 200 or path == "/problems"
    async with api.client.get("/problems") as answer:
        assert answer.status == 429


@given(
    refill=st.floats(0.01, 10_000),
    capacity=st.integers(1, 20_000),
    steps=st.lists(st.tuples(st.floats(0, 100), st.integers(0, 30)), max_size=30),
)
def test_no_period_ever_grants_more_than_capacity_and_refill(
    refill: float, capacity: int, steps: list[tuple[float, int]]
) -> None:
    bucket = Bucket("x", (refill, capacity), 0.0)
    now, granted = 0.0, 0
    for pause, tries in steps:
        now += pause
        granted += sum(bucket.take(now) for _ in range(tries))
        assert granted <= capacity + now * refill + 1e-6


@given(refill=st.floats(0.01, 1000), capacity=st.integers(1, 50))
def test_after_the_time_it_named_an_empty_bucket_grants_again(refill: float, capacity: int) -> None:
    bucket = Bucket("x", (refill, capacity), 0.0)
    for _ in range(capacity):
        assert bucket.take(0.0)
    assert not bucket.take(0.0)
    assert bucket.retry_after() >= 1
    assert bucket.take(bucket.retry_after() + 1e-6)


def test_a_clock_that_stands_still_or_is_read_late_adds_nothing() -> None:
    bucket = Bucket("x", (1.0, 1), 10.0)
    assert bucket.take(10.0)
    assert not bucket.take(9.0)
    assert not bucket.take(10.5)
    assert bucket.take(11.0)


def test_the_least_recently_used_bucket_goes_first() -> None:
    limiter = RateLimiter({"x": (0.001, 1)}, {}, most_buckets=2)
    first, second = principal("a"), principal("b")
    assert limiter.of_principal(first, "x", 0.0).take(0.0)
    assert limiter.of_principal(second, "x", 0.0).take(0.0)
    assert not limiter.of_principal(first, "x", 0.0).take(0.0)
    limiter.of_address("192.0.2.1", "x", 0.0)
    assert not limiter.of_principal(first, "x", 0.0).take(0.0), "used last, so it is still known"
    assert limiter.of_principal(second, "x", 0.0).take(0.0), "forgotten, so it starts full"


def test_a_changed_limit_of_a_credential_holds_at_once() -> None:
    limiter = RateLimiter({"x": (1.0, 10)}, {})
    assert limiter.of_principal(principal("a"), "x", 0.0).limit == (1.0, 10)
    assert limiter.of_principal(principal("a", rate_limits={"x": (2.0, 4)}), "x", 0.0).limit == (2.0, 4)
    assert limiter.of_principal(principal("a"), "x", 0.0).limit == (1.0, 10)


@pytest.mark.parametrize(("refill", "capacity", "window"), [(5000, 10_000, 2), (10 / 60, 10, 60), (3, 10, 4)])
def test_the_window_of_a_policy_is_in_whole_seconds(refill: float, capacity: int, window: int) -> None:
    assert Bucket("x", (refill, capacity), 0.0).policy == f'"x";q={capacity};w={window}'
    assert window == math.ceil(capacity / refill - 1e-9)


def test_what_began_together_is_paid_for_later() -> None:
    bucket = Bucket("public", (1.0, 3), 0.0)
    for _ in range(5):
        bucket.owe(0.0)
    assert not bucket.has_token(2.9)
    assert bucket.has_token(3.0)
    for _ in range(100):
        bucket.owe(3.0)
    assert (bucket.has_token(6.9), bucket.has_token(7.0)) == (False, True)
