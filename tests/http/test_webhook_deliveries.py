"""Deliveries over HTTP (C23.1): tests of an endpoint, lists, single reads, and replays; and the events of records."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from aiohttp import web
from tests.waiting import until

from recado.domain.timestamps import format_timestamp
from recado.storage import events


class Endpoint:
    """A local endpoint that answers `status`."""

    def __init__(self) -> None:
        self.status = 200
        self.url = ""
        self.received: list[Any] = []


@pytest.fixture
async def endpoint() -> AsyncIterator[Endpoint]:
    made = Endpoint()

    async def handle(request: web.Request) -> web.Response:
        made.received.append(await request.json())
        return web.Response(status=made.status, text="+5511987654321")

    application = web.Application()
    application.router.add_post("/hook", handle)
    runner = web.AppRunner(application, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
    yield made
    await runner.cleanup()


async def subscribe(api: Any, endpoint: Endpoint, *names: str, **fields: Any) -> str:
    answer = await api.post("/webhooks", {"url": endpoint.url, "events": list(names) or ["*"], **fields})
    assert answer.status == 201, answer.body
    return f"/webhooks/{answer.body['id']}"


async def emit(api: Any, event: str = "wallet.depleted", **data: Any) -> None:
    async with api.database.transaction() as connection:
        keys = await events.emit(
            connection,
            api.ids,
            organization_id=api.organizations[0].organization.id,
            env="test",
            type=event,
            data=data,
        )
    api.webhooks.queued(keys)


async def listed(api: Any, path: str, wanted: str, count: int = 1) -> list[Any]:
    """The deliveries of that status, once there are so many."""

    async def enough() -> list[Any]:
        items = (await api.get(f"{path}/deliveries?status={wanted}")).body["items"]
        return list(items) if len(items) >= count else []

    return await until(enough, 10, f"{count} deliveries are {wanted}")


async def test_a_test_tells_what_the_endpoint_answered_and_counts_for_nothing(api: Any, endpoint: Endpoint) -> None:
    path = await subscribe(api, endpoint, "message.failed", "apikey.created")
    good = (await api.post(f"{path}/test")).body
    assert (good["ok"], good["statusCode"]) == (True, 200)
    assert good["durationMs"] >= 0
    assert endpoint.received[0]["test"] is True
    assert list(endpoint.received[0]) == [
        "id", "type", "env", "organizationId", "createdAt", "apiVersion", "test", "data",
    ]  # fmt: skip
    assert endpoint.received[0]["type"] == "message.failed"
    endpoint.status = 503
    bad = (await api.post(f"{path}/test", {"event": "apikey.created"})).body
    assert (bad["ok"], bad["statusCode"], bad["error"]) == (False, 503, "the endpoint answered 503")
    read = (await api.get(path)).body
    assert (read["consecutiveFailures"], "lastSuccessAt" in read) == (0, False)
    items = (await api.get(f"{path}/deliveries")).body["items"]
    assert [(item["id"], item["status"], item["event"]) for item in items] == [
        (bad["deliveryId"], "dropped", "apikey.created"),
        (good["deliveryId"], "delivered", "message.failed"),
    ]
    assert (await api.post(f"{path}/test", {"event": "*"})).status == 422


@pytest.mark.parametrize(
    ("action", "moments"),
    [("test", ()), ("replay", ("from", "to"))],
)
async def test_an_action_meant_for_another_version_is_refused(
    api: Any, endpoint: Endpoint, action: str, moments: tuple[str, ...]
) -> None:
    path = await subscribe(api, endpoint)
    body = dict.fromkeys(moments, api.clock.now().isoformat())
    other = await api.post(f"{path}/{action}", body, headers={"If-Match": '"7"'})
    assert (other.status, other.code, other.body["meta"]) == (412, "VERSION_MISMATCH", {"currentETag": '"1"'})
    assert endpoint.received == []
    this = await api.post(f"{path}/{action}", body, headers={"If-Match": '"1"'})
    assert this.status in (200, 202)


async def test_an_endpoint_that_is_not_there_is_told_of(api: Any) -> None:
    path = f"/webhooks/{(await api.post('/webhooks', {'url': 'http://127.0.0.1:1/', 'events': ['*']})).body['id']}"
    answer = (await api.post(f"{path}/test")).body
    assert answer["ok"] is False
    assert "statusCode" not in answer
    assert answer["error"].startswith("no connection")


async def test_a_delivery_shows_its_payload_and_attempts(api: Any, endpoint: Endpoint) -> None:
    path = await subscribe(api, endpoint, includePii=True)
    endpoint.status = 500
    await emit(api, displayPhone="+5511987654321")

    async def attempted() -> Any:
        pending = (await listed(api, path, "pending"))[0]
        return pending if pending["attemptCount"] else None

    item = await until(attempted, 10, "the delivery was attempted")
    assert (item["lastStatusCode"], item["lastError"]) == (500, "the endpoint answered 500")
    assert item["nextAttemptAt"] > item["createdAt"]
    full = (await api.get(f"{path}/deliveries/{item['id']}")).body
    assert full["payload"]["data"] == {"displayPhone": "+5511987654321"}
    assert full["payload"]["id"] == item["eventId"]
    assert [(one["attempt"], one["statusCode"], one["answer"]) for one in full["attempts"]] == [
        (1, 500, "+5511987654321")
    ]
    low = await api.key("webhooks:read")
    masked = (await api.get(f"{path}/deliveries/{item['id']}", token=low)).body
    assert masked["payload"]["data"] == {"displayPhone": "+55*******4321"}
    assert "987654321" not in str(masked)
    assert (await api.get(f"{path}/deliveries/{item['id']}", organization=1)).status == 404


async def test_deliveries_are_listed_newest_first_page_by_page(api: Any, endpoint: Endpoint) -> None:
    path = await subscribe(api, endpoint)
    for number in range(5):
        await emit(api, "wallet.depleted" if number % 2 else "wallet.low_balance", number=number)
    await listed(api, path, "delivered", 5)
    first = (await api.get(f"{path}/deliveries?limit=3")).body
    second = (await api.get(f"{path}/deliveries?limit=3&cursor={first['nextCursor']}")).body
    ids = [item["id"] for item in (*first["items"], *second["items"])]
    assert len(ids) == 5
    assert ids == sorted(ids, reverse=True)
    assert "nextCursor" not in second
    assert all(item["deliveredAt"] >= item["createdAt"] for item in first["items"])
    depleted = (await api.get(f"{path}/deliveries?event=wallet.depleted")).body["items"]
    assert len(depleted) == 2
    later = format_timestamp(api.clock.now() + timedelta(minutes=1))
    assert (await api.get(f"{path}/deliveries?from={later}")).body["items"] == []
    assert len((await api.get(f"{path}/deliveries?to={later}")).body["items"]) == 5
    assert (await api.get(f"{path}/deliveries?cursor={first['nextCursor']}&limit=3&status=pending")).status == 400


async def test_a_delivery_is_replayed_as_a_new_one_of_the_same_event(api: Any, endpoint: Endpoint) -> None:
    path = await subscribe(api, endpoint)
    await emit(api)
    item = (await listed(api, path, "delivered"))[0]
    again = await api.post(f"{path}/deliveries/{item['id']}/replay")
    assert (again.status, again.body["eventId"]) == (202, item["eventId"])
    assert again.body["id"] != item["id"]
    await listed(api, path, "delivered", 2)
    assert endpoint.received[0] == endpoint.received[1]


async def test_a_replay_of_one_that_is_meant_for_another_version_is_refused(api: Any, endpoint: Endpoint) -> None:
    path = await subscribe(api, endpoint)
    replay = f"{path}/deliveries/{(await api.post(f'{path}/test')).body['deliveryId']}/replay"
    other = await api.post(replay, headers={"If-Match": '"7"'})
    assert (other.status, other.code, other.body["meta"]) == (412, "VERSION_MISMATCH", {"currentETag": '"1"'})
    assert len((await api.get(f"{path}/deliveries")).body["items"]) == 1
    assert (await api.post(replay, headers={"If-Match": '"1"'})).status == 202


async def test_a_pending_delivery_and_a_revoked_subscription_are_not_replayed(api: Any, endpoint: Endpoint) -> None:
    path = await subscribe(api, endpoint)
    endpoint.status = 500
    await emit(api)
    item = (await listed(api, path, "pending"))[0]
    refused = await api.post(f"{path}/deliveries/{item['id']}/replay")
    assert (refused.status, refused.code) == (409, "INVALID_STATE")
    await api.delete(path)
    assert (await api.post(f"{path}/deliveries/{item['id']}/replay")).code == "INVALID_STATE"
    assert (await api.post(f"{path}/replay", period(api))).code == "INVALID_STATE"


def period(api: Any, start: timedelta = timedelta(hours=-1), end: timedelta = timedelta(hours=1), **more: Any) -> Any:
    now = api.clock.now()
    return {"from": format_timestamp(now + start), "to": format_timestamp(now + end), **more}


async def test_a_replay_of_a_period_covers_what_never_arrived(api: Any, endpoint: Endpoint) -> None:
    path = await subscribe(api, endpoint, "wallet.depleted", "wallet.low_balance", retry={"maxAttempts": 1})
    await emit(api, n="arrived")
    await listed(api, path, "delivered")
    endpoint.status = 500
    await emit(api, n="dropped")
    await listed(api, path, "dropped")
    endpoint.status = 200
    await api.patch(path, {"status": "paused"})
    await emit(api, n="while paused")
    await emit(api, "wallet.low_balance", n="of another name")
    await api.post(f"{path}/test")
    await api.patch(path, {"status": "active"})
    wanted = period(api, events=["wallet.depleted", "apikey.created"])
    assert (await api.post(f"{path}/replay", wanted)).body == {"queued": 2}
    wanted_ones = {"arrived", "dropped", "while paused"}
    await until(
        lambda: wanted_ones <= {one["data"].get("n") for one in endpoint.received}, 10, "all of the period has arrived"
    )
    await listed(api, path, "delivered", 4)
    assert (await api.post(f"{path}/replay", wanted)).body == {"queued": 0}
    assert (await api.post(f"{path}/replay", period(api))).body == {"queued": 1}
    await listed(api, path, "delivered", 5)
    assert (await api.post(f"{path}/replay", period(api, onlyFailed=False))).body == {"queued": 4}


@pytest.mark.parametrize(
    ("start", "end", "code"),
    [
        (timedelta(hours=1), timedelta(0), "VALIDATION_ERROR"),
        (timedelta(days=-7, seconds=-1), timedelta(0), "PERIOD_TOO_LONG"),
        (timedelta(days=-31), timedelta(days=-30), "VALIDATION_ERROR"),
    ],
)
async def test_periods_that_cannot_be_replayed_are_refused(
    api: Any, endpoint: Endpoint, start: timedelta, end: timedelta, code: str
) -> None:
    path = await subscribe(api, endpoint)
    refused = await api.post(f"{path}/replay", period(api, start, end))
    assert (refused.status, refused.code) == (422, code)
    assert (await api.post(f"{path}/replay", {})).status == 422


async def test_a_period_at_the_end_of_time_holds_nothing(api: Any, endpoint: Endpoint) -> None:
    path = await subscribe(api, endpoint)
    last = {"from": "9999-12-31T00:00:00Z", "to": "9999-12-31T23:59:59.999999Z"}
    answer = await api.post(f"{path}/replay", last)
    assert (answer.status, answer.body) == (202, {"queued": 0})


async def test_what_happens_to_records_is_told(api: Any, endpoint: Endpoint) -> None:
    await subscribe(api, endpoint)
    key = (await api.post("/v2/api-keys", {"name": "Shop", "scopes": ["messages:read"]})).body
    rotated = (await api.post(f"/v2/api-keys/{key['id']}/rotate", {"graceSeconds": 60})).body
    number = api.organizations[0].number
    await api.post(f"/v2/sandbox/numbers/{number.id}", {"qualityRating": "red"})
    await api.post(f"/v2/sandbox/numbers/{number.id}", {"qualityRating": "red", "status": "disconnected"})
    await api.post(f"/v2/sandbox/numbers/{number.id}", {"status": "connected"})
    template = (
        await api.post(
            "/v2/templates",
            {
                "numberId": number.id,
                "name": "hello",
                "language": "pt-BR",
                "category": "utility",
                "components": [{"type": "BODY", "payload": {"text": "Oi"}}],
            },
        )
    ).body
    for decided in ("approved", "paused", "approved", "rejected"):
        assert (await api.post(f"/v2/sandbox/templates/{template['id']}", {"status": decided})).status == 200
    await until(lambda: len(endpoint.received) >= 5, 10, "all five events have arrived")
    told = {one["type"]: one["data"] for one in endpoint.received}
    assert len(endpoint.received) == 5
    created = {name: key[name] for name in ("id", "name", "env", "scopes", "prefix", "createdById")}
    assert told["apikey.created"] == created
    assert told["apikey.rotated"] == {
        **created, "prefix": rotated["prefix"], "previousValidUntil": rotated["previousValidUntil"],
    }  # fmt: skip
    quality = told["number.quality_changed"]
    assert quality["numberId"] == number.id
    assert quality["displayPhone"].count("*") >= 4
    assert (quality["previous"]["qualityRating"], quality["current"]["qualityRating"]) == ("green", "red")
    assert told["template.approved"]["id"] == template["id"]
    assert told["template.rejected"]["rejectionReason"] == "rejected in simulation"
