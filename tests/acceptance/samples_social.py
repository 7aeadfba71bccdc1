"""Samples of the operations on social accounts; see samples.py."""

from typing import Any

from tests.acceptance.caller import Request
from tests.acceptance.samples import new, sample
from tests.acceptance.tenants import Tenant, social_account
from tests.program import Api

from recado.domain.core.ids import SOCIAL_ACCOUNT


@sample("listSocialAccounts")
async def no_filter(api: Api, tenant: Tenant) -> Request:
    return Request()


@sample("createSocialAccount")
async def new_account(api: Api, tenant: Tenant) -> Request:
    return Request(body=social_account(new("walk ")))


@sample("getSocialAccount")
async def one_account(api: Api, tenant: Tenant) -> Request:
    return Request({"id": tenant.ids[SOCIAL_ACCOUNT]})


@sample("updateSocialAccount")
async def account_change(api: Api, tenant: Tenant) -> Request:
    return Request({"id": (await made(api))["id"]}, body={"displayName": new("name ")})


@sample("connectSocialAccount", "deleteSocialAccount")
async def pending_account(api: Api, tenant: Tenant) -> Request:
    return Request({"id": (await made(api))["id"]})


@sample("disconnectSocialAccount")
async def connected_account(api: Api, tenant: Tenant) -> Request:
    account_id = (await made(api))["id"]
    await api.call("POST", f"/v2/social/accounts/{account_id}/connect")
    return Request({"id": account_id})


async def made(api: Api) -> Any:
    return await api.call("POST", "/v2/social/accounts", social_account(new("walk ")))
