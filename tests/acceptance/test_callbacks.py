"""Callbacks of every wrong kind at a real service, over both live adapters: refused or kept, and nothing comes of them.

Then the right one comes, and is believed (C29.5); and so is a person who writes (C28).
"""

import asyncio
import gzip
import io
import re
import secrets
import signal
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import asyncpg
import orjson
import pytest
from tests.acceptance.provider_sides import ACCOUNT, BUSINESS, PERSON, SECRET, BridgeSide, CloudSide
from tests.privacy import found_in_logs
from tests.program import Api, Program, Service, free_port, running
from tests.waiting import until

ACCESS_TOKEN = "access-7a1f5c"
LARGEST = 3 * 1024 * 1024


@dataclass
class Place:
    """A live number that has sent one message of which the provider says nothing by itself."""

    service: Service
    api: Api
    side: Any
    session: aiohttp.ClientSession
    database: Any
    message_id: str = ""

    async def post(self, body: bytes, headers: Mapping[str, str]) -> int:
        address = f"{self.service.url}/v2/callbacks/chatapp/{self.side.name}"
        sent = {"Content-Type": "application/json", **headers}
        async with self.session.post(address, data=io.BytesIO(body), headers=sent) as answer:
            await answer.read()
            return answer.status

    async def signed(self, body: bytes) -> int:
        return await self.post(body, self.side.signed(body))

    async def asks_whether_it_is_ours(self, verify_token: str) -> None:
        query = {"hub.mode": "subscribe", "hub.challenge": "1", "hub.verify_token": verify_token}
        address = f"{self.service.url}/v2/callbacks/chatapp/{self.side.name}"
        async with self.session.get(address, params=query) as answer:
            assert answer.status == (401 if self.side.name == "cloud" else 405), await answer.text()

    async def stored(self) -> int:
        count: int = await self.database.fetchval("select count(*) from callbacks")
        return count

    async def worked_off(self) -> None:
        async def none_open() -> bool:
            return not await self.database.fetchval("select count(*) from callbacks where processed_at is null")

        await until(none_open, "every callback is processed")

    async def message(self) -> Any:
        return await self.api.call("GET", f"/messages/{self.message_id}")

    async def send(self) -> None:
        """Register the number, and send the message."""
        new = {"phoneNumberId": ACCOUNT, "businessAccountId": BUSINESS, "displayPhone": "+5511900000000"}
        number = (await self.api.call("POST", "/numbers", {**new, "accessToken": ACCESS_TOKEN}))["id"]

        async def available() -> bool:
            return bool((await self.api.call("GET", f"/numbers/{number}"))["status"] == "available")

        await until(available, "the number is verified", every=0.1)
        await self.api.call("POST", f"/numbers/{number}/connect")
        await self.api.call("POST", "/v2/templates/sync", {"numberId": number})

        async def approved() -> Any:
            held = await self.api.call("GET", "/v2/templates", numberId=number, status="approved")
            return next((each["id"] for each in held["items"] if each["name"] == "order_update"), None)

        template = await until(approved, "the provider's templates are here", every=0.1)
        message = {"numberId": number, "to": PERSON, "type": "template", "templateId": template, "templateVars": ["x"]}
        self.message_id = (await self.api.call("POST", "/messages", message, key=secrets.token_hex(8)))["id"]

        async def sent() -> bool:
            return bool((await self.message())["status"] == "sent")

        await until(sent, "the message is sent", every=0.05)


@pytest.fixture(params=[BridgeSide, CloudSide], ids=["bridge", "cloud"])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    port = free_port()
    side = request.param(port)
    service = Service(tmp_path, LOG_LEVEL="debug", BILLING_ENABLED="false", **side.settings)
    simulator = Program(
        tmp_path,
        "simulator",
        *("simulator", "--listen", f"127.0.0.1:{port}", "--record", str(tmp_path / "record.jsonl")),
        *("--secret", SECRET, "--silent-share", "1"),
    )
    simulator.spawn()
    try:
        await until(lambda: re.search("listens on", simulator.output.read_text()), "the simulator listens")
        async with running(service), aiohttp.ClientSession() as session:
            token = await asyncio.to_thread(service.key, "live")
            database = await asyncpg.connect(**service.cluster().connect_arguments)
            try:
                async with Api(service.url, token) as api:
                    made = Place(service, api, side, session, database)
                    await made.send()
                    yield made
            finally:
                await database.close()
    finally:
        simulator.end(signal.SIGKILL)


