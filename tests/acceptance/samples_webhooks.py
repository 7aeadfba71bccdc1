"""Samples of the operations on webhooks; see samples.py."""

from datetime import UTC, datetime, timedelta

from tests.acceptance.caller import Request
from tests.acceptance.samples import new, sample
from tests.acceptance.tenants import Tenant, webhook
from tests.program import Api

from recado.domain.core.ids import DELIVERY, WEBHOOK

_spares: dict[str, list[str]] = {}


async def spare_webhook(api: Api, tenant: Tenant) -> str:
    """One of two subscriptions that may be changed, in turn; paused, so that nothing of it moves by itself."""
    spares = _spares.setdefault(tenant.organization_id, [])
    if len(spares) < 2:
        made = await api.call("POST", "/webhooks", webhook("spare"))
        await api.call("PATCH", f"/webhooks/{made['id']}", {"status": "paused"})
        spares.append(made["id"])
    else:
        spares.reverse()
    return spares[-1]


async def room(api: Api, description: str) -> None:
    """End the subscriptions of that description: an environment holds twenty."""
    for found in (await api.call("GET", "/webhooks?limit=200&status=active"))["items"]:
        if found.get("description") == description:
            await api.call("DELETE", f"/webhooks/{found['id']}")


@sample("createWebhook")
async def new_webhook(api: Api, tenant: Tenant) -> Request:
    await room(api, "made by the walk")
    return Request(body=webhook("made by the walk"))


@sample("deleteWebhook")
async def webhook_to_end(api: Api, tenant: Tenant) -> Request:
    await room(api, "to be ended")
    return Request({"id": (await api.call("POST", "/webhooks", webhook("to be ended")))["id"]})


@sample("getWebhook", "listWebhookDeliveries")
async def one_webhook(api: Api, tenant: Tenant) -> Request:
    return Request({"id": tenant.ids[WEBHOOK]})


@sample("getWebhookDelivery")
async def one_delivery(api: Api, tenant: Tenant) -> Request:
    return Request({"id": tenant.ids[WEBHOOK], "deliveryId": tenant.ids[DELIVERY]})


@sample("updateWebhook")
async def webhook_change(api: Api, tenant: Tenant) -> Request:
    return Request({"id": await spare_webhook(api, tenant)}, body={"description": new("Described ")})


@sample("rotateWebhook")
async def webhook_rotation(api: Api, tenant: Tenant) -> Request:
    return Request({"id": await spare_webhook(api, tenant)}, body={"graceHours": 1})


@sample("testWebhook")
async def webhook_test(api: Api, tenant: Tenant) -> Request:
    return Request({"id": await spare_webhook(api, tenant)}, body={"event": "message.sent"})


@sample("replayWebhookDelivery")
async def delivery_replay(api: Api, tenant: Tenant) -> Request:
    webhook_id = await spare_webhook(api, tenant)
    tested = await api.call("POST", f"/webhooks/{webhook_id}/test")
    return Request({"id": webhook_id, "deliveryId": tested["deliveryId"]})


@sample("replayWebhook")
async def replay(api: Api, tenant: Tenant) -> Request:
    end = datetime.now(UTC)
    period = {"from": (end - timedelta(days=1)).isoformat(), "to": end.isoformat()}
    return Request({"id": await spare_webhook(api, tenant)}, body=period)
