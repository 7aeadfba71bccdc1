"""Samples of the operations on what e-mail is sent with; see samples.py."""

from typing import Any

from tests.acceptance.caller import Request
from tests.acceptance.samples import new, sample
from tests.acceptance.tenants import Tenant
from tests.program import Api


@sample("listEmailSuppressions")
async def nothing_asked(api: Api, tenant: Tenant) -> Request:
    return Request()


@sample("createEmailSuppression")
async def new_suppression(api: Api, tenant: Tenant) -> Request:
    return Request(body=suppression())


@sample("deleteEmailSuppression")
async def suppression_to_delete(api: Api, tenant: Tenant) -> Request:
    return Request({"id": (await api.call("POST", "/v2/email/suppressions", suppression()))["id"]})


def suppression() -> dict[str, Any]:
    return {"email": f"{new('suppressed')}@example.com"}
