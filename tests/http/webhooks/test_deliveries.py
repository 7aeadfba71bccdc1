"""Deliveries over HTTP (C23.1): tests of an endpoint, lists and single reads; and the events of records."""

import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.http.webhooks.conftest import Endpoint, emit, listed, subscribe
from tests.waiting import until

from recado.actors.webhooks.webhooks import MOST_TESTS_WAITING, TESTS_EACH
from recado.domain.core.ids import MESSAGE
from recado.domain.core.timestamps import format_timestamp
from recado.storage.webhooks import events
from recado.storage.webhooks.webhooks import SQL, takers_of


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

    item = await until(attempted, "the delivery was attempted")
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


async def test_the_next_attempt_is_told_while_there_will_be_one(api: Any, endpoint: Endpoint) -> None:
    """Not before the next probe of a failing endpoint; of what waits for the subscription's owner, none (C23.2)."""
    path = await subscribe(api, endpoint)
    endpoint.status = 500
    await emit(api)

    async def attempted() -> Any:
        return await api.database.fetchval("select due_at from delivery_queue where attempts = 1")

    due_at = await until(attempted, "the delivery was attempted")

    async def told(status: str, probe_at: datetime | None = None) -> str | None:
        await api.database.execute("update webhook_subscriptions set status = $1, probe_at = $2", status, probe_at)
        listed_one = (await api.get(f"{path}/deliveries")).body["items"][0]
        one = (await api.get(f"{path}/deliveries/{listed_one['id']}")).body
        assert one.get("nextAttemptAt") == listed_one.get("nextAttemptAt")
        found: str | None = one.get("nextAttemptAt")
        return found

    later, sooner = due_at + timedelta(minutes=5), due_at - timedelta(seconds=10)
    assert await told("active") == format_timestamp(due_at)
    assert await told("failing", later) == format_timestamp(later)
    assert await told("failing", sooner) == format_timestamp(due_at)
    assert await told("paused") is None
    assert await told("revoked") is None


async def test_an_answer_to_phones_in_the_clear_stays_hidden_when_they_are_masked_again(
    api: Any, endpoint: Endpoint
) -> None:
    path = await subscribe(api, endpoint, includePii=True, retry={"maxAttempts": 1})
    endpoint.status = 500
    await emit(api, displayPhone="+5511987654321")
    dropped = (await listed(api, path, "dropped"))[0]
    low = await api.key("webhooks:read", "webhooks:write")
    assert (await api.patch(path, {"includePii": False}, token=low)).status == 200

    hidden = (await api.get(f"{path}/deliveries/{dropped['id']}", token=low)).body
    shown = (await api.get(f"{path}/deliveries/{dropped['id']}")).body
    assert "987654321" not in str(hidden)
    assert [one["statusCode"] for one in hidden["attempts"]] == [500]
    assert [one["answer"] for one in shown["attempts"]] == ["+5511987654321"]


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
    await until(lambda: len(endpoint.received) >= 5, "all five events have arrived")
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


async def test_tests_that_wait_for_their_endpoint_are_few_at_a_time(api: Any, endpoint: Endpoint) -> None:
    path = await subscribe(api, endpoint)
    endpoint.gate.clear()
    asked = [asyncio.create_task(api.post(f"{path}/test")) for _ in range(TESTS_EACH + MOST_TESTS_WAITING + 2)]
    await until(lambda: sum(each.done() for each in asked) == 2, "those that find no room are refused")
    refused = [each.result() for each in asked if each.done()]
    assert [(answer.status, answer.headers["Retry-After"]) for answer in refused] == [(503, "10")] * 2
    await until(lambda: len(endpoint.received) == TESTS_EACH, "the first are with the endpoint")
    endpoint.gate.set()
    answers = await asyncio.gather(*asked)
    assert sorted(answer.status for answer in answers) == [200] * (TESTS_EACH + MOST_TESTS_WAITING) + [503] * 2


async def test_the_deliveries_that_tell_of_a_message_are_found_by_it(api: Any, endpoint: Endpoint) -> None:
    """First deliveries and replays, pending and settled; of one subscription, and of one's own messages alone."""
    path, other = await subscribe(api, endpoint), await subscribe(api, endpoint, "message.sent")
    told = [api.ids.new(MESSAGE) for _ in range(3)]
    for message_id in (*told, *told):
        for event in ("message.sent", "message.delivered"):
            await tell(api, event, message_id)
            api.clock.shift(0.7)
    await listed(api, path, "delivered", 12)
    await listed(api, other, "delivered", 6)
    every = (await api.get(f"{path}/deliveries?limit=200")).body["items"]
    mine = [item for item in every if item["messageId"] == told[1]]
    one = f"{path}/deliveries?messageId={told[1]}"
    assert (await api.get(one)).body["items"] == mine
    assert len(mine) == 4
    assert {item["messageId"] for item in (await api.get(f"{other}/deliveries?messageId={told[1]}")).body["items"]} == {
        told[1]
    }
    sent = [item for item in mine if item["event"] == "message.sent"]
    assert (await api.get(f"{one}&event=message.sent")).body["items"] == sent
    assert (await api.get(f"{one}&from={mine[2]['createdAt']}")).body["items"] == mine[:3]
    assert (await api.get(f"{one}&to={mine[2]['createdAt']}")).body["items"] == mine[3:]
    assert (await api.get(f"{one}&status=dropped")).body["items"] == []
    endpoint.gate.clear()
    again = [(await api.post(f"{path}/deliveries/{each['id']}/replay")).body["id"] for each in sent]
    waiting = (await api.get(f"{one}&status=pending")).body["items"]
    assert [item["id"] for item in waiting] == again[::-1]
    endpoint.gate.set()
    await listed(api, path, "delivered", 14)
    pages, cursor = [], ""
    while True:
        page = (await api.get(f"{one}&limit=4{cursor}")).body
        pages.append([item["id"] for item in page["items"]])
        if "nextCursor" not in page:
            break
        cursor = f"&cursor={page['nextCursor']}"
    assert pages == [[*again[::-1], *(item["id"] for item in mine[:2])], [item["id"] for item in mine[2:]]]
    assert (await api.get(f"{path}/deliveries?messageId={told[0]}{cursor}")).code == "INVALID_CURSOR"
    assert (await api.get(f"{path}/deliveries?messageId={api.ids.new(MESSAGE)}")).body["items"] == []
    for wrong in ("", "x" * 65):
        refused = await api.get(f"{path}/deliveries?messageId={wrong}")
        assert (refused.status, refused.code) == (400, "INVALID_PARAMETER"), refused.body


async def test_a_message_of_another_organization_leads_to_no_delivery(api: Any, endpoint: Endpoint) -> None:
    path = await subscribe(api, endpoint)
    theirs = api.ids.new(MESSAGE)
    await tell(api, "message.sent", theirs, organization=1)
    await tell(api, "message.sent", api.ids.new(MESSAGE))
    await listed(api, path, "delivered", 1)
    assert (await api.get(f"{path}/deliveries?messageId={theirs}")).body["items"] == []


async def tell(api: Any, event: str, message_id: str, *, organization: int = 0) -> None:
    """An event of a message, as those who move messages emit it."""
    owner = api.organizations[organization].organization.id
    async with api.database.transaction() as connection:
        takers = takers_of(await connection.fetch(SQL.of_environment, api.organizations[0].organization.id, "test"))
        made = events.emission(
            takers, api.ids, organization_id=owner, env="test", type=event, channel="chatapp", message_id=message_id
        )
        assert made is not None
        told = await events.emit_batch(connection, [made])
    if not organization:
        api.webhooks.queued(list(told))
