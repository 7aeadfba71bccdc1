"""Push through the whole service: from a registration to what was opened, and what tokens do in the sandbox (C22)."""

import os
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.acceptance.sandbox.conftest import Newcomer
from tests.program import Api
from tests.waiting import until

ALL = ["ios", "android", "web"]


async def sent(api: Api, **more: Any) -> Any:
    body = {"title": "Hello", "body": "News", "platforms": ALL, **more}
    return await api.call("POST", "/v2/push/messages", body, key=os.urandom(8).hex())


async def reaches(api: Api, message: Any, status: str) -> Any:
    """The message when it has the status."""
    latest: Any = None

    async def there() -> bool:
        nonlocal latest
        latest = await api.call("GET", f"/v2/push/messages/{message['id']}")
        return bool(latest["status"] == status)

    await until(there, f"the message is {status}", every=0.05)
    return latest


async def test_a_push_reaches_devices_as_their_tokens_say_and_is_opened_once(newcomer: Newcomer) -> None:
    _, customer = await newcomer()  # whose wallet no other test spends
    api = customer.api
    app = await api.call("POST", "/v2/push/apps", {"name": "Acceptance", "platforms": ALL})
    mark = os.urandom(4).hex()
    tokens = [f"{mark}-{n}" for n in range(5)] + [f"{mark}-{end}" for end in ("unregistered", "failed", "retry")]
    devices = [
        await api.call("POST", "/v2/push/tokens", {"appId": app["id"], "token": each, "platform": "ios"})
        for each in tokens
    ]
    before = await api.call("GET", "/v2/wallet")
    message = await sent(api, tokenIds=[each["id"] for each in devices])
    assert (message["reach"], message["billing"]) == (8, {"heldCoins": 32})
    over = await reaches(api, message, "completed")
    assert over["metrics"] == {"reach": 8, "delivered": 6, "opened": 0, "failed": 1, "unregistered": 1}
    assert over["breakdown"]["ios"] == over["metrics"]
    assert over["chargedCoins"] == 24
    after = await api.call("GET", "/v2/wallet")
    assert before["balanceCoins"] - after["balanceCoins"] == 24
    assert after["heldCoins"] == before["heldCoins"]

    dispatches = (await api.call("GET", f"/v2/push/messages/{message['id']}/dispatches"))["items"]
    by_device = {each["deviceId"]: each for each in dispatches}
    states = [by_device[each["id"]]["status"] for each in devices]
    assert states == ["delivered"] * 5 + ["unregistered", "failed", "delivered"]
    path = f"/v2/push/dispatches/{by_device[devices[0]['id']]['id']}/opened"
    assert [(await api.call("POST", path))["counted"] for _ in range(2)] == [True, False]
    assert (await api.call("GET", f"/v2/push/messages/{message['id']}"))["metrics"]["opened"] == 1
    gone = await api.call("GET", f"/v2/push/devices?appId={app['id']}&status=invalid")
    assert [each["id"] for each in gone["items"]] == [devices[5]["id"]]


async def test_a_scheduled_push_leaves_at_its_time(api: Api) -> None:
    app = await api.call("POST", "/v2/push/apps", {"name": "Later", "platforms": ALL})
    device = {"appId": app["id"], "token": os.urandom(8).hex(), "platform": "android"}
    device_id = (await api.call("POST", "/v2/push/tokens", device))["id"]
    at = (datetime.now(UTC) + timedelta(seconds=1.5)).isoformat()
    message = await sent(api, tokenIds=[device_id], scheduledAt=at)
    assert message["status"] == "scheduled"
    over = await reaches(api, message, "completed")
    assert over["startedAt"] >= over["scheduledAt"]
