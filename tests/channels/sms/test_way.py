"""An SMS goes all the way in the sandbox, over HTTP (C16)."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from typing import Any

import aiohttp
import pytest
from tests.program import Api, Refused, Service
from tests.waiting import until

from recado.domain.core.timestamps import format_timestamp
from recado.engine.clock import SystemClock

ANYBODY = "+5511987650000"
PRICE = 1_000  # of a segment of route premium
TWO_SEGMENTS = "x" * 161
ADMIN_TOKEN = "the administrator of these tests"
LATER = format_timestamp(SystemClock().now() + timedelta(days=1))


class Sms:
    """One caller of the operations on SMS."""

    def __init__(self, api: Api) -> None:
        self.api = api

    async def send(self, to: str = ANYBODY, text: str = "Your order is ready.", **more: Any) -> Any:
        return await self.api.call("POST", "/v2/sms/messages", {"to": to, "text": text, **more})

    async def read(self, message_id: str) -> Any:
        return await self.api.call("GET", f"/v2/sms/messages/{message_id}")

    async def comes_to(self, message_id: str, status: str) -> Any:
        async def came() -> bool:
            return bool((await self.read(message_id))["status"] == status)

        await until(came, f"{message_id} is {status}", every=0.05)
        return await self.read(message_id)

    async def balance(self) -> tuple[int, int]:
        wallet = await self.api.call("GET", "/v2/wallet")
        return wallet["balanceCoins"], wallet["heldCoins"]


@pytest.fixture(scope="module")
def caller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The address of the program, and the key of an organization."""
    running = Service(tmp_path_factory.mktemp("sms"), SANDBOX_TIME_SCALE="0.01", ADMIN_TOKEN=ADMIN_TOKEN)
    try:
        asyncio.run(running.start())
        yield running.url, running.key("test", org=None)
    finally:
        asyncio.run(running.wipe())


@pytest.fixture
async def sms(caller: tuple[str, str]) -> AsyncIterator[Sms]:
    async with Api(*caller) as api:
        yield Sms(api)


async def test_an_sms_is_delivered_and_its_record_tells_what_it_took(sms: Sms) -> None:
    sent = await sms.send(text=TWO_SEGMENTS, campaignId="tour", metadata={"order": "A-1"})
    assert sent | {"id": "", "createdAt": ""} == {
        "id": "",
        "status": "queued",
        "env": "test",
        "route": "premium",
        "region": "BR",
        "to": ANYBODY,
        "provider": "sandbox",
        "encoding": "GSM-7",
        "length": 161,
        "segments": 2,
        "campaignId": "tour",
        "metadata": {"order": "A-1"},
        "createdAt": "",
        "billing": {"coins": 2 * PRICE},
        "replayed": False,
    }
    delivered = await sms.comes_to(sent["id"], "delivered")
    assert delivered["sentAt"] <= delivered["deliveredAt"]
    generic = await sms.api.call("GET", f"/messages/{sent['id']}")
    assert (generic["channel"], generic["type"], generic["status"]) == ("sms", "text", "delivered")
    assert generic["payload"] == {"text": {"body": TWO_SEGMENTS}}


@pytest.mark.parametrize(
    ("ending", "status", "reason", "shown"),
    [
        ("9001", "failed", "invalid_number", "failed"),
        ("9002", "undelivered", "carrier_rejected", "failed"),
        ("9006", "delivered", None, "delivered"),
        ("9011", "failed", "blacklisted", "failed"),
        ("9012", "undelivered", "expired", "failed"),
        ("9013", "delivered", None, "delivered"),
    ],
)
async def test_the_last_digits_of_the_phone_say_how_it_ends(
    sms: Sms, ending: str, status: str, reason: str | None, shown: str
) -> None:
    sent = await sms.send(f"+551198765{ending}")
    ended = await sms.comes_to(sent["id"], status)
    assert ended.get("reason") == reason
    generic = await sms.api.call("GET", f"/messages/{sent['id']}")
    assert generic["status"] == shown
    assert generic.get("lastError", "").partition(":")[0] == (reason or "")
    listed = await sms.api.call("GET", "/v2/sms/messages", status=status, phone=f"+551198765{ending}")
    assert [each["id"] for each in listed["items"]] == [sent["id"]]


