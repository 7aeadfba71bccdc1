"""An RCS message goes all the way in the sandbox, over HTTP, and an SMS takes its place (C17)."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from typing import Any

import pytest
from tests.program import Api, Refused, Service
from tests.waiting import until

from recado.domain.core.timestamps import format_timestamp
from recado.engine.clock import SystemClock

ANYBODY = "+5511987650000"
NOT_CAPABLE = "+5511987659010"
UNREACHED = "+5511987659003"
SHORT, RICH, OTP, SMS, SMS_OTP = 1_100, 1_800, 1_300, 1_000, 1_200
TEXT = "Your order is ready."
TWO_SEGMENTS = "x" * 161
LATER = format_timestamp(SystemClock().now() + timedelta(days=1))


class Rcs:
    """One caller of the operations on RCS messages."""

    def __init__(self, api: Api) -> None:
        self.api = api

    async def send(self, to: str = ANYBODY, text: str = TEXT, key: str | None = None, **more: Any) -> Any:
        body = {"to": to, "content": {"text": text}, **more}
        return await self.api.call("POST", "/v2/rcs/messages", body, key=key)

    async def read(self, message_id: str) -> Any:
        return await self.api.call("GET", f"/v2/rcs/messages/{message_id}")

    async def comes_to(self, message_id: str, status: str) -> Any:
        async def came() -> bool:
            return bool((await self.read(message_id))["status"] == status)

        await until(came, f"{message_id} is {status}", every=0.05)
        return await self.read(message_id)

    async def costs(self, message_id: str) -> list[tuple[str, int]]:
        """What the ledger has of it, oldest first."""
        page = await self.api.call("GET", "/v2/wallet/ledger", messageId=message_id)
        return [(each["kind"], each["coins"]) for each in reversed(page["items"])]

    async def balance(self) -> tuple[int, int]:
        wallet = await self.api.call("GET", "/v2/wallet")
        return wallet["balanceCoins"], wallet["heldCoins"]


@pytest.fixture(scope="module")
def caller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The address of the program, and the key of an organization."""
    running = Service(
        tmp_path_factory.mktemp("rcs"),
        SANDBOX_TIME_SCALE="0.01",
        SSRF_ALLOW_CIDRS="127.0.0.0/8",
    )
    try:
        asyncio.run(running.start())
        yield running.url, running.key("test", org=None)
    finally:
        asyncio.run(running.wipe())


@pytest.fixture
async def rcs(caller: tuple[str, str]) -> AsyncIterator[Rcs]:
    async with Api(*caller) as api:
        yield Rcs(api)


async def test_a_message_is_delivered_and_read_and_costs_its_price(rcs: Rcs) -> None:
    sent = await rcs.send(campaignId="tour", metadata={"order": "A-1"})
    assert sent | {"id": "", "createdAt": ""} == {
        "id": "",
        "status": "queued",
        "env": "test",
        "channel": "rcs",
        "route": "easy_rcs",
        "to": ANYBODY,
        "content": {"text": TEXT},
        "campaignId": "tour",
        "metadata": {"order": "A-1"},
        "createdAt": "",
        "billing": {"coins": SHORT},
        "replayed": False,
    }
    read = await rcs.comes_to(sent["id"], "read")
    assert read["sentAt"] <= read["deliveredAt"] <= read["readAt"]
    assert await rcs.costs(sent["id"]) == [("charge", -SHORT)]


@pytest.mark.parametrize(
    ("content", "price"),
    [
        ({"text": "x" * 160}, SHORT),
        ({"text": "x" * 161}, RICH),
        ({"text": "Hello", "suggestions": [{"type": "reply", "text": "Yes", "value": "yes"}]}, RICH),
        ({"card": {"title": "A card", "mediaUrl": "https://example.com/a.png"}}, RICH),
    ],
)
async def test_what_is_more_than_a_short_text_costs_more(rcs: Rcs, content: Any, price: int) -> None:
    sent = await rcs.send(content=content)
    assert (sent["billing"], sent["content"]) == ({"coins": price}, content)
    await rcs.comes_to(sent["id"], "read")


async def test_the_dearer_price_is_held_and_the_rest_is_released_with_the_delivery(rcs: Rcs) -> None:
    balance, held = await rcs.balance()
    sent = await rcs.send(fallback={"text": TWO_SEGMENTS})
    assert (sent["billing"]["coins"], sent["fallback"]) == (
        2 * SMS,
        {"text": TWO_SEGMENTS, "afterSeconds": 3_600, "segments": 2},
    )
    await rcs.comes_to(sent["id"], "read")
    assert await rcs.costs(sent["id"]) == [("charge", -SHORT)]
    assert await rcs.balance() == (balance - SHORT, held)


