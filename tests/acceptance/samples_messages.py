"""Samples of the operations on messages, batches and campaigns; see samples.py."""

from typing import Any

from tests.acceptance.caller import Request
from tests.acceptance.samples import new, sample
from tests.acceptance.samples_numbers import number
from tests.acceptance.tenants import CAMPAIGN, CUSTOMER, Tenant, later, template
from tests.program import Api

from recado.domain.core.ids import BATCH, MESSAGE, NUMBER

# Messages -----------------------------------------------------------------------------------------------------------


@sample("createMessage")
async def message(api: Api, tenant: Tenant) -> Request:
    return Request(body=later(tenant.ids[NUMBER]))


@sample("getMessage")
async def one_message(api: Api, tenant: Tenant) -> Request:
    return Request({"id": tenant.ids[MESSAGE]})


@sample("forceMessage", "archiveMessage")
async def held_message(api: Api, tenant: Tenant) -> Request:
    return Request({"id": (await api.call("POST", "/messages", later(tenant.ids[NUMBER])))["id"]})


_held: dict[str, dict[str, Any]] = {}


async def held(api: Api, tenant: Tenant) -> dict[str, Any]:
    """A message that is accepted and stays: its number is flagged, and it is neither critical nor a reply."""
    if tenant.organization_id not in _held:
        number_id = (await number(api, status="flagged")).path["id"]
        made = await api.call("POST", "/v2/templates", template(number_id, new("walk")))
        await api.call("POST", f"/v2/sandbox/templates/{made['id']}", {"status": "approved"})
        _held[tenant.organization_id] = {"numberId": number_id, "type": "template", "templateId": made["id"]}
    return {**_held[tenant.organization_id], "to": CUSTOMER}


@sample("reprocessMessage")
async def archived_message(api: Api, tenant: Tenant) -> Request:
    sent = await api.call("POST", "/messages", await held(api, tenant))
    await api.call("POST", f"/messages/{sent['id']}/archive")
    return Request({"id": sent["id"]}, body={"includeUncertain": True})


# SMS ----------------------------------------------------------------------------------------------------------------


@sample("createSms")
async def sms(api: Api, tenant: Tenant) -> Request:
    return Request(body={"to": CUSTOMER, "text": "hello", "scheduledAt": later(tenant.ids[NUMBER])["scheduledAt"]})


@sample("previewSms")
async def sms_preview(api: Api, tenant: Tenant) -> Request:
    return Request(body={"text": "hello"})


@sample("listSms")
async def sms_list(api: Api, tenant: Tenant) -> Request:
    return Request()


@sample("getSms")
async def one_sms(api: Api, tenant: Tenant) -> Request:
    made = await sms(api, tenant)
    return Request({"id": (await api.call("POST", "/v2/sms/messages", made.body))["id"]})


# RCS ----------------------------------------------------------------------------------------------------------------


@sample("createRcs")
async def rcs(api: Api, tenant: Tenant) -> Request:
    content = {"text": "hello", "suggestions": [{"type": "reply", "text": "Yes", "value": "yes"}]}
    fallback = {"text": "hello", "afterSeconds": 60}
    at = later(tenant.ids[NUMBER])["scheduledAt"]
    return Request(body={"to": CUSTOMER, "content": content, "fallback": fallback, "scheduledAt": at})


@sample("listRcs")
async def rcs_list(api: Api, tenant: Tenant) -> Request:
    return Request()


@sample("getRcs")
async def one_rcs(api: Api, tenant: Tenant) -> Request:
    made = await rcs(api, tenant)
    return Request({"id": (await api.call("POST", "/v2/rcs/messages", made.body))["id"]})


# Batches ------------------------------------------------------------------------------------------------------------


def batch(number_id: str) -> dict[str, Any]:
    """A batch whose one message stays queued."""
    shared = {name: value for name, value in later(number_id).items() if name != "to"}
    return {**shared, "name": new("batch "), "recipients": [{"to": CUSTOMER, "metadata": {"order": 1}}]}


@sample("createBatch")
async def new_batch(api: Api, tenant: Tenant) -> Request:
    return Request(body=batch(tenant.ids[NUMBER]))


@sample("getBatch")
async def one_batch(api: Api, tenant: Tenant) -> Request:
    return Request({"id": tenant.ids[BATCH]})


@sample("pauseBatch", "cancelBatch")
async def running_batch(api: Api, tenant: Tenant) -> Request:
    return Request({"id": (await api.call("POST", "/messages/bulk", batch(tenant.ids[NUMBER])))["id"]})


@sample("resumeBatch")
async def paused_batch(api: Api, tenant: Tenant) -> Request:
    request = await running_batch(api, tenant)
    await api.call("POST", f"/v2/batches/{request.path['id']}/pause")
    return request


@sample("resendMessages")
async def nothing_that_failed(api: Api, tenant: Tenant) -> Request:
    """Only a message that waits: it is skipped, and the batch has nobody to send to."""
    return Request(body={"messageIds": [tenant.ids[MESSAGE]], "includeUncertain": False})


@sample("getCampaign")
async def one_campaign(api: Api, tenant: Tenant) -> Request:
    return Request({"campaignId": tenant.ids[CAMPAIGN]})


@sample("simulateInbound")
async def inbound(api: Api, tenant: Tenant) -> Request:
    return Request(body={"numberId": tenant.ids[NUMBER], "from": CUSTOMER, "text": new("hello ")})