async def test_what_failed_is_sent_again_as_it_was(sms: Sms) -> None:
    sent = await sms.send("+5511987649001", TWO_SEGMENTS, route="otp")
    await sms.comes_to(sent["id"], "failed")
    again = await sms.api.call("POST", f"/messages/{sent['id']}/reprocess")
    read = await sms.comes_to(again["id"], "failed")
    same = ("route", "text", "segments", "length", "to", "reason")
    assert [read.get(name) for name in same] == [{**sent, "reason": "invalid_number"}.get(name) for name in same]
    assert (await sms.read(sent["id"]))["reason"] == "invalid_number"


async def test_what_is_refused_for_now_waits_for_its_next_try(sms: Sms) -> None:
    sent = await sms.send("+5511987659005")

    async def waits() -> bool:
        read = await sms.api.call("GET", f"/messages/{sent['id']}")
        return bool(read.get("waiting", {}).get("reason") == "retry" and read["attempts"] == 1)

    await until(waits, "it waits for its next try", every=0.05)


async def test_a_preview_tells_size_and_price_and_stores_nothing(sms: Sms) -> None:
    before = (await sms.api.call("GET", "/v2/sms/messages"))["total"]
    body = {"text": "Olá, Ana: já está pronto.", "to": "+351912345678", "route": "otp"}
    plain = await sms.api.call("POST", "/v2/sms/preview", body)
    assert (plain["encoding"], plain["segments"], plain["nonGsm"]) == ("UCS-2", 1, ["á"])
    assert (plain["region"], plain["unitCoins"], plain["totalCoins"]) == ("INTL", 4_200, 4_200)
    assert "transliterated" not in plain
    shorter = await sms.api.call("POST", "/v2/sms/preview", {**body, "transliterate": True})
    assert (shorter["encoding"], shorter["transliterated"]) == ("GSM-7", "Ola, Ana: ja esta pronto.")
    assert (await sms.api.call("GET", "/v2/sms/messages"))["total"] == before


@pytest.mark.parametrize(
    ("body", "code", "path"),
    [
        ({"to": ANYBODY, "text": "x" * 1_531}, "TEXT_TOO_LONG", "/text"),
        ({"to": ANYBODY, "text": "x", "route": "la_dedicada"}, "ROUTE_NOT_AVAILABLE", "/route"),
        ({"to": "12", "text": "x"}, "PHONE_INVALID", "/to"),
        ({"text": "x"}, "RECIPIENT_MISSING", "/to"),
        ({"to": ANYBODY, "text": " "}, "VALIDATION_ERROR", "/text"),
        ({"to": ANYBODY, "text": "x", "route": "cheap"}, "VALIDATION_ERROR", "/route"),
        ({"to": ANYBODY, "text": "x", "metadata": {"1": 2}}, "METADATA_INVALID", "/metadata"),
        ({"to": ANYBODY, "text": "x", "scheduledAt": "2099-01-01T00:00:00Z"}, "SCHEDULE_TOO_FAR", "/scheduledAt"),
        ({"to": ANYBODY, "contactId": "cnt_" + "0" * 21, "text": "x"}, "REFERENCE_NOT_FOUND", "/contactId"),
    ],
)
async def test_what_cannot_be_sent_is_refused_with_its_place(sms: Sms, body: Any, code: str, path: str) -> None:
    before = await sms.balance()
    with pytest.raises(Refused) as refused:
        await sms.api.call("POST", "/v2/sms/messages", body)
    assert (refused.value.status, refused.value.body["code"]) == (422, code)
    assert [each["path"] for each in refused.value.body["errors"]] == [path]
    assert await sms.balance() == before


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"status": "read"}, 422),
        ({"limit": 201}, 422),
        ({"phone": "12"}, 422),
        ({"from": "2026-02-01T00:00:00Z", "to": "2026-01-01T00:00:00Z"}, 422),
        ({"cursor": "x"}, 400),
    ],
)
async def test_a_list_that_cannot_be_is_refused(sms: Sms, query: dict[str, str | int], status: int) -> None:
    with pytest.raises(Refused) as refused:
        await sms.api.call("GET", "/v2/sms/messages", **query)
    assert refused.value.status == status


async def test_a_repeat_with_the_same_key_is_the_same_message(sms: Sms) -> None:
    body = {"to": ANYBODY, "text": "once", "transactional": True}
    first = await sms.api.call("POST", "/v2/sms/messages", body, key="an sms")
    again = await sms.api.call("POST", "/v2/sms/messages", body, key="an sms")
    assert (again["id"], again["replayed"], again["billing"]) == (first["id"], True, first["billing"])


