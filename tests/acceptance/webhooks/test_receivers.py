"""Receivers from other hands believe what the service delivers, while secrets change too, and nothing else (C23.4)."""

import base64
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest
from tests.acceptance.webhooks.conftest import Receiver
from tests.program import Api
from tests.waiting import until

KINDS = ["python", pytest.param("node", marks=pytest.mark.node), "page"]


@dataclass
class Subscribed:
    """A subscription whose receiver starts out with its secret."""

    api: Api
    receiver: Receiver
    url: str
    path: str
    secret: str
    keys: list[str] = field(default_factory=list)

    async def delivered(self) -> bool:
        """Make something happen, and tell what the receiver thought of hearing of it."""
        before = len(self.receiver.received)
        await self.api.call("POST", "/v2/api-keys", {"name": "A key", "scopes": ["messages:read"]})
        await until(lambda: len(self.receiver.received) > before, "the delivery has arrived")
        return bool(self.receiver.received[before]["accepted"])

    async def tested(self) -> Any:
        return await self.api.call("POST", f"{self.path}/test")

    async def rotate(self, hours: int) -> str:
        return str((await self.api.call("POST", f"{self.path}/rotate", {"graceHours": hours}))["secret"])


@pytest.fixture
def subscribe(api: Api, start_receiver: Callable[[str], Receiver]) -> Callable[[str], Awaitable[Subscribed]]:
    async def make(kind: str) -> Subscribed:
        receiver = start_receiver(kind)
        url = await receiver.url()
        made = await api.call("POST", "/webhooks", {"url": url, "events": ["apikey.created"]})
        receiver.believe(made["secret"])
        return Subscribed(api, receiver, url, f"/webhooks/{made['id']}", made["secret"])

    return make


@pytest.mark.parametrize("kind", KINDS)
async def test_a_receiver_believes_deliveries_by_the_former_and_the_new_secret_while_they_change(
    subscribe: Callable[[str], Awaitable[Subscribed]], kind: str
) -> None:
    one = await subscribe(kind)
    assert await one.delivered()

    second = await one.rotate(24)
    assert await one.delivered()
    one.receiver.believe(second)
    assert await one.delivered()

    third = await one.rotate(0)
    refused = await one.tested()
    assert (refused["ok"], refused["statusCode"]) == (False, 400)
    one.receiver.believe(third)
    assert await one.delivered()
    assert (await one.tested())["ok"] is True
    await one.api.call("DELETE", one.path)


Delivery = tuple[dict[str, str], str]


def later(value: str) -> str:
    return str(int(value) + 1)


def turned(value: str) -> str:
    """Another signature of the same length: its first byte is another one."""
    label, _, digest = value.rpartition(",")
    raw = base64.b64decode(digest)
    return f"{label},{base64.b64encode(bytes([raw[0] ^ 1]) + raw[1:]).decode()}"


def ours_turned(value: str) -> str:
    return value[:-1] + ("0" if value[-1] != "0" else "1")


TAMPERED: Mapping[str, Callable[[Mapping[str, str], str], Delivery]] = {
    "another body": lambda head, body: ({**head}, body.replace("A key", "My key")),
    "a byte more": lambda head, body: ({**head}, f"{body} "),
    "another time": lambda head, body: (
        {
            **head,
            "webhook-timestamp": later(head["webhook-timestamp"]),
            "x-svc-signature": head["x-svc-signature"].replace(
                f"t={head['webhook-timestamp']}", f"t={later(head['webhook-timestamp'])}"
            ),
        },
        body,
    ),
    "another signature": lambda head, body: (
        {
            **head,
            "webhook-signature": turned(head["webhook-signature"]),
            "x-svc-signature": ours_turned(head["x-svc-signature"]),
        },
        body,
    ),
    "no signature": lambda head, body: (
        {name: value for name, value in head.items() if not name.endswith("-signature")},
        body,
    ),
}


@pytest.mark.parametrize("kind", KINDS)
async def test_a_receiver_refuses_what_was_tampered_with_or_signed_by_another(
    subscribe: Callable[[str], Awaitable[Subscribed]], kind: str
) -> None:
    one = await subscribe(kind)
    assert await one.delivered()
    genuine = one.receiver.received[-1]
    headers = {name: value for name, value in genuine["headers"].items() if name not in ("host", "content-length")}

    async with aiohttp.ClientSession() as session:

        async def status(delivery: Delivery) -> int:
            async with session.post(one.url, headers=delivery[0], data=delivery[1].encode()) as answer:
                return answer.status

        assert await status((headers, genuine["body"])) == 204
        answers = {name: await status(tamper(headers, genuine["body"])) for name, tamper in TAMPERED.items()}
        assert answers == dict.fromkeys(TAMPERED, 400)
        other = await one.api.call("POST", "/webhooks", {"url": one.url, "events": ["apikey.rotated"]})
        assert (await one.api.call("POST", f"/webhooks/{other['id']}/test"))["statusCode"] == 400
    for subscription in (one.path, f"/webhooks/{other['id']}"):
        await one.api.call("DELETE", subscription)


async def test_a_receiver_that_checks_the_event_s_id_refuses_another(
    subscribe: Callable[[str], Awaitable[Subscribed]],
) -> None:
    one = await subscribe("python")
    assert await one.delivered()
    genuine = one.receiver.received[-1]
    headers = {name: value for name, value in genuine["headers"].items() if name not in ("host", "content-length")}
    headers["webhook-id"] = headers["webhook-id"][:-1] + "_"
    async with (
        aiohttp.ClientSession() as session,
        session.post(one.url, headers=headers, data=genuine["body"].encode()) as answer,
    ):
        assert answer.status == 400
    await one.api.call("DELETE", one.path)
