"""Samples of the operations on push; see samples.py."""

from typing import Any

from tests.acceptance.caller import Request
from tests.acceptance.samples import new, sample
from tests.acceptance.samples_audience import spare
from tests.acceptance.tenants import Tenant, push_message
from tests.program import Api

from recado.domain.core.ids import PUSH_APP, PUSH_DISPATCH, PUSH_MESSAGE

APPS = "/v2/push/apps"


@sample("listPushApps", "sumDevices")
async def nothing_asked(api: Api, tenant: Tenant) -> Request:
    return Request()


@sample("listDevices")
async def devices_of_an_app(api: Api, tenant: Tenant) -> Request:
    return Request(query={"appId": tenant.ids[PUSH_APP], "platform": "android"})


@sample("listPushMessages")
async def scheduled_messages(api: Api, tenant: Tenant) -> Request:
    return Request(query={"status": "scheduled", "origin": "api"})


@sample("createPushApp")
async def new_app(api: Api, tenant: Tenant) -> Request:
    await make_room(api)
    return Request(body=app())


@sample("getPushApp")
async def one_app(api: Api, tenant: Tenant) -> Request:
    return Request({"id": tenant.ids[PUSH_APP]})


@sample("updatePushApp")
async def app_change(api: Api, tenant: Tenant) -> Request:
    return Request({"id": await spare(api, tenant, APPS, app())}, body={"name": new("renamed ")})


@sample("deletePushApp")
async def app_to_delete(api: Api, tenant: Tenant) -> Request:
    await make_room(api)
    return Request({"id": (await api.call("POST", APPS, app()))["id"]})


@sample("registerDevice")
async def new_device(api: Api, tenant: Tenant) -> Request:
    return Request(body={"appId": tenant.ids[PUSH_APP], "token": new("token "), "platform": "android"})


@sample("optOutDevice")
async def device_that_leaves(api: Api, tenant: Tenant) -> Request:
    device = {"appId": tenant.ids[PUSH_APP], "token": new("leaves ")}
    await api.call("POST", "/v2/push/tokens", {**device, "platform": "android"})
    return Request(body=device)


@sample("openPushDispatch")
async def one_dispatch(api: Api, tenant: Tenant) -> Request:
    return Request({"id": tenant.ids[PUSH_DISPATCH]})


@sample("createPushMessage")
async def new_push(api: Api, tenant: Tenant) -> Request:
    return Request(body=push_message(), headers={"Idempotency-Key": new("key ")})


@sample("previewPushMessage")
async def push_to_preview(api: Api, tenant: Tenant) -> Request:
    return Request(body={"segment": "all_opt_in", "platforms": ["android"]})


@sample("getPushMessage", "listPushDispatches")
async def one_push(api: Api, tenant: Tenant) -> Request:
    return Request({"id": tenant.ids[PUSH_MESSAGE]})


@sample("cancelPushMessage")
async def push_to_cancel(api: Api, tenant: Tenant) -> Request:
    made = await api.call("POST", "/v2/push/messages", push_message(), key=new("key "))
    return Request({"id": made["id"]})


async def make_room(api: Api) -> None:
    """An environment holds twenty: those that the walk made before go."""
    made = (await api.call("GET", f"{APPS}?limit=200"))["items"]
    for each in made:
        if each["name"].startswith("walk") and len(made) > 12:
            await api.call("DELETE", f"{APPS}/{each['id']}")


def app() -> dict[str, Any]:
    return {"name": new("walk "), "platforms": ["ios"]}