async def test_a_phone_without_rcs_gets_the_sms_which_is_what_it_costs(rcs: Rcs) -> None:
    balance, held = await rcs.balance()
    sent = await rcs.send(NOT_CAPABLE, fallback={"text": TWO_SEGMENTS})
    delivered = await rcs.comes_to(sent["id"], "delivered")
    assert (delivered["channel"], delivered["content"]) == ("sms", {"text": TEXT})
    assert await rcs.costs(sent["id"]) == [("charge", -2 * SMS)]
    assert await rcs.balance() == (balance - 2 * SMS, held)
    listed = await rcs.api.call("GET", "/v2/rcs/messages", channel="sms", status="delivered")
    assert sent["id"] in [each["id"] for each in listed["items"]]
    assert (await rcs.api.call("GET", "/v2/sms/messages"))["total"] == 0


async def test_a_refusal_without_an_sms_fails_and_costs_nothing(rcs: Rcs) -> None:
    before = await rcs.balance()
    for ending, reason in (("9010", "not_rcs_capable"), ("9001", "invalid_number"), ("9011", "blacklisted")):
        sent = await rcs.send(f"+551198765{ending}")
        failed = await rcs.comes_to(sent["id"], "failed")
        assert failed["failureReason"] == reason
        assert "sentAt" not in failed
    assert await rcs.balance() == before


async def test_what_the_sms_was_refused_for_is_its_failure(rcs: Rcs) -> None:
    before = await rcs.balance()
    sent = await rcs.send("+5511987659001", fallback={"text": "By SMS."})
    failed = await rcs.comes_to(sent["id"], "failed")
    assert (failed["channel"], failed["failureReason"]) == ("sms", "invalid_number")
    assert await rcs.balance() == before


@pytest.mark.parametrize(("ending", "reason"), [("9002", "carrier_rejected"), ("9012", "expired")])
async def test_a_negative_report_fails_it_after_it_left(rcs: Rcs, ending: str, reason: str) -> None:
    sent = await rcs.send(f"+551198765{ending}", fallback={"text": "By SMS."})
    failed = await rcs.comes_to(sent["id"], "failed")
    assert (failed["channel"], failed["failureReason"]) == ("rcs", reason)
    assert failed["sentAt"] <= failed["failedAt"]
    assert await rcs.costs(sent["id"]) == [("charge", -SHORT)]


async def test_one_time_codes_have_a_price_and_a_wait_of_their_own(rcs: Rcs) -> None:
    sent = await rcs.send(route="easy_otp_rcs", fallback={"text": "Your code is 123."})
    assert (sent["billing"]["coins"], sent["fallback"]["afterSeconds"]) == (OTP, 60)
    await rcs.comes_to(sent["id"], "read")
    by_sms = await rcs.send(NOT_CAPABLE, route="easy_otp_rcs", fallback={"text": "Your code is 123."})
    await rcs.comes_to(by_sms["id"], "delivered")
    assert await rcs.costs(by_sms["id"]) == [("charge", -SMS_OTP)]


async def test_a_schedule_is_kept(rcs: Rcs) -> None:
    sent = await rcs.send(scheduledAt=LATER)
    assert (sent["status"], sent["scheduledAt"]) == ("queued", LATER)
    read = await rcs.api.call("GET", f"/v2/rcs/messages/{sent['id']}")
    assert read["waiting"] == {"reason": "scheduled", "until": LATER}


async def test_a_repeat_with_the_same_key_is_the_same_message(rcs: Rcs) -> None:
    first = await rcs.send(key="an rcs")
    again = await rcs.send(key="an rcs")
    assert (again["id"], again["replayed"], again["billing"]) == (first["id"], True, {"coins": SHORT})


async def test_whoever_opted_out_gets_nothing_but_what_answers_them(rcs: Rcs) -> None:
    phone = "+5511912340001"
    waiting = await rcs.send(phone, scheduledAt=LATER)
    await rcs.api.call("POST", "/contacts/opt-out", {"phone": phone})
    withdrawn = await rcs.comes_to(waiting["id"], "failed")
    assert withdrawn["failureReason"] == "opted_out"
    with pytest.raises(Refused) as refused:
        await rcs.send(phone)
    assert (refused.value.status, refused.value.body["code"]) == (422, "CONTACT_OPTED_OUT")
    await rcs.comes_to((await rcs.send(phone, transactional=True))["id"], "read")


