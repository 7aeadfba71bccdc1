"""Another's client of the hosted API: it drives our simulator, and reads the same in webhooks as our parser does."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
from aiohttp import web
from pywa import WhatsApp, errors, handlers
from pywa.types import AccountUpdate, BusinessPhoneNumber, CallbackButton, Message, MessageStatus
from pywa.types import templates as peer_templates
from pywa.types.user_preferences import UserMarketingPreferences

from recado.channels.chatapp import cloud_callbacks, cloud_messages
from recado.channels.chatapp.cloud import Cloud
from recado.channels.provider import (
    Accepted,
    Account,
    Event,
    Inbound,
    NumberStatus,
    OutboundMessage,
    Preference,
    Status,
    TemplateStatus,
    TemplateSubmission,
)
from recado.cli.simulator import cloud_api
from recado.cli.simulator.options import SimulatorOptions
from recado.cli.simulator.record import read_record
from recado.cli.simulator.server import Simulator
from recado.engine.clock import SystemClock

NUMBER = "106540352242922"
BUSINESS = "102290129340398"
APP_SECRET = "the application's secret"
ACCOUNT = Account(
    number_id="num_1",
    organization_id="org_1",
    env="live",
    phone_number_id=NUMBER,
    business_account_id=BUSINESS,
    access_token="EAAB",
)


class Peer:
    """The other's client, and what it read of our webhooks."""

    def __init__(self, url: str) -> None:
        self.client = WhatsApp(
            phone_id=NUMBER,
            token="EAAB",
            waba_id=BUSINESS,
            server=None,
            app_secret=APP_SECRET,
            verify_token="v",
            filter_updates=False,
            skip_duplicate_updates=False,
        )
        self.client.api._session.base_url = url
        self.read: list[Any] = []
        for handler in (
            handlers.MessageStatusHandler,
            handlers.MessageHandler,
            handlers.CallbackButtonHandler,
            handlers.CallbackSelectionHandler,
            handlers.TemplateStatusUpdateHandler,
            handlers.TemplateCategoryUpdateHandler,
            handlers.TemplateQualityUpdateHandler,
            handlers.UserMarketingPreferencesHandler,
            handlers.AccountUpdateHandler,
        ):
            self.client.add_handlers(handler(lambda _, update: self.read.append(update)))

    async def call(self, operation: str, /, *arguments: Any, **named: Any) -> Any:
        """One operation; the client blocks, so that it needs a thread of its own."""
        return await asyncio.to_thread(getattr(self.client, operation), *arguments, **named)

    def take(self, body: bytes, signature: str | None) -> list[Any]:
        """What it reads in a callback, once it has found the signature good. It reads one change of a body."""
        refusal = self.client.webhook_update_validator(body, signature)
        assert refusal is None, refusal
        before = len(self.read)
        for entry in orjson.loads(body)["entry"]:
            for change in entry["changes"]:
                alone = {"object": cloud_callbacks.OBJECT, "entry": [{**entry, "changes": [change]}]}
                assert self.client.webhook_update_handler(orjson.dumps(alone)) == ("ok", 200)
        return self.read[before:]


@pytest.fixture
def peer_to() -> Iterator[Callable[[str], Peer]]:
    made: list[Peer] = []

    def make(url: str) -> Peer:
        made.append(Peer(url))
        return made[-1]

    yield make
    for peer in made:
        peer.client.api._session.close()


