"""The simulated hosted API as the adapter `cloud` meets it: sends, errors, operations, webhooks, and its control."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
from aiohttp import web
from tests.waiting import until

from recado.channels.chatapp.cloud import Cloud
from recado.channels.provider import (
    Accepted,
    Account,
    Down,
    Event,
    Inbound,
    NumberStatus,
    OutboundMessage,
    Preference,
    ProviderError,
    Refused,
    Retry,
    SlowDown,
    SlowPair,
    Status,
    TemplateStatus,
    TemplateSubmission,
    Unknown,
)
from recado.cli.simulator import cloud_api
from recado.cli.simulator.behaviour import Given, Shares
from recado.cli.simulator.options import SimulatorOptions
from recado.cli.simulator.record import read_record, unsent
from recado.cli.simulator.server import Simulator
from recado.engine.clock import SystemClock

APP_SECRET = "the application's secret"
MESSAGE = OutboundMessage(
    id="msg_0000000100000000000a1",
    organization_id="org_1",
    env="live",
    channel="chatapp",
    number_id="num_1",
    to="+5511987654321",
    type="text",
    payload={"text": {"body": "the secret of the house"}},
)
ACCOUNT = Account(
    number_id="num_1",
    organization_id="org_1",
    env="live",
    phone_number_id="106540352242922",
    business_account_id="102290129340398",
    access_token="EAAB",
)
TEMPLATE = TemplateSubmission(
    id="tpl_1",
    name="ola",
    language="pt-BR",
    category="utility",
    components=[
        {"type": "BODY", "payload": {"text": "Olá {{1}}!", "example": ["Ana"]}},
        {"type": "BUTTONS", "payload": {"buttons": [{"type": "QUICK_REPLY", "text": "Sim"}]}},
    ],
)


class Service:
    """Takes what is signed, in the order in which it comes."""

    def __init__(self) -> None:
        self.cloud = Cloud(url="http://127.0.0.1:1", app_secret=APP_SECRET, clock=SystemClock())
        self.events: list[Event] = []
        self.bodies: list[bytes] = []
        self.unsigned = 0
        self.refuses = False
        self.url = ""
        self._changed = asyncio.Condition()
        self._runner: web.ServerRunner | None = None

    async def start(self) -> None:
        self._runner = web.ServerRunner(web.Server(self._handle), handle_signals=False, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v2/callbacks/chatapp/cloud"

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def until(self, condition: Callable[["Service"], bool]) -> None:
        async with asyncio.timeout(20), self._changed:
            await self._changed.wait_for(lambda: condition(self))

    async def has(self, count: int) -> list[Any]:
        await self.until(lambda it: len(it.events) >= count)
        return self.events

    async def _handle(self, request: web.BaseRequest) -> web.Response:
        body = await request.read()
        async with self._changed:
            self._changed.notify_all()
            if not self.cloud.verify_callback(request.headers, body, SystemClock().now()):
                self.unsigned += 1
                return web.Response(status=401)
            if self.refuses:
                return web.Response(status=503)
            self.bodies.append(body)
            self.events += self.cloud.parse_callback(request.headers, body)
        return web.Response(body=b"{}")


@dataclass
class Stage:
    simulator: Simulator
    cloud: Cloud
    record: Path

    async def control(self, path: str, **body: Any) -> Any:
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{self.simulator.url}/control/{path}", data=orjson.dumps(body)) as answer,
        ):
            return answer.status, orjson.loads(await answer.read())


Play = Callable[..., Awaitable[Stage]]


@pytest.fixture
async def app() -> AsyncIterator[Service]:
    service = Service()
    await service.start()
    yield service
    await service.stop()


@pytest.fixture
async def play(app: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Play]:
    """Start a simulator with those shares, and an adapter in front of it."""
    monkeypatch.setattr(cloud_api, "REVIEW_SECONDS", 0.0)
    parts: list[Any] = []

    async def start(timeout: float = 10.0, **options: Any) -> Stage:
        shares = {name: options.pop(name) for name in list(options) if name in Shares.__slots__}
        simulator = Simulator(
            SimulatorOptions(
                **{
                    "record": tmp_path / "record.jsonl",
                    "secret": "s",
                    "app_secret": APP_SECRET,
                    "cloud_callback_url": app.url,
                    "shares": Shares(**shares),
                    "receipt_delay": 0.002,
                    "gather_seconds": 0,
                    "retry_after": 3,
                    **options,
                }
            )
        )
        await simulator.start()
        parts.append(simulator)
        cloud = Cloud(url=f"{simulator.url}/v24.0", app_secret=APP_SECRET, clock=SystemClock(), timeout=timeout)
        await cloud.start()
        parts.append(cloud)
        return Stage(simulator, cloud, tmp_path / "record.jsonl")

    yield start
    for part in reversed(parts):
        await part.stop()


async def test_an_accepted_message_is_recorded_and_reported(play: Play, app: Service) -> None:
    stage = await play()

    outcome = await stage.cloud.send(MESSAGE, ACCOUNT, 1)

    assert isinstance(outcome, Accepted)
    (request,) = read_record(stage.record)
    assert (request.id, request.number, request.outcome) == (MESSAGE.id, ACCOUNT.phone_number_id, Given.ACCEPTED)
    for personal in ("secret of the house", "87654321", "EAAB"):
        assert personal not in stage.record.read_text()
    events = await app.has(3)
    assert [event.status for event in events] == ["sent", "delivered", "read"]
    for event in events:
        assert isinstance(event, Status)
        assert (event.reference, event.provider_message_id) == (MESSAGE.id, outcome.provider_message_id)
        assert event.account == ACCOUNT.phone_number_id


@pytest.mark.parametrize(
    ("shares", "outcome"),
    [({"slow_down": 1}, SlowDown(3.0)), ({"error": 1}, Unknown()), ({"lost": 1}, Unknown())],
)
async def test_trouble_comes_in_the_words_of_the_api(shares: dict[str, float], outcome: Any, play: Play) -> None:
    stage = await play(timeout=0.3, **shares)

    assert await stage.cloud.send(MESSAGE, ACCOUNT, 1) == outcome


async def test_a_refusal_has_a_code_that_the_service_knows(play: Play) -> None:
    stage = await play(refuse=1)

    outcome = await stage.cloud.send(MESSAGE, ACCOUNT, 1)

    assert isinstance(outcome, Refused)
    assert outcome.code != "provider_error"


async def test_seeded_codes_meet_the_share_that_was_asked_for(play: Play) -> None:
    stage = await play(codes={131056: 0.5, 368: 0.1}, silent=1)

    outcomes = [await stage.cloud.send(replace(MESSAGE, id=f"msg_{number:021}"), ACCOUNT, 1) for number in range(200)]

    assert 70 <= outcomes.count(SlowPair(6.0)) <= 130
    assert 8 <= outcomes.count(Down("account_blocked")) <= 40
    assert [it.outcome for it in read_record(stage.record)].count(Given.CODED) == sum(
        not isinstance(outcome, Accepted) for outcome in outcomes
    )


async def test_the_next_sends_meet_the_errors_that_were_ordered(play: Play) -> None:
    stage = await play(silent=1)
    assert (await stage.control("errors", code=131000, times=2))[0] == 200
    await stage.control("errors", code=190, number=ACCOUNT.phone_number_id)

    outcomes = [await stage.cloud.send(MESSAGE, ACCOUNT, 1) for _ in range(4)]

    assert outcomes[:3] == [Down("unauthorized"), Retry(None), Retry(None)]
    assert isinstance(outcomes[3], Accepted)


async def test_receipts_may_come_early_twice_and_in_another_order(play: Play, app: Service) -> None:
    stage = await play(early=1, duplicate=1, shuffle=1)

    await stage.cloud.send(MESSAGE, ACCOUNT, 1)

    assert app.events, "the first receipt had been taken when the answer came"
    events = await app.has(5)
    assert sorted(event.status for event in events) == ["delivered", "delivered", "read", "read", "sent"]


async def test_a_failed_delivery_tells_its_code(play: Play, app: Service) -> None:
    stage = await play(undelivered=1, unreferenced=1)

    await stage.cloud.send(MESSAGE, ACCOUNT, 1)

    event = (await app.has(2))[1]
    assert (event.status, event.code, event.reference) == ("failed", "recipient_unreachable", None)


# Templates, numbers, media --------------------------------------------------------------------------------------------


async def test_a_template_is_pending_then_judged_listed_sent_and_deleted(play: Play, app: Service) -> None:
    stage = await play(silent=1)
    message = replace(
        MESSAGE, type="template", payload=None, template_name="ola", template_language="pt-BR", template_vars=["Ana"]
    )
    assert await stage.cloud.send(message, ACCOUNT, 1) == Refused("template_unavailable", "as the simulation has it")

    submission = await stage.cloud.submit_template(ACCOUNT, TEMPLATE)

    (verdict,) = await app.has(1)
    assert isinstance(verdict, TemplateStatus)
    assert (verdict.status, verdict.provider_template_id) == ("approved", submission.provider_template_id)
    assert verdict.business_account == ACCOUNT.business_account_id
    held = {each.name: each for each in await stage.cloud.list_templates(ACCOUNT)}
    assert sorted(held) == ["login_code", "news", "ola", "order_update"]
    assert (held["ola"].language, held["ola"].status, held["ola"].components) == (
        "pt-BR",
        "approved",
        TEMPLATE.components,
    )
    assert isinstance(await stage.cloud.send(message, ACCOUNT, 1), Accepted)
    outcome = await stage.cloud.send(replace(message, template_vars=["Ana", "x"]), ACCOUNT, 1)
    assert outcome == Refused("template_vars", "as the simulation has it")

    await stage.control(f"templates/{submission.provider_template_id}", status="PAUSED")
    assert isinstance(await stage.cloud.send(message, ACCOUNT, 1), Refused)
    await stage.cloud.delete_template(ACCOUNT, "ola", submission.provider_template_id)
    assert len(await stage.cloud.list_templates(ACCOUNT)) == 3
    with pytest.raises(ProviderError, match="refused"):
        await stage.cloud.delete_template(ACCOUNT, "ola", submission.provider_template_id)


async def test_a_template_whose_name_asks_for_it_is_rejected_and_a_second_of_its_name_refused(
    play: Play, app: Service
) -> None:
    stage = await play()
    template = replace(TEMPLATE, name="reject_me")

    await stage.cloud.submit_template(ACCOUNT, template)
    with pytest.raises(ProviderError, match="refused"):
        await stage.cloud.submit_template(ACCOUNT, template)

    (verdict,) = await app.has(1)
    assert (verdict.status, verdict.reason) == ("rejected", "INCORRECT_CATEGORY")


async def test_many_templates_are_listed_over_several_pages(play: Play) -> None:
    stage = await play(cloud_callback_url=None)
    for number in range(120):
        await stage.cloud.submit_template(ACCOUNT, replace(TEMPLATE, name=f"t{number}"))

    held = await stage.cloud.list_templates(ACCOUNT)

    assert len({each.provider_template_id for each in held}) == len(held) == 123


async def test_a_number_is_registered_described_and_let_go(play: Play) -> None:
    stage = await play(silent=1)

    await stage.cloud.disconnect(ACCOUNT)
    assert (await stage.cloud.number_health(ACCOUNT)).status == "disconnected"
    assert await stage.cloud.send(MESSAGE, ACCOUNT, 1) == Down("not_registered")
    await stage.cloud.connect(ACCOUNT)
    await stage.cloud.update_profile(ACCOUNT, {"about": "Oi", "website": "https://a.example"})

    health = await stage.cloud.number_health(ACCOUNT)
    assert (health.verified, health.status, health.quality_rating) == (True, "connected", "green")
    assert (health.messaging_tier, health.per_second, health.name_status) == ("unlimited", 80, "approved")
    assert health.profile == {"about": "Oi", "website": "https://a.example"}
    assert isinstance(await stage.cloud.send(MESSAGE, ACCOUNT, 1), Accepted)


async def test_media_goes_up_and_comes_down(play: Play) -> None:
    stage = await play(silent=1)
    content = bytes(range(256)) * 4_000

    async def chunks() -> AsyncIterator[bytes]:
        for start in range(0, len(content), 65_536):
            yield content[start : start + 65_536]

    media_id = await stage.cloud.upload_media(
        ACCOUNT, chunks(), size=len(content), mime_type="image/png", filename='a"b.png'
    )
    async with stage.cloud.open_media(ACCOUNT, media_id) as media:
        read = b"".join([chunk async for chunk in media.chunks])

    assert read == content
    assert (media.mime_type, media.size) == ("image/png", len(content))
    message = replace(MESSAGE, type="media", payload={"kind": "image", "media": {"id": media_id}})
    assert isinstance(await stage.cloud.send(message, ACCOUNT, 1), Accepted)
    message = replace(MESSAGE, type="media", payload={"kind": "image", "media": {"id": "1"}})
    assert await stage.cloud.send(message, ACCOUNT, 1) == Refused("media_invalid", "as the simulation has it")
    with pytest.raises(ProviderError, match="not_found"):
        async with stage.cloud.open_media(ACCOUNT, "1"):
            pass


# Control --------------------------------------------------------------------------------------------------------------


async def test_quality_and_tier_change_on_demand_with_their_webhooks(play: Play, app: Service) -> None:
    stage = await play()
    path = f"numbers/{ACCOUNT.phone_number_id}"
    await stage.control(path, business_account="102290129340398", display_phone_number="5511900000000")
    named = {"business_account": "102290129340398", "phone": "5511900000000"}

    await stage.control(path, quality_rating="RED")
    assert (await stage.cloud.number_health(ACCOUNT)).status == "flagged"
    await stage.control(path, quality_rating="GREEN")
    await stage.control(path, messaging_limit="TIER_1K")
    await stage.control(path, name_status="DECLINED")

    before = await stage.cloud.number_health(ACCOUNT)
    assert (await stage.control(path, messaging_limit="TIER_9", quality_rating="RED"))[0] == 400
    assert await stage.cloud.number_health(ACCOUNT) == before

    events = await app.has(4)
    assert [replace(event, at=None) for event in events] == [
        NumberStatus(None, None, "flagged", tier="unlimited", **named),
        NumberStatus(None, None, "connected", tier="unlimited", **named),
        NumberStatus(None, None, tier="tier_1k", **named),
        NumberStatus(None, None, name_status="rejected", **named),
    ]
    health = await stage.cloud.number_health(ACCOUNT)
    assert (health.status, health.quality_rating, health.messaging_tier) == ("connected", "green", "tier_1k")


async def test_people_write_and_choose_on_demand(play: Play, app: Service) -> None:
    stage = await play()
    number = ACCOUNT.phone_number_id

    status, answer = await stage.control("inbound", number=number, **{"from": "+5511987654321"}, text="Oi", name="Ana")
    image = {"type": "image", "image": {"id": "77", "mime_type": "image/png"}}
    await stage.control("inbound", number=number, **{"from": "5511987654321"}, message=image, quoted="sim_1")
    await stage.control("preferences", number=number, **{"from": "5511987654321"}, value="stop")
    await stage.control("accounts/9", event="PARTNER_REMOVED", waba_info={"waba_id": "9", "owner_business_id": "8"})

    text, picture, preference, removal = await app.has(4)
    assert isinstance(text, Inbound)
    assert status == 200
    assert (text.account, text.sender, text.provider_message_id) == (number, "5511987654321", answer["id"])
    assert (text.payload, text.profile_name) == ({"text": {"body": "Oi"}}, "Ana")
    assert (picture.media_ref, picture.quoted, picture.payload["kind"]) == ("77", "sim_1", "image")
    assert isinstance(preference, Preference)
    assert preference.stopped
    assert (removal.business_account, removal.partner_removed) == ("9", "PARTNER_REMOVED")


async def test_people_write_at_a_rate(play: Play, app: Service) -> None:
    stage = await play()

    _, answer = await stage.control(
        "inbound-rate", number=ACCOUNT.phone_number_id, **{"from": "5511900000001"}, perSecond=1000, seconds=0.05
    )

    events = await app.has(50)
    assert answer["count"] == 50
    assert len({event.sender for event in events}) == 50


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("dances", {}),
        ("inbound", {}),
        ("inbound", {"number": "1", "from": "Ana"}),
        ("numbers/1", {"colour": "red"}),
        ("templates/1", {"status": "PAUSED"}),
        ("inbound-rate", {"number": "1", "from": "1", "perSecond": 0, "seconds": 1}),
        ("errors", {"code": "x"}),
    ],
)
async def test_an_order_that_makes_no_sense_is_refused(path: str, body: dict[str, Any], play: Play) -> None:
    stage = await play()

    assert (await stage.control(path, **body))[0] == 400


# The other side of it -------------------------------------------------------------------------------------------------


async def test_nobody_is_let_in_without_a_token_and_no_other_request_is_understood(play: Play) -> None:
    stage = await play()
    url = f"{stage.simulator.url}/v24.0/1"
    async with aiohttp.ClientSession() as session:
        async with session.post(f"{url}/messages", data=b"{}") as answer:
            assert (answer.status, (await answer.json())["error"]["code"]) == (401, 190)
        headers = {"Authorization": "Bearer t"}
        for body in (b"", b"[]", b"{}", b'{"messaging_product": "other"}', b'{"messaging_product": "whatsapp"}'):
            async with session.post(f"{url}/messages", data=body, headers=headers) as answer:
                assert (answer.status, (await answer.json())["error"]["code"]) == (400, 100)
        async with session.post(f"{url}/dances", data=b"{}", headers=headers) as answer:
            assert answer.status == 404
        async with session.get(url, headers=headers) as answer:
            assert answer.status == 400
    assert read_record(stage.record) == []


@pytest.mark.parametrize("protocol", ["cloud", "bridge"])
async def test_one_protocol_alone_knows_nothing_of_the_other(protocol: str, play: Play) -> None:
    stage = await play(protocol=protocol)
    headers = {"Authorization": "Bearer t"}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{stage.simulator.url}/send", data=b"{}", headers=headers) as answer,
    ):
        known = "error" not in await answer.json()

    assert known is (protocol == "bridge")
    assert isinstance(await stage.cloud.send(MESSAGE, ACCOUNT, 1), Accepted) is (protocol == "cloud")


async def test_receipts_that_were_left_are_sent_by_the_next_life(play: Play, app: Service) -> None:
    first = await play(receipt_delay=0.0)
    app.refuses = True
    outcome = await first.cloud.send(MESSAGE, ACCOUNT, 1)
    await first.cloud.submit_template(ACCOUNT, TEMPLATE)
    await first.simulator.stop()
    assert isinstance(outcome, Accepted)
    assert [place for _, place in unsent(first.record)] == [0, 1, 2]

    app.refuses = False
    second = await play()

    statuses = [event for event in await app.has(3) if isinstance(event, Status)]
    assert [event.status for event in statuses] == ["sent", "delivered", "read"]
    assert {event.reference for event in statuses} == {MESSAGE.id}
    await until(lambda: not unsent(second.record), 10, "the record says that nothing is left")
    assert "ola" in {each.name for each in await second.cloud.list_templates(ACCOUNT)}
    assert app.unsigned == 0
    again = await second.cloud.send(replace(MESSAGE, id="msg_0000000100000000000a2"), ACCOUNT, 1)
    assert isinstance(again, Accepted)
    assert again.provider_message_id != outcome.provider_message_id