def nested(levels: int) -> bytes:
    return b'{"events":' * levels + b"1" + b"}" * levels


async def test_wrong_callbacks_of_every_kind_change_nothing_and_the_right_one_is_believed(place: Place) -> None:
    side, before = place.side, await place.message()
    failed = side.report("failed", place.message_id)

    # Of another hand: refused, and not kept.
    unbelieved: dict[str, Mapping[str, str]] = {
        "none": {},
        "by another secret": side.signed(failed, secret="another"),
        "of another body": side.signed(failed + b" "),
        "empty": dict.fromkeys(side.signed(failed), ""),
        **side.wrong(failed),
    }
    answers = {name: await place.post(failed, headers) for name, headers in unbelieved.items()}
    assert answers == dict.fromkeys(unbelieved, 401)
    enormous = b" " * (LARGEST + 1)
    assert await place.signed(enormous) == 413
    assert await place.stored() == 0

    # Of the right hand, but nothing that anybody understands, or of nobody here: kept, and passed over.
    odd = {
        "nothing": b"",
        "no JSON": b'{"text": "half of a private letter',
        "no text": b"\xff\xfe\x00",
        "compressed": gzip.compress(failed),
        "a list": b"[]",
        "a number": b"7",
        "another object": b'{"object": "page", "events": 1, "entry": {"changes": "half of a private letter"}}',
        "deep": nested(200),
        "deeper": nested(50_000),
        "as large as may be": b'"' + b"x" * (LARGEST - 2) + b'"',
        "many": orjson.dumps({"events": [7] * 50_001, "entry": [7] * 50_001}),
        "of another status": side.report("vanished", place.message_id),
        "of another account": side.report("failed", place.message_id, account="999"),
        "of no message": side.report("failed", "msg_" + "0" * 21),
        "of a strange message": side.report("failed", "x' or 1=1 --\x00", provider_id="\x00"),
    }
    answers = {name: await place.signed(body) for name, body in odd.items()}
    assert answers == dict.fromkeys(odd, 200)
    assert await place.stored() == len(odd)
    await place.worked_off()
    assert await place.message() == before

    # The right one, once more, and at the same time: one row.
    good = side.report("delivered", place.message_id)
    headers = side.signed(good)
    assert await asyncio.gather(*(place.post(good, headers) for _ in range(10))) == [200] * 10
    assert await place.stored() == len(odd) + 1
    await place.worked_off()
    delivered = await place.message()
    assert delivered["status"] == "delivered"
    assert await place.signed(failed) == 200  # too late for a failure
    assert await place.post(good, headers) == 200
    await place.worked_off()
    assert await place.message() == delivered

    assert place.service.running
    await place.asks_whether_it_is_ours("another token to verify with")
    private = [
        SECRET,
        PERSON[1:],
        "5511900000000",
        ACCESS_TOKEN,
        "unheard-of",
        "or 1=1",
        "private letter",
        "to verify with",
    ]
    postgres_log = place.service.data_dir.parent / "postgres.log"
    postgres_log.write_bytes(place.service.cluster().log.read_bytes())
    assert found_in_logs([place.service.log, postgres_log], private) == []


async def test_a_persons_message_makes_a_contact_and_a_keyword_opts_out_once(place: Place) -> None:
    side = place.side
    assert await place.signed(side.inbound("hello", "in-1")) == 200
    stop = side.inbound("Parar!", "in-2")
    assert await asyncio.gather(*(place.signed(stop) for _ in range(5))) == [200] * 5
    await place.worked_off()
    assert await place.signed(side.inbound("Parar!!", "in-2")) == 200  # other bytes, the same message
    await place.worked_off()

    (contact,) = (await place.api.call("GET", "/contacts"))["items"]
    assert (contact["source"], contact["chatappProfileName"]) == ("webhook", "Ana")
    assert (contact["optIn"]["status"], contact["optIn"]["revokedReason"]) == ("denied", "chatapp: parar")
    assert contact["lastInteractionAt"]
    received = (await place.api.call("GET", "/messages", direction="inbound"))["items"]
    assert [each["contactId"] for each in received] == [contact["id"]] * 2
    history = (await place.api.call("GET", f"/contacts/{contact['id']}/consents"))["items"]
    assert [each["to"] for each in history] == ["denied"]