async def test_what_people_answer_is_an_sms_of_theirs(rcs: Rcs) -> None:
    phone = "+5511912349007"
    await rcs.comes_to((await rcs.send(phone))["id"], "read")

    async def came() -> bool:
        found = await rcs.api.call("GET", "/messages", channel="sms", direction="inbound", phone=phone)
        return [each["payload"]["text"]["body"] for each in found["items"]] == ["OK"]

    await until(came, "the answer is there", every=0.05)


async def test_it_is_in_no_generic_view_and_in_its_export(rcs: Rcs) -> None:
    sent = await rcs.send(NOT_CAPABLE, fallback={"text": TWO_SEGMENTS})
    await rcs.comes_to(sent["id"], "delivered")
    with pytest.raises(Refused) as refused:
        await rcs.api.call("GET", f"/messages/{sent['id']}")
    assert refused.value.status == 404
    now = SystemClock().now()
    period = {"from": format_timestamp(now - timedelta(hours=1)), "to": format_timestamp(now + timedelta(hours=1))}
    rows = (await rcs.api.call("GET", "/v2/exports/rcs", **period))["items"]
    (row,) = [each for each in rows if each["id"] == sent["id"]]
    assert (row["deliveredVia"], row["segments"], row["status"]) == ("sms", 2, "delivered")


@pytest.mark.parametrize(
    ("body", "paths"),
    [
        ({"content": {}}, ["/content"]),
        ({"content": {"text": "x" * 3_073}}, ["/content/text"]),
        ({"content": {"card": {"title": "x" * 201}}}, ["/content/card/title"]),
        ({"content": {"card": {"title": "x", "description": "x" * 2_001}}}, ["/content/card/description"]),
        ({"content": {"card": {"title": "x", "mediaUrl": "http://example.com"}}}, ["/content/card/mediaUrl"]),
        ({"content": {"text": "x", "suggestions": [{"type": "call", "text": "x", "value": "y"}]}},
         ["/content/suggestions/0/type"]),
        ({"content": {"text": "x", "suggestions": [{"type": "url", "text": "x" * 26, "value": "https://a.example"}]}},
         ["/content/suggestions/0/text"]),
        ({"content": {"card": {"title": "x", "mediaUrl": "https://a..example/b.png"}}}, ["/content/card/mediaUrl"]),
        ({"content": {"text": "x", "suggestions": [{"type": "url", "text": "x", "value": "https://a:0/"}]}},
         ["/content/suggestions/0/value"]),
        ({"content": {"text": "x"}, "fallback": {"text": "x", "afterSeconds": 29}}, ["/fallback/afterSeconds"]),
        ({"content": {"text": "x"}, "fallback": {"text": "x" * 1_531}}, ["/fallback/text"]),
        ({"content": {"card": {"title": "x"}}, "route": "easy_otp_rcs"}, ["/content/card"]),
        ({"content": {"text": "x"}, "route": "premium"}, ["/route"]),
    ],
)  # fmt: skip
async def test_what_is_wrong_is_pointed_at(rcs: Rcs, body: Any, paths: list[str]) -> None:
    with pytest.raises(Refused) as refused:
        await rcs.api.call("POST", "/v2/rcs/messages", {"to": ANYBODY, **body})
    assert refused.value.status == 422
    assert [each["path"] for each in refused.value.body["errors"]] == paths


async def test_a_list_goes_on_with_its_cursor(rcs: Rcs) -> None:
    ids = [(await rcs.send(campaignId="pages"))["id"] for _ in range(3)]
    first = await rcs.api.call("GET", "/v2/rcs/messages", campaignId="pages", limit=2)
    last = await rcs.api.call("GET", "/v2/rcs/messages", campaignId="pages", limit=2, cursor=first["nextCursor"])
    assert [each["id"] for each in first["items"] + last["items"]] == ids[::-1]
    assert "nextCursor" not in last


