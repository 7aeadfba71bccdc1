"""Samples of the operations on numbers and templates; see samples.py."""

from typing import Any

from tests.acceptance.caller import Request
from tests.acceptance.samples import fresh, new, sample
from tests.acceptance.tenants import Tenant, template
from tests.program import Api
from tests.waiting import until

from recado.domain.core.ids import NUMBER, ORGANIZATION, TEMPLATE

# Numbers ------------------------------------------------------------------------------------------------------------


def number_body() -> dict[str, Any]:
    serial = fresh()
    return {
        "phoneNumberId": f"provider's {serial}",
        "businessAccountId": f"business {serial}",
        "displayPhone": f"+1555{serial:07}",
        "rateLimit": {"perSecond": 10},
        "profile": {"about": "Walks"},
    }


async def number(api: Api, **simulated: str) -> Request:
    made = await api.call("POST", "/numbers", number_body())
    # The sandbox verifies a pending number in its own time: out of that state, nobody changes it but the walk.
    await api.call("POST", f"/v2/sandbox/numbers/{made['id']}", {"status": "available", **simulated})
    return Request({"id": made["id"]})


@sample("createNumber")
async def new_number(api: Api, tenant: Tenant) -> Request:
    return Request(body=number_body())


@sample("getNumber", "getNumberHealth", "getNumberUsage", "getNumberUsageSeries", "getNumberState")
async def one_number(api: Api, tenant: Tenant) -> Request:
    return Request({"id": tenant.ids[NUMBER]})


@sample("pauseNumber", "resumeNumber")
async def number_that_sends_nothing(api: Api, tenant: Tenant) -> Request:
    return await number(api)


@sample("restartActor")
async def actor(api: Api, tenant: Tenant) -> Request:
    """The lane of a number: it is in memory for a minute after the number was another one for a moment."""
    for rating in ("yellow", "green"):
        await api.call("POST", f"/v2/sandbox/numbers/{tenant.ids[NUMBER]}", {"qualityRating": rating})
    path = f"recado/lanes/{tenant.organization_id}:test:chatapp:{tenant.ids[NUMBER]}"

    async def in_memory() -> bool:
        return path in [each["path"] for each in (await api.call("GET", "/v2/ops/actors"))["items"]]

    await until(in_memory, "the lane is in memory")
    return Request(body={"path": path})


@sample("connectNumber", "deleteNumber")
async def available_number(api: Api, tenant: Tenant) -> Request:
    return await number(api)


@sample("disconnectNumber")
async def connected_number(api: Api, tenant: Tenant) -> Request:
    return await number(api, status="connected")


@sample("updateNumber")
async def number_change(api: Api, tenant: Tenant) -> Request:
    return Request((await number(api)).path, body={"rateLimit": {"perSecond": 20}, "profile": {"about": new("Runs ")}})


@sample("simulateNumber")
async def number_simulation(api: Api, tenant: Tenant) -> Request:
    return Request((await number(api)).path, body={"status": "flagged", "qualityRating": "red"})


@sample("administerNumber")
async def ours_or_theirs(api: Api, tenant: Tenant) -> Request:
    number_id = (await number(api)).path["id"]
    return Request({"id": tenant.ids[ORGANIZATION], "numberId": number_id}, body={"byo": True})


# Templates ----------------------------------------------------------------------------------------------------------


@sample("createTemplate")
async def new_template(api: Api, tenant: Tenant) -> Request:
    return Request(body=template(tenant.ids[NUMBER], new("walk")))


@sample("syncTemplates")
async def sync(api: Api, tenant: Tenant) -> Request:
    return Request(body={"numberId": tenant.ids[NUMBER]})


@sample("getTemplate")
async def one_template(api: Api, tenant: Tenant) -> Request:
    return Request({"id": tenant.ids[TEMPLATE]})


@sample("deleteTemplate", "submitTemplate")
async def draft(api: Api, tenant: Tenant) -> Request:
    return Request({"id": (await api.call("POST", "/v2/templates", template(tenant.ids[NUMBER], new("walk"))))["id"]})


@sample("updateTemplate")
async def edit(api: Api, tenant: Tenant) -> Request:
    return Request((await draft(api, tenant)).path, body={"category": "marketing"})


@sample("simulateTemplate")
async def review(api: Api, tenant: Tenant) -> Request:
    return Request((await draft(api, tenant)).path, body={"status": "approved"})