async def test_lists_know_region_and_page(sms: Sms) -> None:
    abroad = [(await sms.send("+351912340000"))["id"] for _ in range(2)]
    listed = await sms.api.call("GET", "/v2/sms/messages", region="INTL", limit=1)
    assert [each["id"] for each in listed["items"]] == [abroad[1]]
    rest = await sms.api.call("GET", "/v2/sms/messages", region="INTL", limit=1, cursor=listed["nextCursor"])
    assert [each["id"] for each in rest["items"]] == [abroad[0]]
    home = await sms.api.call("GET", "/v2/sms/messages", region="BR", phone="+351912340000")
    assert home["items"] == []


async def test_what_is_withdrawn_has_failed_and_costs_nothing(sms: Sms) -> None:
    sent = await sms.send(scheduledAt=LATER)
    assert sent["scheduledAt"] == LATER
    _, held = await sms.balance()
    archived = await sms.api.call("POST", f"/messages/{sent['id']}/archive")
    assert archived["status"] == "failed"
    read = await sms.read(sent["id"])
    assert (read["status"], read["reason"]) == ("failed", "abandoned")
    assert (await sms.balance())[1] <= held - PRICE  # what was sent before may have been charged meanwhile
    with pytest.raises(Refused) as refused:  # an SMS is never archived
        await sms.api.call("POST", f"/messages/{sent['id']}/archive")
    assert (refused.value.status, refused.value.body["detail"]) == (
        409,
        "Only a queued message of channel sms can be archived.",
    )


async def test_whoever_answers_sair_gets_only_what_is_transactional(sms: Sms) -> None:
    leaver = "+5511987659008"
    waiting = await sms.send(leaver, scheduledAt=LATER)
    await sms.comes_to((await sms.send(leaver))["id"], "delivered")
    abandoned = await sms.comes_to(waiting["id"], "failed")
    assert abandoned["reason"] == "abandoned"
    with pytest.raises(Refused) as refused:
        await sms.send(leaver)
    assert refused.value.body["code"] == "CONTACT_OPTED_OUT"
    for more in ({"transactional": True}, {"route": "otp"}):
        await sms.comes_to((await sms.send(leaver, **more))["id"], "delivered")
    heard = await sms.api.call("GET", "/messages", channel="sms", direction="inbound", phone=leaver)
    assert {each["payload"]["text"]["body"] for each in heard["items"]} == {"SAIR"}
    with pytest.raises(Refused) as missing:
        await sms.read(heard["items"][0]["id"])
    assert missing.value.status == 404


async def test_a_person_can_be_played_who_writes_an_sms(sms: Sms) -> None:
    said = {"channel": "sms", "from": "+5511987651111", "text": "OK"}
    message_id = (await sms.api.call("POST", "/v2/sandbox/inbound", said))["messageId"]
    read = await sms.api.call("GET", f"/messages/{message_id}")
    assert (read["channel"], read["direction"], read["status"]) == ("sms", "inbound", "delivered")
    assert "numberId" not in read
    with pytest.raises(Refused) as refused:
        await sms.api.call("POST", "/v2/sandbox/inbound", {"from": "+5511987651111", "text": "OK"})
    assert [each["path"] for each in refused.value.body["errors"]] == ["/numberId"]


async def test_a_deleted_contact_leaves_no_phone_and_no_text(sms: Sms) -> None:
    contact = (await sms.api.call("POST", "/contacts", {"phone": "+5511987652222"}))["id"]
    sent = await sms.api.call("POST", "/v2/sms/messages", {"contactId": contact, "text": "a secret"})
    await sms.comes_to(sent["id"], "delivered")
    await sms.api.call("DELETE", f"/contacts/{contact}")

    async def erased() -> bool:
        return bool((await sms.read(sent["id"]))["to"].endswith("****2222"))

    await until(erased, "the recipient is masked for good", every=0.05)
    generic = await sms.api.call("GET", f"/messages/{sent['id']}")
    assert "payload" not in generic


async def test_scopes_say_who_reads_sends_and_sees_phones(sms: Sms) -> None:
    sent = await sms.send()
    keys = {
        scope: (await sms.api.call("POST", "/v2/api-keys", {"name": scope, "scopes": [scope]}))["token"]
        for scope in ("sms:read", "sms:send")
    }
    read = await sms.api.call("GET", f"/v2/sms/messages/{sent['id']}", token=keys["sms:read"])
    assert read["to"] == "+55*******0000"
    with pytest.raises(Refused) as refused:
        await sms.api.call("POST", "/v2/sms/messages", {"to": ANYBODY, "text": "x"}, token=keys["sms:read"])
    assert refused.value.body["meta"]["requiredScope"] == "sms:send"
    with pytest.raises(Refused) as refused:
        await sms.api.call("GET", "/v2/sms/messages", token=keys["sms:send"])
    assert refused.value.body["meta"]["requiredScope"] == "sms:read"