async def test_a_journey_sends_it_and_goes_on_by_whether_it_was_read(rcs: Rcs) -> None:
    content = {"conteudo": {"text": "Olá, {{1}}!"}, "fallback": {"text": "Olá, {{1}}!"}}
    body = {
        "name": "welcome",
        "gatilho": {"tipo": "api"},
        "inicio": "hello",
        "passos": [
            {
                "id": "hello", "tipo": "enviar", "canal": "rcs", "rcs": content, "proximo": "asked",
                "variaveis": {"1": {"de": "contato", "campo": "name"}},
            },
            {
                "id": "asked", "tipo": "condicao", "sobre": "hello", "sinal": "lido", "janelaMinutos": 5, "sim": "end",
                "nao": "other",
            },
            {"id": "end", "tipo": "fim"},
            {"id": "other", "tipo": "fim"},
        ],
    }  # fmt: skip
    journey = await rcs.api.call("POST", "/v2/journeys", body)
    tried = await rcs.api.call("POST", f"/v2/journeys/{journey['id']}/activate")
    assert tried["status"] == "ativa"
    contact = await rcs.api.call("POST", "/contacts", {"phone": "+5511987651234", "name": "Ana"})
    of = f"/v2/journeys/{journey['id']}"
    entered = await rcs.api.call("POST", f"{of}/entries", {"contato": {"contactId": contact["id"]}})

    async def ended() -> Any:
        found = await rcs.api.call("GET", f"{of}/executions/{entered['executionId']}")
        return found if found["status"] == "concluida" else None

    execution = await until(ended, "it is over")
    assert [step["passo"] for step in execution["passos"]] == ["hello", "asked", "end"]
    message = await rcs.read(execution["passos"][0]["messageId"])
    assert (message["content"], message["fallback"]["text"]) == ({"text": "Olá, Ana!"}, "Olá, Ana!")
    assert message["metadata"]["journeyStepId"] == "hello"


async def test_its_links_lead_on_and_clicks_are_told(rcs: Rcs) -> None:
    content = {
        "text": "See https://example.com/a",
        "suggestions": [{"type": "url", "text": "See", "value": "https://example.com/b"}],
    }
    sent = await rcs.send(
        "+5511987659009", content=content, campaignId="clicks", fallback={"text": "https://example.com/a"}
    )
    short = [sent["content"]["text"].split(" ")[1], sent["content"]["suggestions"][0]["value"]]
    assert all("/l/" in each for each in short)
    assert sent["fallback"]["text"] == short[0]

    async def clicked() -> bool:
        return bool((await rcs.api.call("GET", "/v2/campaigns/clicks"))["clicks"] == 1)

    await until(clicked, "the click is counted", every=0.05)


async def test_its_events_tell_what_carried_it(rcs: Rcs) -> None:
    names = ["rcs.delivered", "rcs.read", "rcs.failed"]
    hook = await rcs.api.call("POST", "/webhooks", {"url": "http://127.0.0.1:1/", "events": names})
    by_rcs = await rcs.send()
    by_sms = await rcs.send(NOT_CAPABLE, fallback={"text": "By SMS."})
    refused = await rcs.send("+5511987659011")
    await rcs.comes_to(by_rcs["id"], "read")
    await rcs.comes_to(by_sms["id"], "delivered")
    await rcs.comes_to(refused["id"], "failed")
    deliveries = f"/webhooks/{hook['id']}/deliveries"

    async def told() -> Any:
        items = (await rcs.api.call("GET", deliveries))["items"]
        payloads = [(await rcs.api.call("GET", f"{deliveries}/{each['id']}"))["payload"] for each in items]
        found = {
            (each["type"], each["data"]["id"], each["data"]["deliveredVia"], each["data"].get("failureReason"))
            for each in payloads
        }
        return found if len(found) == 4 else None

    assert await until(told, "all is told") == {
        ("rcs.delivered", by_rcs["id"], "rcs", None),
        ("rcs.read", by_rcs["id"], "rcs", None),
        ("rcs.delivered", by_sms["id"], "sms", None),
        ("rcs.failed", refused["id"], "rcs", "blacklisted"),
    }
    await rcs.api.call("DELETE", f"/webhooks/{hook['id']}")


async def test_whoever_opts_out_by_a_keyword_is_answered_once(rcs: Rcs) -> None:
    phone = "+5511912348008"
    await rcs.api.call("PATCH", "/v2/organization", {"optOutReply": "You get nothing more."})
    for text in ("SAIR", "stop"):
        await rcs.api.call("POST", "/v2/sandbox/inbound", {"channel": "rcs", "from": phone, "text": text})

    async def answered() -> Any:
        items = (await rcs.api.call("GET", "/v2/rcs/messages"))["items"]
        return [each["content"] for each in items if each["to"] == phone]

    assert await until(answered, "the answer is there", every=0.1) == [{"text": "You get nothing more."}]
    came = (await rcs.api.call("GET", "/messages", channel="sms", direction="inbound", phone=phone))["items"]
    assert [each["payload"]["text"]["body"] for each in came] == ["stop", "SAIR"]
    with pytest.raises(Refused) as refused:
        await rcs.send(phone)
    assert refused.value.body["code"] == "CONTACT_OPTED_OUT"
