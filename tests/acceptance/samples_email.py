"""Samples of the operations on what e-mail is sent with; see samples.py."""

from typing import Any

from tests.acceptance.caller import Request
from tests.acceptance.samples import new, sample
from tests.acceptance.samples_audience import spare
from tests.acceptance.tenants import Tenant, email, email_template
from tests.program import Api

from recado.domain.core.ids import EMAIL_TEMPLATE


@sample("listEmailSuppressions", "listEmailSenders", "listEmailTemplates")
async def nothing_asked(api: Api, tenant: Tenant) -> Request:
    return Request()


@sample("createEmailSuppression")
async def new_suppression(api: Api, tenant: Tenant) -> Request:
    return Request(body=suppression())


@sample("deleteEmailSuppression")
async def suppression_to_delete(api: Api, tenant: Tenant) -> Request:
    return Request({"id": (await api.call("POST", "/v2/email/suppressions", suppression()))["id"]})


@sample("createEmail")
async def new_email(api: Api, tenant: Tenant) -> Request:
    return Request(body=email(), headers={"Idempotency-Key": new("key ")})


@sample("listEmails")
async def no_filter(api: Api, tenant: Tenant) -> Request:
    return Request(query={"status": "delivered"})


@sample("getEmail")
async def one_email(api: Api, tenant: Tenant) -> Request:
    made = await api.call("POST", "/v2/email/messages", email(), key=new("key "))
    return Request({"id": made["id"]})


@sample("createEmailTemplate")
async def new_template(api: Api, tenant: Tenant) -> Request:
    return Request(body=email_template(new("template ")))


@sample("getEmailTemplate")
async def one_template(api: Api, tenant: Tenant) -> Request:
    return Request({"id": tenant.ids[EMAIL_TEMPLATE]})


@sample("previewEmailTemplate")
async def template_with_values(api: Api, tenant: Tenant) -> Request:
    made = await api.call("POST", "/v2/email/templates", email_template(new("seen ")))
    return Request({"id": made["id"]}, body={"variables": {"order": 7, "name": "Ana"}})


@sample("updateEmailTemplate")
async def template_change(api: Api, tenant: Tenant) -> Request:
    template_id = await spare(api, tenant, "/v2/email/templates", email_template(new("spare ")))
    return Request({"id": template_id}, body={"name": new("renamed template ")})


@sample("deleteEmailTemplate")
async def template_to_archive(api: Api, tenant: Tenant) -> Request:
    return Request({"id": (await api.call("POST", "/v2/email/templates", email_template(new("gone "))))["id"]})


@sample("createEmailSender")
async def new_sender(api: Api, tenant: Tenant) -> Request:
    await make_room(api)
    return Request(body=sender())


@sample("updateEmailSender")
async def sender_change(api: Api, tenant: Tenant) -> Request:
    sender_id = await spare(api, tenant, "/v2/email/senders", {"domain": f"{new('spare')}.example.com"})
    return Request({"id": sender_id}, body={"displayName": new("name ")})


@sample("deleteEmailSender", "verifyEmailSender")
async def sender_to_use_up(api: Api, tenant: Tenant) -> Request:
    await make_room(api)
    return Request({"id": (await api.call("POST", "/v2/email/senders", sender()))["id"]})


async def make_room(api: Api) -> None:
    """An environment holds fifty: those that the walk made before go."""
    made = (await api.call("GET", "/v2/email/senders?limit=200"))["items"]
    for each in made:
        if each["domain"].startswith("walk") and len(made) > 40:
            await api.call("DELETE", f"/v2/email/senders/{each['id']}")


def sender() -> dict[str, Any]:
    return {"domain": f"{new('walk')}.example.com", "displayName": "Walk"}


def suppression() -> dict[str, Any]:
    return {"email": f"{new('suppressed')}@example.com"}
