"""Samples of the operations on organizations, keys, accounts and sessions; see samples.py."""

from typing import Any

from tests.acceptance.caller import Request
from tests.acceptance.samples import new, sample
from tests.acceptance.tenants import PASSWORD, Tenant
from tests.program import Api

from recado.domain.core.ids import API_KEY, CONTACT, ORGANIZATION

# Organization and keys ----------------------------------------------------------------------------------------------


@sample("updateOrganization")
async def settings(api: Api, tenant: Tenant) -> Request:
    return Request(body={"name": new("Renamed ")})


@sample("createOrganization")
async def organization(api: Api, tenant: Tenant) -> Request:
    return Request(body={"name": new("Organization "), "ownerEmail": f"{new('owner')}@example.com"})


@sample("administerOrganization")
async def decision(api: Api, tenant: Tenant) -> Request:
    return Request({"id": tenant.ids[ORGANIZATION]}, body={"dedicatedSender": new("SENDER")})


@sample("createApiKey")
async def key(api: Api, tenant: Tenant) -> Request:
    return Request(body={"name": new("key "), "scopes": ["messages:read"]})


@sample("getApiKey")
async def one_key(api: Api, tenant: Tenant) -> Request:
    return Request({"id": tenant.ids[API_KEY]})


@sample("revokeApiKey")
async def spare_key(api: Api, tenant: Tenant) -> Request:
    made = await api.call("POST", "/v2/api-keys", (await key(api, tenant)).body)
    return Request({"id": made["id"]})


@sample("updateApiKey")
async def key_change(api: Api, tenant: Tenant) -> Request:
    return Request((await spare_key(api, tenant)).path, body={"name": new("renamed ")})


@sample("rotateApiKey")
async def rotation(api: Api, tenant: Tenant) -> Request:
    return Request((await spare_key(api, tenant)).path, body={"graceSeconds": 60})


# Accounts and sessions ----------------------------------------------------------------------------------------------


def person(role: str = "analyst") -> dict[str, Any]:
    return {"name": "A person", "email": f"{new('person')}@example.com", "role": role}


async def invited(api: Api, tenant: Tenant, role: str = "analyst") -> Any:
    return await api.call("POST", "/v2/accounts", person(role), token=tenant.sessions["test"])


@sample("createAccount")
async def new_account(api: Api, tenant: Tenant) -> Request:
    return Request(body=person())


@sample("disableAccount", "inviteAccount")
async def invited_account(api: Api, tenant: Tenant) -> Request:
    return Request({"id": (await invited(api, tenant))["id"]})


@sample("updateAccount")
async def account_change(api: Api, tenant: Tenant) -> Request:
    return Request((await invited_account(api, tenant)).path, body={"name": new("Renamed "), "role": "operator"})


@sample("acceptInvite")
async def acceptance(api: Api, tenant: Tenant) -> Request:
    return Request(body={"token": (await invited(api, tenant))["inviteToken"], "password": PASSWORD})


async def signer(api: Api, tenant: Tenant, role: str = "analyst") -> dict[str, str]:
    """With what a new person signs in."""
    account = await invited(api, tenant, role)
    await api.call("POST", "/v2/accounts/accept-invite", {"token": account["inviteToken"], "password": PASSWORD})
    return {"email": account["email"], "password": PASSWORD}


@sample("createSession")
async def sign_in(api: Api, tenant: Tenant) -> Request:
    return Request(body=await signer(api, tenant))


@sample("endSession")
async def session(api: Api, tenant: Tenant) -> Request:
    signed_in = await api.call("POST", "/v2/sessions", await signer(api, tenant))
    return Request(token=signed_in["tokens"]["test"])


@sample("revealDocuments")
async def reveal(api: Api, tenant: Tenant) -> Request:
    # By a person of its own: an account has sixty an hour.
    signed_in = await api.call("POST", "/v2/sessions", await signer(api, tenant, "admin"))
    reason = {"motivo": "the walk asks for it", "campos": ["cpf"]}
    return Request({"id": tenant.ids[CONTACT]}, body=reason, token=signed_in["tokens"]["test"])
