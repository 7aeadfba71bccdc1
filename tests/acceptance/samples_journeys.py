"""Samples of the operations on journeys; see samples.py."""

from typing import Any

from tests.acceptance.caller import Request
from tests.acceptance.samples import new, sample
from tests.acceptance.samples_audience import spare
from tests.acceptance.tenants import Tenant, journey, waiting_journey
from tests.program import Api

from recado.domain.core.ids import CONTACT, EXECUTION, JOURNEY

JOURNEYS = "/v2/journeys"


@sample("listJourneys")
async def nothing_asked(api: Api, tenant: Tenant) -> Request:
    return Request()


@sample("createJourney")
async def new_journey(api: Api, tenant: Tenant) -> Request:
    return Request(body=journey(new("journey ")))


@sample("getJourney")
async def journey_to_read(api: Api, tenant: Tenant) -> Request:
    return Request({"id": tenant.ids[JOURNEY]})


@sample("replaceJourney")
async def journey_change(api: Api, tenant: Tenant) -> Request:
    journey_id = await spare(api, tenant, JOURNEYS, journey(new("journey ")))
    return Request({"id": journey_id}, body=journey(new("another journey ")))


@sample("activateJourney", "archiveJourney")
async def journey_to_activate(api: Api, tenant: Tenant) -> Request:
    return Request({"id": (await made(api))["id"]})


@sample("pauseJourney")
async def active_journey(api: Api, tenant: Tenant) -> Request:
    found = await made(api)
    await api.call("POST", f"{JOURNEYS}/{found['id']}/activate")
    return Request({"id": found["id"]})


@sample("duplicateJourney", "createJourneyVersion")
async def archived_journey(api: Api, tenant: Tenant) -> Request:
    """Of an archived one both are made; it counts toward no limit."""
    found = await made(api)
    await api.call("POST", f"{JOURNEYS}/{found['id']}/archive")
    return Request({"id": found["id"]})


@sample("createJourneyEntry")
async def entry(api: Api, tenant: Tenant) -> Request:
    journey_id = await running(api)
    return Request({"id": journey_id}, body={"contato": {"contactId": tenant.ids[CONTACT]}, "dados": {"order": "A-1"}})


@sample("testJourney")
async def journey_to_try(api: Api, tenant: Tenant) -> Request:
    found = await made(api)
    return Request({"id": found["id"]}, body={"contactId": tenant.ids[CONTACT], "dados": {"order": "A-1"}})


@sample("simulateJourney")
async def journey_to_simulate(api: Api, tenant: Tenant) -> Request:
    return Request({"id": tenant.ids[JOURNEY]}, body={"publico": {"contactId": tenant.ids[CONTACT]}, "amostra": 1})


@sample("listExecutions", "getJourneySteps")
async def executions_asked(api: Api, tenant: Tenant) -> Request:
    return Request({"id": tenant.ids[JOURNEY]})


@sample("getExecution")
async def execution_to_read(api: Api, tenant: Tenant) -> Request:
    return Request({"id": tenant.ids[JOURNEY], "executionId": tenant.ids[EXECUTION]})


@sample("cancelExecution")
async def execution_to_cancel(api: Api, tenant: Tenant) -> Request:
    journey_id = await running(api)
    entered = await api.call(
        "POST", f"{JOURNEYS}/{journey_id}/entries", {"contato": {"contactId": tenant.ids[CONTACT]}}
    )
    return Request({"id": journey_id, "executionId": entered["executionId"]})


async def made(api: Api) -> Any:
    return await api.call("POST", JOURNEYS, journey(new("journey ")))


async def running(api: Api) -> str:
    """The id of an active journey."""
    found = await api.call("POST", JOURNEYS, waiting_journey(new("journey ")))
    await api.call("POST", f"{JOURNEYS}/{found['id']}/activate")
    return str(found["id"])
