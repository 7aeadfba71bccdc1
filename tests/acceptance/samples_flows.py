"""Samples of the operations on flows; see samples.py."""

from tests.acceptance.caller import Request
from tests.acceptance.samples import new, sample
from tests.acceptance.tenants import Tenant, flow
from tests.program import Api

from recado.domain.core.ids import FLOW, NUMBER


async def made(api: Api, tenant: Tenant, *moves: str) -> Request:
    made = await api.call("POST", "/v2/flows", flow(tenant.ids[NUMBER], new("walk ")))
    for move in moves:
        await api.call("POST", f"/v2/flows/{made['id']}/{move}")
    return Request({"id": made["id"]})


@sample("listFlows")
async def no_filter(api: Api, tenant: Tenant) -> Request:
    return Request()


@sample("createFlow")
async def new_flow(api: Api, tenant: Tenant) -> Request:
    return Request(body=flow(tenant.ids[NUMBER], new("walk ")))


@sample("getFlow")
async def one_flow(api: Api, tenant: Tenant) -> Request:
    return Request({"id": tenant.ids[FLOW]})


@sample("updateFlow")
async def flow_change(api: Api, tenant: Tenant) -> Request:
    return Request((await made(api, tenant)).path, body={"name": new("name ")})


@sample("publishFlow", "archiveFlow", "deleteFlow")
async def draft_flow(api: Api, tenant: Tenant) -> Request:
    return await made(api, tenant)


@sample("pauseFlow", "deprecateFlow")
async def active_flow(api: Api, tenant: Tenant) -> Request:
    return await made(api, tenant, "publish")


@sample("resumeFlow")
async def paused_flow(api: Api, tenant: Tenant) -> Request:
    return await made(api, tenant, "publish", "pause")
