"""SMS in live, through two bridges: reports, failover, and what people write back (C16.3, C28.1)."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import aiohttp
import orjson
import pytest
from tests.channels.behaviours import resets_after_reading, says
from tests.channels.peer import FakeBridge
from tests.program import Api, Service, free_port
from tests.waiting import until

from recado.channels.core.signing import PROVIDER_SIGNATURE, signature, signing_key
from recado.engine.clock import SystemClock

SECRET = "a secret between the two"
PERSON, ANOTHER, THIRD = "+5511987650001", "+5511987650002", "+5511987650003"
OTHER_PORT, PORT = free_port(), free_port()


def bridge(name: str, port: int) -> dict[str, str]:
    url = f"http://127.0.0.1:{port}"
    return {f"BRIDGE_{name}_URL": url, f"BRIDGE_{name}_TOKEN": "any", f"BRIDGE_{name}_SECRET": SECRET}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """The program, which speaks to two bridges, neither of which is there yet."""
    running = Service(
        tmp_path_factory.mktemp("gateways"), BILLING_ENABLED="false", ADAPTER_SMS="bridge", ADAPTER_SMS_B="bridge",
        **bridge("SMS", PORT), **bridge("SMS_B", OTHER_PORT),
    )  # fmt: skip
    try:
        asyncio.run(running.start())
        yield running
    finally:
        asyncio.run(running.wipe())


@pytest.fixture(scope="module")
def keys(service: Service) -> tuple[str, str]:
    """Of two organizations."""
    service.command("org", "create", "--name", "Other", "--json")
    first, second = [each["id"] for each in service.command("org", "list", "--json")["items"]]
    return service.key("live", org=first), service.key("live", org=second)


class Place:
    """One caller, and the bridge of `gateway_b`."""

    def __init__(self, service: Service, api: Api, bridge: FakeBridge, session: aiohttp.ClientSession) -> None:
        self.api = api
        self.bridge = bridge
        self._service = service
        self._session = session

    async def send(self, to: str, text: str = "hello", **more: Any) -> Any:
        return await self.api.call("POST", "/v2/sms/messages", {"to": to, "text": text, **more})

    async def comes_to(self, message_id: str, status: str) -> Any:
        async def came() -> Any:
            read = await self.api.call("GET", f"/v2/sms/messages/{message_id}")
            return read if read["status"] == status else None

        return await until(came, f"{message_id} is {status}", every=0.05)

    async def tell(self, **event: Any) -> None:
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        body = orjson.dumps({"events": [{"at": at, **event}]})
        headers = {PROVIDER_SIGNATURE: signature([signing_key(SECRET)], body, SystemClock().now())}
        url = f"{self._service.url}/v2/callbacks/sms/bridge_b"
        async with self._session.post(url, data=body, headers=headers) as answer:
            assert answer.status == 200


@pytest.fixture
async def place(service: Service, keys: tuple[str, str]) -> AsyncIterator[Place]:
    """The bridge of `gateway_b` takes everything; at the address of `gateway_a` is nobody."""
    bridge = FakeBridge(says(200, '{"providerMessageId": "p-1"}'))
    await bridge.start(OTHER_PORT)
    try:
        async with Api(service.url, keys[0]) as api, aiohttp.ClientSession() as session:
            yield Place(service, api, bridge, session)
    finally:
        await bridge.stop()


async def test_the_second_gateway_takes_over_and_its_report_is_believed_with_its_receipt(place: Place) -> None:
    sent = await place.send(PERSON, transactional=True)
    assert sent["provider"] == "gateway_a"
    read = await place.comes_to(sent["id"], "sent")
    assert read["provider"] == "gateway_b"
    assert place.bridge.requests[-1].json["account"] == "gateway_b"

    receipt = {"id": "r-1", "status": "DELIVRD", "to": PERSON, "bill_factor": 1, "more": "unknown"}
    await place.tell(kind="status", status="delivered", reference=sent["id"], account="gateway_b", receipt=receipt)
    delivered = await place.comes_to(sent["id"], "delivered")
    assert delivered["providerReceipt"] == {"id": "r-1", "status": "DELIVRD", "to": PERSON, "bill_factor": 1}


async def test_an_answer_is_the_organizations_that_wrote_last_and_a_refusal_all_of_theirs(
    place: Place, service: Service, keys: tuple[str, str]
) -> None:
    await place.comes_to((await place.send(ANOTHER))["id"], "sent")
    async with Api(service.url, keys[1]) as other:
        second = await other.call("POST", "/v2/sms/messages", {"to": ANOTHER, "text": "hello"})

        async def left() -> bool:
            read = await other.call("GET", f"/v2/sms/messages/{second['id']}")
            return bool(read["status"] == "sent")

        await until(left, "the second organization's has left", every=0.05)
        inbound = {"kind": "inbound", "account": "shared", "from": ANOTHER, "type": "text", "providerMessageId": "in-1"}
        await place.tell(**inbound, payload={"text": {"body": "SAIR"}})

        async def came() -> list[Any]:
            listed = await other.call("GET", "/messages", channel="sms", direction="inbound")
            return list(listed["items"])

        (message,) = await until(came, "the answer is there", every=0.05)
        assert message["payload"] == {"text": {"body": "SAIR"}}
    listed = await place.api.call("GET", "/messages", channel="sms", direction="inbound")
    assert listed["items"] == []
    for key in keys:
        async with Api(service.url, key) as api, aiohttp.ClientSession() as session:
            assert api
            headers = {"Authorization": f"Bearer {key}"}
            body = {"to": ANOTHER, "text": "once more"}
            async with session.post(f"{service.url}/v2/sms/messages", json=body, headers=headers) as answer:
                assert (await answer.json())["code"] == "CONTACT_OPTED_OUT"


async def test_a_message_whose_answer_was_lost_is_of_the_gateway_that_reports_it_and_its_person_is_known(
    place: Place,
) -> None:
    place.bridge.behaviour = resets_after_reading
    sent = await place.send(THIRD)

    async def asked() -> bool:
        return any(each.json["id"] == sent["id"] for each in place.bridge.requests)

    await until(asked, "the second gateway has read it", every=0.05)
    await place.tell(kind="status", status="delivered", reference=sent["id"])
    assert (await place.comes_to(sent["id"], "delivered"))["provider"] == "gateway_b"

    inbound = {"kind": "inbound", "account": "shared", "from": THIRD, "type": "text", "providerMessageId": "in-3"}
    await place.tell(**inbound, payload={"text": {"body": "who is this?"}})

    async def came() -> Any:
        listed = await place.api.call("GET", "/messages", channel="sms", direction="inbound")
        return [each["payload"]["text"]["body"] for each in listed["items"]]

    assert await until(came, "the answer is there", every=0.05) == ["who is this?"]