class Receiver:
    """Keeps the callbacks as they came."""

    def __init__(self) -> None:
        self.bodies: list[tuple[bytes, str]] = []
        self.url = ""
        self._changed = asyncio.Condition()
        self._runner: web.ServerRunner | None = None

    async def start(self) -> None:
        self._runner = web.ServerRunner(web.Server(self._handle), handle_signals=False, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/"

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    def events(self) -> list[Event]:
        return [event for body, _ in self.bodies for event in cloud_callbacks.events(body)]

    async def has(self, count: int) -> list[tuple[bytes, str]]:
        """All callbacks, once they hold that many events of ours."""
        async with asyncio.timeout(20), self._changed:
            await self._changed.wait_for(lambda: len(self.events()) >= count)
        return self.bodies

    async def _handle(self, request: web.BaseRequest) -> web.Response:
        body = await request.read()
        async with self._changed:
            self.bodies.append((body, request.headers[cloud_callbacks.SIGNATURE]))
            self._changed.notify_all()
        return web.Response(body=b"{}")


class Stage:
    """A simulator, the peer's client and our adapter in front of it, and a receiver behind it."""

    def __init__(self, simulator: Simulator, peer: Peer, cloud: Cloud, receiver: Receiver, record: Path) -> None:
        self.simulator = simulator
        self.peer = peer
        self.cloud = cloud
        self.receiver = receiver
        self.record = record

    async def control(self, path: str, **body: Any) -> Any:
        address = f"{self.simulator.url}/control/{path}"
        async with aiohttp.ClientSession() as session, session.post(address, data=orjson.dumps(body)) as answer:
            assert answer.status == 200, await answer.text()
            return await answer.json()

    async def read(self, count: int) -> list[Any]:
        """What the peer reads in the first callbacks that hold so many events of ours."""
        return [read for body, signature in await self.receiver.has(count) for read in self.peer.take(body, signature)]


@pytest.fixture
async def stage(
    peer_to: Callable[[str], Peer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Stage]:
    monkeypatch.setattr(cloud_api, "REVIEW_SECONDS", 0.0)
    receiver = Receiver()
    await receiver.start()
    record = tmp_path / "record.jsonl"
    simulator = Simulator(
        SimulatorOptions(
            record=record,
            secret="s",
            app_secret=APP_SECRET,
            cloud_callback_url=receiver.url,
            receipt_delay=0.001,
            gather_seconds=0,
        )
    )
    await simulator.start()
    cloud = Cloud(url=f"{simulator.url}/v24.0", app_secret=APP_SECRET, clock=SystemClock())
    await cloud.start()
    yield Stage(simulator, peer_to(f"{simulator.url}/v24.0"), cloud, receiver, record)
    await cloud.stop()
    await simulator.stop()
    await receiver.stop()


# The peer drives our simulator ----------------------------------------------------------------------------------------


async def test_the_peer_sends_and_both_read_the_same_receipts(stage: Stage) -> None:
    sent = await stage.peer.call("send_message", to="5511987654321", text="Oi", tracker="msg_0000000100000000000a1")

    assert sent.id == read_record(stage.record)[0].provider_message_id
    read = await stage.read(3)
    assert all(isinstance(each, MessageStatus) for each in read)
    ours = stage.receiver.events()
    assert [
        (each.status.value, each.id, each.tracker, each.timestamp, each.metadata.phone_number_id) for each in read
    ] == [
        (each.status, each.provider_message_id, each.reference, each.at, each.account)
        for each in ours
        if isinstance(each, Status)
    ]
    assert {each.from_user.wa_id for each in read} == {"5511987654321"}


async def test_the_peer_sends_to_a_user_id(stage: Stage) -> None:
    sent = await stage.peer.call("send_message", to="BR.1502576394655843", text="Oi")

    assert sent.id == read_record(stage.record)[0].provider_message_id
    read = await stage.read(3)
    assert {(each.from_user.wa_id, each.tracker) for each in read} == {(None, None)}


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (130429, errors.RateLimitHit),
        (131056, errors.TooManyMessages),
        (131026, errors.MessageUndeliverable),
        (368, errors.TemporarilyBlocked),
        (190, errors.ExpiredAccessToken),
    ],
)
async def test_the_peer_knows_our_simulator_s_errors(code: int, error: type[Exception], stage: Stage) -> None:
    await stage.control("errors", code=code)

    with pytest.raises(error):
        await stage.peer.call("send_message", to="5511987654321", text="Oi")


