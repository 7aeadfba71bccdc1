"""Another's client of the hosted API drives our simulator, and meets what our adapter meets."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from pywa import errors
from pywa.types import BusinessPhoneNumber, FlowButton, MessageStatus
from pywa.types import templates as peer_templates
from pywa.types.flows import FlowActionType, FlowCategory
from tests.channels.chatapp.peers.conftest import ACCOUNT, NUMBER, Stage

from recado.channels.chatapp import cloud_messages
from recado.channels.core.events import FlowNews, Status
from recado.channels.core.provider import Accepted, FlowDefinition, OutboundMessage, TemplateContent, TemplateSubmission
from recado.simulator.record import read_record


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


async def test_the_peer_edits_what_we_handed_in_and_we_what_the_peer_did(stage: Stage) -> None:
    body = {"type": "BODY", "payload": {"text": "Olá {{1}}!", "example": ["Ana"]}}
    ours = TemplateSubmission(id="tpl_1", name="nosso", language="pt-BR", category="utility", components=[body])
    made = await stage.cloud.submit_template(ACCOUNT, ours)
    await stage.read(1)

    edited = await stage.peer.call(
        "update_template", made.provider_template_id, new_components=[peer_templates.BodyText("Oi {{1}}!", "Ana")]
    )
    assert edited.success
    await stage.read(2)
    assert (await stage.peer.call("get_template", made.provider_template_id)).components[0].text == "Oi {{1}}!"
    await stage.cloud.submit_template(ACCOUNT, replace(ours, provider_template_id=made.provider_template_id))
    await stage.read(3)
    assert (await stage.peer.call("get_template", made.provider_template_id)).components[0].text == "Olá {{1}}!"


async def test_the_peer_and_our_adapter_publish_flows_alike(stage: Stage) -> None:
    theirs = await stage.peer.call(
        "create_flow", "deles", [FlowCategory.SURVEY], flow_json='{"version": "6.2", "screens": [{"id": "ASK"}]}'
    )
    content = {"version": "6.2", "screens": [{"id": "ASK", "terminal": True}]}
    ours = await stage.cloud.create_flow(ACCOUNT, FlowDefinition("nosso", ["SURVEY"], content))
    await stage.peer.call("publish_flow", ours)
    await stage.cloud.publish_flow(ACCOUNT, theirs.id)
    await stage.cloud.deprecate_flow(ACCOUNT, theirs.id)

    await stage.receiver.has(3)
    seen = [(event.provider_flow_id, event.status) for event in stage.receiver.events() if isinstance(event, FlowNews)]
    assert seen == [(ours, "published"), (theirs.id, "published"), (theirs.id, "deprecated")]
    flow = await stage.peer.call("get_flow", theirs.id)
    assert (flow.name, flow.status.value, flow.json_version) == ("deles", "DEPRECATED", "6.2")


async def test_the_peer_and_our_adapter_open_a_flow_by_the_same_body(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs: list[Any] = []
    request = stage.peer.client.api._request

    def listening(method: str, endpoint: str, **named: Any) -> Any:
        theirs.append(named["json"])
        return request(method, endpoint, **named)

    monkeypatch.setattr(stage.peer.client.api, "_request", listening)
    button = FlowButton(title="Go", flow_id="662", flow_action_type=FlowActionType.NAVIGATE, flow_action_screen="ASK")
    with pytest.raises(errors.WhatsAppError):  # there is no such flow
        await stage.peer.call("send_message", to="5511987654321", text="b", buttons=button)
    action = {"flowId": "flw_1", "cta": "Go", "screen": "ASK", "providerFlowId": "662"}
    message = OutboundMessage(
        id="msg_0000000100000000000a1", organization_id="org_1", env="live", channel="chatapp", sender_id="num_1",
        to="5511987654321", type="interactive",
        payload={"interactive": {"type": "flow", "body": "b", "action": action}},
    )  # fmt: skip
    ours = cloud_messages.body(message)
    assert (
        ours["interactive"]["action"]["parameters"].items() <= theirs[0]["interactive"]["action"]["parameters"].items()
    )
    assert {**theirs[0]["interactive"], "action": ours["interactive"]["action"]} == ours["interactive"]


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
        sender_id="num_1",
        to="5511987654321",
        type="template",
        template=TemplateContent(
            name="order_update", category="utility", language="en-US", components=(), variables=["A-1"]
        ),
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
