"""Samples of exports; see samples.py."""

from datetime import UTC, datetime, timedelta

from tests.acceptance.caller import Request
from tests.acceptance.samples import sample
from tests.acceptance.tenants import Tenant
from tests.program import Api

from recado.domain.core.timestamps import format_timestamp


@sample("exportChatapp", "exportSms", "exportRcs", "exportEmail")
async def two_days(api: Api, tenant: Tenant) -> Request:
    now = datetime.now(UTC)
    period = {"from": now - timedelta(days=1), "to": now + timedelta(days=1)}
    return Request(query={name: format_timestamp(at) for name, at in period.items()})