async def test_the_peer_and_our_adapter_see_each_other_s_templates(stage: Stage) -> None:
    language = peer_templates.TemplateLanguage.PORTUGUESE_BR
    template = peer_templates.Template(
        name="deles",
        language=language,
        category=peer_templates.TemplateCategory.UTILITY,
        components=[
            peer_templates.HeaderText("Olá"),
            peer_templates.BodyText("Oi {{1}}, tudo bem?", "Ana"),
            peer_templates.FooterText(text="Tchau"),
            peer_templates.Buttons(buttons=[peer_templates.QuickReplyButton(text="Sim")]),
        ],
    )

    made = await stage.peer.call("create_template", template)
    assert made.status is peer_templates.TemplateStatus.PENDING
    ours = await stage.cloud.submit_template(
        ACCOUNT,
        TemplateSubmission(
            id="tpl_1",
            name="nosso",
            language="pt-BR",
            category="marketing",
            components=[{"type": "BODY", "payload": {"text": "Olá {{1}}!", "example": ["Ana"]}}],
        ),
    )

    listed = {each.name: each for each in await stage.cloud.list_templates(ACCOUNT)}
    assert listed["deles"].components == [
        {"type": "HEADER", "payload": {"text": "Olá", "format": "TEXT"}},
        {"type": "BODY", "payload": {"text": "Oi {{1}}, tudo bem?", "example": ["Ana"]}},
        {"type": "FOOTER", "payload": {"text": "Tchau"}},
        {"type": "BUTTONS", "payload": {"buttons": [{"type": "QUICK_REPLY", "text": "Sim"}]}},
    ]
    theirs = {each.name: each for each in await stage.peer.call("get_templates")}
    assert set(theirs) == set(listed) == {"order_update", "login_code", "news", "deles", "nosso"}
    assert theirs["nosso"].id == ours.provider_template_id
    assert theirs["nosso"].components[0].text == "Olá {{1}}!"

    read = await stage.read(2)
    assert [(each.new_status.value, each.template_id) for each in read] == [
        ("APPROVED", made.id),
        ("APPROVED", ours.provider_template_id),
    ]
    sent = await stage.peer.call(
        "send_template",
        to="5511987654321",
        name="deles",
        language=language,
        params=[peer_templates.BodyText.params("A")],
    )
    assert sent.id.startswith("sim_")
    await stage.peer.call("delete_template", "deles")
    assert "deles" not in {each.name for each in await stage.cloud.list_templates(ACCOUNT)}


async def test_media_of_the_peer_is_ours_and_ours_is_the_peer_s(stage: Stage) -> None:
    content = b"\x89PNG\r\n\x1a\n" + bytes(2_000)
    theirs = await stage.peer.call("upload_media", content, mime_type="image/png", filename="a.png")

    async with stage.cloud.open_media(ACCOUNT, theirs.id) as media:
        assert (media.mime_type, media.size) == ("image/png", len(content))
        assert b"".join([chunk async for chunk in media.chunks]) == content

    async def chunks() -> AsyncIterator[bytes]:
        yield content

    ours = await stage.cloud.upload_media(ACCOUNT, chunks(), size=len(content), mime_type="image/png", filename="b.png")
    url = await stage.peer.call("get_media_url", ours)
    assert (url.mime_type, url.file_size) == ("image/png", len(content))
    assert await stage.peer.call("get_media_bytes", url.url) == content
    sent = await stage.peer.call("send_image", to="5511987654321", image=ours, caption="c")
    assert sent.id.startswith("sim_")


async def test_the_peer_reads_what_we_changed_of_a_number(stage: Stage) -> None:
    await stage.cloud.connect(ACCOUNT)
    await stage.cloud.update_profile(ACCOUNT, {"about": "Oi", "website": "https://a.example"})
    await stage.control(f"numbers/{NUMBER}", quality_rating="YELLOW", messaging_limit="TIER_10K")

    number: BusinessPhoneNumber = await stage.peer.call("get_business_phone_number")
    profile = await stage.peer.call("get_business_profile")

    health = await stage.cloud.number_health(ACCOUNT)
    assert (number.status, number.quality_rating) == ("CONNECTED", "YELLOW")
    assert (health.status, health.quality_rating) == ("connected", "yellow")
    assert (number.whatsapp_business_manager_messaging_limit, health.messaging_tier) == ("TIER_10K", "tier_10k")
    assert number.verified_name == health.verified_name
    assert (profile.about, list(profile.websites)) == ("Oi", ["https://a.example"])


