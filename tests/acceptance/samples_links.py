"""Samples of the operations on links; see samples.py."""

from typing import Any

from tests.acceptance.caller import Request
from tests.acceptance.samples import new, sample
from tests.acceptance.samples_audience import spare
from tests.acceptance.served import INDEX_KEY
from tests.acceptance.tenants import Tenant, origin_link
from tests.program import Api

from recado.domain.contacts.contact import email_hash
from recado.domain.core.ids import MESSAGE, NUMBER
from recado.domain.email.public_tokens import EmailKey, PublicTokens, Unsubscription

LINK_CODE = "walkwalk"
TOKENS = PublicTokens(INDEX_KEY)


@sample("openLink")
async def link_of_a_message(api: Api, tenant: Tenant) -> Request:
    return Request({"code": LINK_CODE})


@sample("openEmail")
async def image_of_an_email(api: Api, tenant: Tenant) -> Request:
    return Request({"image": f"{TOKENS.of_open(email(tenant))}.gif"})


@sample("askToUnsubscribe", "unsubscribe")
async def way_out(api: Api, tenant: Tenant) -> Request:
    who = Unsubscription(email(tenant), None, email_hash(tenant.organization_id, new("someone@example.com ")))
    return Request({"token": TOKENS.of_unsubscription(who)}, raw=b"List-Unsubscribe=One-Click")


@sample("listOriginLinks")
async def nothing_asked(api: Api, tenant: Tenant) -> Request:
    return Request()


@sample("createOriginLink")
async def new_link(api: Api, tenant: Tenant) -> Request:
    return Request(body={**link(tenant), "fonte": "outra", "fonteRotulo": "flyer"})


@sample("updateOriginLink")
async def link_change(api: Api, tenant: Tenant) -> Request:
    link_id = await spare(api, tenant, "/v2/origin-links", link(tenant))
    return Request({"id": link_id}, body={"name": new("renamed link ")})


@sample("deleteOriginLink")
async def link_to_delete(api: Api, tenant: Tenant) -> Request:
    return Request({"id": (await api.call("POST", "/v2/origin-links", link(tenant)))["id"]})


@sample("openChat")
async def link_to_open(api: Api, tenant: Tenant) -> Request:
    made = await api.call("POST", "/v2/origin-links", link(tenant))
    return Request({"slug": made["slug"]}, query={"utm_campaign": "spring", "anuncio": "7"})


def email(tenant: Tenant) -> EmailKey:
    return EmailKey(tenant.organization_id, "test", tenant.ids[MESSAGE])


def link(tenant: Tenant) -> dict[str, Any]:
    return origin_link(tenant.ids[NUMBER], new("link "))