async def test_a_shortened_link_leads_to_its_address_and_its_clicks_are_counted(sms: Sms) -> None:
    address = "https://shop.example/orders/" + "1" * 200
    body = {"text": f"See {address}.", "shortenLinks": True}
    preview = await sms.api.call("POST", "/v2/sms/preview", body)
    sent = await sms.send(campaignId="clicked", **body)
    assert (sent["segments"], sent["length"]) == (preview["segments"], preview["length"])
    text = (await sms.api.call("GET", f"/messages/{sent['id']}"))["payload"]["text"]["body"]
    short = text.removeprefix("See ").removesuffix(".")
    assert (len(text), len(short) < len(address)) == (sent["length"], True)
    async with aiohttp.ClientSession() as session, session.get(short, allow_redirects=False) as answer:
        assert (answer.status, answer.headers["Location"]) == (302, address)

    async def counted() -> bool:
        return bool((await sms.api.call("GET", "/v2/campaigns/clicked"))["clicks"] == 1)

    await until(counted, "the click is counted", every=0.05)
    await sms.send("+5511987659009", campaignId="opened", **body)

    async def opened() -> bool:
        return bool((await sms.api.call("GET", "/v2/campaigns/opened"))["clicks"] == 1)

    await until(opened, "the sandbox's person opened it", every=0.05)
    again = await sms.send(text=f"See {address}.")
    assert again["segments"] == 2


async def test_a_message_that_is_sent_again_has_links_of_its_own(sms: Sms) -> None:
    """A click in it is one of it, and not of the message that never arrived (C27.1)."""
    addresses = ["https://shop.example/orders/" + "1" * 200, "https://shop.example/help"]
    text = f"See {addresses[0]} or {addresses[1]} or {addresses[0]}"
    sent = await sms.send("+5511987679001", text, shortenLinks=True)
    await sms.comes_to(sent["id"], "failed")
    by_one = await sms.api.call("POST", f"/messages/{sent['id']}/reprocess")
    await sms.comes_to(by_one["id"], "failed")
    resend = await sms.api.call("POST", "/messages/resend", {"channel": "sms", "messageIds": [by_one["id"]]})

    async def made() -> Any:
        return (await sms.api.call("GET", "/messages", batchId=resend["batch"]["id"]))["items"]

    (by_many,) = await until(made, "the resend is made", every=0.1)
    seen: set[str] = set()
    async with aiohttp.ClientSession() as session:
        for message_id in (sent["id"], by_one["id"], by_many["id"]):
            told = (await sms.api.call("GET", f"/messages/{message_id}"))["payload"]["text"]["body"]
            assert len(told) == sent["length"]
            shorts = told.removeprefix("See ").split(" or ")
            for short, address in zip(shorts, [*addresses, addresses[0]], strict=True):
                async with session.get(short, allow_redirects=False) as answer:
                    assert (answer.status, answer.headers["Location"]) == (302, address)
            assert seen.isdisjoint(shorts)
            seen |= {*shorts}
    assert len(seen) == 6


async def test_the_dedicated_route_is_for_whoever_has_a_sender_and_a_grant_is_asked_for_premium_alone(sms: Sms) -> None:
    organization = (await sms.api.call("GET", "/v2/organization"))["id"]
    person = "+5511987653333"

    async def agreed(sender: str | None, wanted: bool) -> None:
        path = f"/v2/admin/organizations/{organization}"
        await sms.api.call("PATCH", path, {"dedicatedSender": sender}, token=ADMIN_TOKEN)
        await sms.api.call("PATCH", "/v2/organization", {"requireGrantedForMarketing": wanted})

    await agreed("28282", True)
    try:
        sent = await sms.send(person, route="la_dedicada")
        assert sent["billing"] == {"coins": 1_100}
        with pytest.raises(Refused) as abroad:
            await sms.send("+351912345678", route="la_dedicada")
        assert abroad.value.body["code"] == "ROUTE_NOT_AVAILABLE"
        with pytest.raises(Refused) as refused:
            await sms.send(person)
        assert refused.value.body["code"] == "CONSENT_REQUIRED"
        await sms.comes_to((await sms.send(person, transactional=True))["id"], "delivered")
    finally:
        await agreed(None, False)
