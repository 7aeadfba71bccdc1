"""Templates, numbers and media of the simulated hosted API."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from tests.simulator.cloud.conftest import ACCOUNT, FLOW, MESSAGE, TEMPLATE, Play, Service

from recado.channels.chatapp.account import details_of
from recado.channels.core.errors import ProviderError
from recado.channels.core.events import FlowNews, TemplateVerdict
from recado.channels.core.provider import Accepted, Down, Refused, Retry, TemplateContent


async def test_a_template_is_pending_then_judged_listed_sent_and_deleted(play: Play, app: Service) -> None:
    stage = await play(silent=1)
    content = TemplateContent(name="ola", category="utility", language="pt-BR", components=(), variables=["Ana"])
    message = replace(MESSAGE, type="template", payload=None, template=content)
    assert await stage.cloud.send(message, ACCOUNT, 1) == Refused("template_unavailable", "as the simulation has it")

    submission = await stage.cloud.submit_template(ACCOUNT, TEMPLATE)

    (verdict,) = await app.has(1)
    assert isinstance(verdict, TemplateVerdict)
    assert (verdict.status, verdict.provider_template_id) == ("approved", submission.provider_template_id)
    assert verdict.business_account == details_of(ACCOUNT).business_account_id
    held = {each.name: each for each in await stage.cloud.list_templates(ACCOUNT)}
    assert sorted(held) == ["login_code", "news", "ola", "order_update"]
    assert (held["ola"].language, held["ola"].status, held["ola"].components) == (
        "pt-BR",
        "approved",
        TEMPLATE.components,
    )
    assert isinstance(await stage.cloud.send(message, ACCOUNT, 1), Accepted)
    outcome = await stage.cloud.send(replace(message, template=replace(content, variables=["Ana", "x"])), ACCOUNT, 1)
    assert outcome == Refused("template_vars", "as the simulation has it")

    await stage.control(f"templates/{submission.provider_template_id}", status="PAUSED")
    assert await stage.cloud.send(message, ACCOUNT, 1) == Retry(None)
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


async def test_a_template_is_edited_and_judged_again(play: Play, app: Service) -> None:
    stage = await play()
    submission = await stage.cloud.submit_template(ACCOUNT, TEMPLATE)
    edit = replace(
        TEMPLATE,
        provider_template_id=submission.provider_template_id,
        components=[{"type": "BODY", "payload": {"text": "Oi {{1}}!", "example": ["Ana"]}}],
    )
    await app.has(1)

    assert await stage.cloud.submit_template(ACCOUNT, edit) == submission
    assert isinstance((await app.has(2))[1], TemplateVerdict)
    held = {each.name: each for each in await stage.cloud.list_templates(ACCOUNT)}
    assert (held["ola"].status, held["ola"].components[0]["payload"]["text"]) == ("approved", "Oi {{1}}!")
    with pytest.raises(ProviderError, match="refused"):
        await stage.cloud.submit_template(ACCOUNT, replace(edit, category="marketing"))
    await stage.control(f"templates/{submission.provider_template_id}", status="DISABLED")
    with pytest.raises(ProviderError, match="refused"):
        await stage.cloud.submit_template(ACCOUNT, edit)


async def test_many_templates_are_listed_over_several_pages(play: Play) -> None:
    stage = await play(cloud_callback_url=None)
    for number in range(120):
        await stage.cloud.submit_template(ACCOUNT, replace(TEMPLATE, name=f"t{number}"))

    held = await stage.cloud.list_templates(ACCOUNT)

    assert len({each.provider_template_id for each in held}) == len(held) == 123


async def test_a_flow_is_made_published_opened_and_told_of(play: Play, app: Service) -> None:
    stage = await play(silent=1)
    flow_id = await stage.cloud.create_flow(ACCOUNT, FLOW)
    action = {"flowId": "flw_1", "cta": "Answer", "screen": "ASK", "providerFlowId": flow_id}
    payload = {"interactive": {"type": "flow", "body": "How was it?", "action": action}}
    message = replace(MESSAGE, type="interactive", payload=payload)
    assert await stage.cloud.send(message, ACCOUNT, 1) == Refused("provider_error", "as the simulation has it")

    await stage.cloud.publish_flow(ACCOUNT, flow_id)
    with pytest.raises(ProviderError, match="refused"):
        await stage.cloud.publish_flow(ACCOUNT, flow_id)
    assert isinstance(await stage.cloud.send(message, ACCOUNT, 1), Accepted)
    await stage.control(f"flows/{flow_id}", status="THROTTLED")
    assert await stage.cloud.send(message, ACCOUNT, 1) == Retry(None)
    await stage.control(f"flows/{flow_id}", status="BLOCKED")
    assert await stage.cloud.send(message, ACCOUNT, 1) == Refused("template_unavailable", "as the simulation has it")
    await stage.control(f"flows/{flow_id}", status="PUBLISHED")
    await stage.cloud.deprecate_flow(ACCOUNT, flow_id)
    await stage.cloud.deprecate_flow(ACCOUNT, flow_id)  # as after an answer that was lost: the API refuses this

    told = await app.has(5)
    assert [each.status for each in told] == ["published", "throttled", "blocked", "published", "deprecated"]
    assert {type(each) for each in told} == {FlowNews}
    assert {(each.provider_flow_id, each.business_account) for each in told} == {
        (flow_id, details_of(ACCOUNT).business_account_id)
    }


async def test_a_flow_of_a_name_that_asks_for_it_has_a_fault_and_a_name_is_given_once(play: Play) -> None:
    stage = await play()
    with pytest.raises(ProviderError, match="Its name asks for a fault"):
        await stage.cloud.create_flow(ACCOUNT, replace(FLOW, name="reject me"))
    await stage.cloud.create_flow(ACCOUNT, FLOW)
    with pytest.raises(ProviderError, match="refused"):
        await stage.cloud.create_flow(ACCOUNT, FLOW)


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
