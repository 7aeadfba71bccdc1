"""A message that opens a flow is sent again while the flow can be opened, and opens its version of now (C15.4, C19)."""

from typing import Any

from tests.http.messages.resending import copies, failed, open_window, resend, second_number

from recado.domain.core.ids import FLOW
from recado.domain.flows.flow import FlowCategory, FlowStatus
from recado.storage.flows import flows
from recado.storage.flows.flows import Flow

PHONE = "+5511987654321"


async def flow(mail: Any) -> str:
    """An active flow; its id."""
    made = Flow(
        organization_id=mail.organization_id,
        id=mail.api.ids.new(FLOW),
        env="test",
        number_id=mail.number_id,
        name="Survey",
        status=FlowStatus.ACTIVE,
        provider_flow_id="first",
        provider_categories=(FlowCategory.SURVEY,),
        flow_json={"screens": [{"id": "ASK", "terminal": True}]},
        updated_at=mail.api.clock.now(),
    )
    async with mail.api.database.transaction() as connection:
        await flows.insert(connection, made)
    return made.id


async def change(mail: Any, assigned: str) -> None:
    await mail.api.database.execute(f"update flows set {assigned}")
    mail.api.directories.flows.clear()


async def opening(mail: Any, flow_id: str) -> str:
    """A failed message that opens it."""
    action = {"flowId": flow_id, "cta": "Answer"}
    payload = {"interactive": {"type": "flow", "body": "How was it?", "action": action}}
    return await failed(mail, type="interactive", payload=payload, templateId=..., templateVars=...)


async def test_the_copy_opens_the_version_of_now(mail: Any) -> None:
    await open_window(mail, PHONE)
    flow_id = await flow(mail)
    old = await opening(mail, flow_id)
    await change(mail, "provider_flow_id = 'second'")
    [new] = await copies(mail, await resend(mail, {"messageIds": [old]}))
    assert new["payload"]["interactive"]["action"] == {
        "flowId": flow_id,
        "cta": "Answer",
        "screen": "ASK",
        "providerFlowId": "second",
    }


async def test_a_flow_that_cannot_be_opened_any_more_holds_its_messages_back(mail: Any) -> None:
    await open_window(mail, PHONE)
    old = await opening(mail, await flow(mail))
    await change(mail, "status = 'paused'")
    answer = await resend(mail, {"messageIds": [old], "dryRun": True})
    assert answer.body["skipped"] == {"REFERENCE_NOT_FOUND": 1}
    again = await mail.api.post(f"/messages/{old}/reprocess")
    assert (again.status, again.code) == (422, "REFERENCE_NOT_FOUND")
    await change(mail, "status = 'active'")
    elsewhere = await resend(mail, {"messageIds": [old], "numberId": await second_number(mail), "dryRun": True})
    assert elsewhere.body["skipped"] == {"REFERENCE_NOT_FOUND": 1}
    assert (await mail.api.post(f"/messages/{old}/reprocess")).status == 201
