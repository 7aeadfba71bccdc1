"""A message that opens a flow is sent again while the flow can be opened, and opens its version of now (C15.4, C19)."""

from typing import Any

from tests.http.messages.resending import copies, failed, open_window, resend, second_number

PHONE = "+5511987654321"


async def flow(mail: Any) -> str:
    """An active flow; its id."""
    body = {
        "numberId": mail.number_id,
        "name": "Survey",
        "providerCategories": ["SURVEY"],
        "flowJson": {"screens": [{"id": "ASK", "terminal": True}]},
    }
    made = await mail.api.post("/v2/flows", body)
    await move(mail, made.body["id"], "publish")
    return str(made.body["id"])


async def move(mail: Any, flow_id: str, name: str) -> Any:
    answer = await mail.api.post(f"/v2/flows/{flow_id}/{name}")
    assert answer.status == 200, answer.body
    return answer.body


async def opening(mail: Any, flow_id: str) -> str:
    """A failed message that opens it."""
    action = {"flowId": flow_id, "cta": "Answer"}
    payload = {"interactive": {"type": "flow", "body": "How was it?", "action": action}}
    return await failed(mail, type="interactive", payload=payload, templateId=..., templateVars=...)


async def test_the_copy_opens_the_version_of_now(mail: Any) -> None:
    await open_window(mail, PHONE)
    flow_id = await flow(mail)
    old = await opening(mail, flow_id)
    await mail.api.patch(f"/v2/flows/{flow_id}", {"name": "Survey of May"})
    now = await move(mail, flow_id, "publish")
    [new] = await copies(mail, await resend(mail, {"messageIds": [old]}))
    action = new["payload"]["interactive"]["action"]
    assert (action["flowId"], action["providerFlowId"]) == (flow_id, now["providerFlowId"])


async def test_a_flow_that_cannot_be_opened_any_more_holds_its_messages_back(mail: Any) -> None:
    await open_window(mail, PHONE)
    flow_id = await flow(mail)
    old = await opening(mail, flow_id)
    await move(mail, flow_id, "pause")
    answer = await resend(mail, {"messageIds": [old], "dryRun": True})
    assert answer.body["skipped"] == {"REFERENCE_NOT_FOUND": 1}
    again = await mail.api.post(f"/messages/{old}/reprocess")
    assert (again.status, again.code) == (422, "REFERENCE_NOT_FOUND")
    await move(mail, flow_id, "resume")
    elsewhere = await resend(mail, {"messageIds": [old], "numberId": await second_number(mail), "dryRun": True})
    assert elsewhere.body["skipped"] == {"REFERENCE_NOT_FOUND": 1}
    assert (await mail.api.post(f"/messages/{old}/reprocess")).status == 201
