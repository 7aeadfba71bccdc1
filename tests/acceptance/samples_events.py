"""Samples of the operations on customer events; see samples.py."""

from datetime import UTC, datetime, timedelta

from tests.acceptance.caller import Request
from tests.acceptance.samples import new, sample
from tests.acceptance.tenants import Tenant, customer_event
from tests.program import Api

from recado.domain.core.ids import CONTACT
from recado.domain.core.timestamps import format_timestamp


@sample("listCustomerEvents")
async def events_of_two_days(api: Api, tenant: Tenant) -> Request:
    now = datetime.now(UTC)
    period = {"from": now - timedelta(days=1), "to": now + timedelta(days=1)}
    return Request(query={name: format_timestamp(at) for name, at in period.items()})


@sample("createCustomerEvent")
async def new_event(api: Api, tenant: Tenant) -> Request:
    return Request(body=customer_event(new("order "), tenant.ids[CONTACT]))
