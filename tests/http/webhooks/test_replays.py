"""Events delivered once more over HTTP (C23.1): one delivery, and the events of a period."""

from datetime import timedelta
from typing import Any

import pytest
from tests.http.webhooks.conftest import Endpoint, emit, listed, subscribe
from tests.waiting import until

from recado.domain.core.timestamps import format_timestamp


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
    await api.database.execute("update webhook_subscriptions set status = 'revoked'")  # its endpoint failed too long
    for remedy in ("set its status to active first.", "create a new one."):
        for replayed in (f"{path}/deliveries/{item['id']}/replay", f"{path}/replay"):
            refused = await api.post(replayed, period(api) if replayed == f"{path}/replay" else None)
            assert (refused.status, refused.code, refused.body["meta"]) == (409, "INVALID_STATE", {"status": "revoked"})
            assert refused.body["detail"].endswith(remedy)
        assert (await api.get(f"{path}/deliveries/{item['id']}")).body["id"] == item["id"]
        await api.delete(path)


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
        lambda: wanted_ones <= {one["data"].get("n") for one in endpoint.received}, "all of the period has arrived"
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


async def test_an_event_past_its_thirty_days_is_told_and_replayed_no_more(api: Any, endpoint: Endpoint) -> None:
    """A late replay of it is younger, and is still listed."""
    path = await subscribe(api, endpoint)
    await emit(api)
    first = (await listed(api, path, "delivered"))[0]
    api.clock.shift(29 * 86_400)
    second = (await api.post(f"{path}/deliveries/{first['id']}/replay")).body
    await listed(api, path, "delivered", 2)
    api.clock.shift(2 * 86_400)
    await api.webhooks.purge(api.clock.now())

    one = await api.get(f"{path}/deliveries/{second['id']}")
    assert (one.status, one.body["status"], len(one.body["attempts"])) == (200, "delivered", 1)
    assert "payload" not in one.body
    refused = await api.post(f"{path}/deliveries/{second['id']}/replay")
    assert (refused.status, refused.code) == (409, "INVALID_STATE")
    assert (await api.get(f"{path}/deliveries?status=pending")).body["items"] == []