async def test_the_peer_builds_the_same_bodies_as_our_adapter(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Text and template: what the peer puts on the wire is what we put there."""
    theirs: list[Any] = []
    request = stage.peer.client.api._request

    def listening(method: str, endpoint: str, **named: Any) -> Any:
        theirs.append(named["json"])
        return request(method, endpoint, **named)

    monkeypatch.setattr(stage.peer.client.api, "_request", listening)
    message = OutboundMessage(
        id="msg_0000000100000000000a1",
        organization_id="org_1",
        env="live",
        channel="chatapp",
        number_id="num_1",
        to="5511987654321",
        type="template",
        template_name="order_update",
        template_language="en-US",
        template_vars=["A-1"],
    )

    await stage.peer.call(
        "send_template",
        to=message.to,
        name="order_update",
        language=peer_templates.TemplateLanguage.ENGLISH_US,
        params=[peer_templates.BodyText.params("A-1")],
        tracker=message.id,
    )
    assert isinstance(await stage.cloud.send(message, ACCOUNT, 1), Accepted)

    assert lowered(theirs[0]) == lowered(cloud_messages.body(message))


def lowered(value: Any) -> Any:
    """Words of the API come in both cases, and mean the same."""
    if isinstance(value, dict):
        return {key: lowered(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [lowered(each) for each in value]
    return value.lower() if isinstance(value, str) else value


# The same words read by both ------------------------------------------------------------------------------------------


async def test_both_read_the_same_in_what_people_write(stage: Stage) -> None:
    person = {"from": "5511987654321", "number": NUMBER, "name": "Ana"}
    await stage.control("inbound", **person, text="Oi")
    image = {"type": "image", "image": {"id": "77", "mime_type": "image/png", "sha256": "x", "caption": "c"}}
    await stage.control("inbound", **person, message=image)
    button = {"type": "interactive", "interactive": {"type": "button_reply", "button_reply": {"id": "1", "title": "S"}}}
    await stage.control("inbound", **person, message=button, quoted="sim_1")
    reply = {"type": "button", "button": {"payload": "yes", "text": "Sim"}}
    await stage.control("inbound", **person, message=reply, quoted="sim_1")
    reaction = {"type": "reaction", "reaction": {"message_id": "sim_1", "emoji": "👍"}}
    await stage.control("inbound", **person, message=reaction)
    place = {"type": "location", "location": {"latitude": 1.5, "longitude": 2.5, "name": "Casa"}}
    await stage.control("inbound", **person, message=place)

    read = await stage.read(6)
    ours = stage.receiver.events()

    assert [type(each) for each in read] == [Message, Message, CallbackButton, CallbackButton, Message, Message]
    for theirs, event in zip(read, ours, strict=True):
        assert isinstance(event, Inbound)
        assert (theirs.id, theirs.timestamp, theirs.from_user.wa_id) == (
            event.provider_message_id,
            event.at,
            event.sender,
        )
        assert (theirs.from_user.name, theirs.metadata.phone_number_id) == (event.profile_name, event.account)
        quoted = theirs.reply_to_message
        assert (quoted.id if quoted else None) == event.quoted
    text, picture, chosen, pressed, reacted, placed = zip(read, ours, strict=True)
    assert text[0].text == text[1].payload["text"]["body"]
    assert (picture[0].image.id, picture[0].caption) == (picture[1].media_ref, picture[1].payload["media"]["caption"])
    assert (chosen[0].data, chosen[0].title) == ("1", chosen[1].payload["interactive"]["title"])
    assert pressed[0].data == pressed[1].payload["interactive"]["payload"]
    assert reacted[0].reaction.emoji == reacted[1].payload["text"]["body"]
    assert placed[0].location.latitude == placed[1].payload["raw"]["location"]["latitude"]


async def test_both_read_the_same_in_news_of_templates_people_and_accounts(stage: Stage) -> None:
    made = await stage.cloud.submit_template(
        ACCOUNT,
        TemplateSubmission(id="t", name="nosso", language="en-US", category="utility", components=[{"type": "BODY"}]),
    )
    await stage.receiver.has(1)
    path = f"templates/{made.provider_template_id}"
    await stage.control(path, status="PAUSED")
    await stage.control(path, category="MARKETING", quality="RED")
    await stage.control("preferences", number=NUMBER, value="stop", **{"from": "5511987654321"})
    await stage.control(
        "accounts/9", event="PARTNER_REMOVED", waba_info={"waba_id": BUSINESS, "owner_business_id": "8"}
    )

    read = await stage.read(5)
    approved, paused, category, preference, removal = stage.receiver.events()

    assert [type(each) for each in read] == [
        peer_templates.TemplateStatusUpdate,
        peer_templates.TemplateStatusUpdate,
        peer_templates.TemplateCategoryUpdate,
        peer_templates.TemplateQualityUpdate,
        UserMarketingPreferences,
        AccountUpdate,
    ]
    for theirs, event in zip(read[:3], (approved, paused, category), strict=True):
        assert isinstance(event, TemplateStatus)
        assert (theirs.template_id, theirs.timestamp, theirs.id) == (
            event.provider_template_id,
            event.at,
            event.business_account,
        )
    assert [each.new_status.value.lower() for each in read[:2]] == [approved.status, paused.status]
    assert read[2].new_category.value.lower() == category.category
    assert isinstance(preference, Preference)
    assert (read[4].from_user.wa_id, bool(read[4])) == (preference.phone, not preference.stopped)
    assert isinstance(removal, NumberStatus)
    assert (read[5].event.value, read[5].waba_info.id) == (removal.partner_removed, removal.business_account)
