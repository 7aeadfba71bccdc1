"""For each operation, a request that succeeds. What an operation changes or ends is made for it first.

A route without a sample fails the walk (test_walk.py): add one here, and every rule of the walk holds for the route.
"""

import itertools
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.acceptance.caller import Request
from tests.acceptance.served import BRIDGE_SECRET
from tests.acceptance.tenants import CAMPAIGN, CUSTOMER, PASSWORD, Tenant, later, template, webhook
from tests.program import Api

from recado.channels.signing import PROVIDER_SIGNATURE, signature, signing_key
from recado.domain.ids import (
    ACCOUNT,
    API_KEY,
    BATCH,
    COMPANY,
    CONTACT,
    CONTACT_IMPORT,
    DELIVERY,
    MESSAGE,
    NUMBER,
    ORGANIZATION,
    TEMPLATE,
    TOP_UP,
    WEBHOOK,
)

Sample = Callable[[Api, Tenant], Awaitable[Request]]

SAMPLES: dict[str, Sample] = {}

_serial = itertools.count(1)


def sample(*operations: str) -> Callable[[Sample], Sample]:
    """Register a sample of operations."""

    def register(make: Sample) -> Sample:
        SAMPLES.update(dict.fromkeys(operations, make))
        return make

    return register


def new(word: str) -> str:
    """A name that nothing has yet."""
    return f"{word}{next(_serial)}"


@sample(
    "getHealth", "getReadiness", "getOpenApiDocument", "getDocs",
    "listMessages", "listNumbers", "listTemplates", "listApiKeys", "listAudit", "listWebhooks", "getOrganization",
    "listCampaigns", "listBatches", "listAccounts",
    "getWallet", "getPrices", "listLedger", "listTopUps",
)  # fmt: skip
async def nothing(api: Api, tenant: Tenant) -> Request:
    return Request()


@sample("getDocsFile")
async def file_of_the_docs(api: Api, tenant: Tenant) -> Request:
    return Request({"file": "docs.js"})


@sample("getProblemPage")
async def problem_page(api: Api, tenant: Tenant) -> Request:
    return Request({"code": "not-found"})


@sample("receiveCallback")
async def callback(api: Api, tenant: Tenant) -> Request:
    body = f'{{"events": [], "serial": {next(_serial)}}}'.encode()
    signed = signature([signing_key(BRIDGE_SECRET)], body, datetime.now(UTC))
    return Request({"channel": "chatapp", "adapter": "bridge"}, headers={PROVIDER_SIGNATURE: signed}, raw=body)


# Messages -----------------------------------------------------------------------------------------------------------


@sample("createMessage")
async def message(api: Api, tenant: Tenant) -> Request:
    return Request(body=later(tenant.ids[NUMBER]))


@sample("getMessage")
async def one_message(api: Api, tenant: Tenant) -> Request:
    return Request({"id": tenant.ids[MESSAGE]})


@sample("forceMessage", "archiveMessage")
async def held_message(api: Api, tenant: Tenant) -> Request:
    return Request({"id": (await api.call("POST", "/messages", later(tenant.ids[NUMBER])))["id"]})


_held: dict[str, dict[str, Any]] = {}


async def held(api: Api, tenant: Tenant) -> dict[str, Any]:
    """A message that is accepted and stays: its number is flagged, and it is neither critical nor a reply."""
    if tenant.organization_id not in _held:
        number_id = (await number(api, status="flagged")).path["id"]
        made = await api.call("POST", "/v2/templates", template(number_id, new("walk")))
        await api.call("POST", f"/v2/sandbox/templates/{made['id']}", {"status": "approved"})
        _held[tenant.organization_id] = {"numberId": number_id, "type": "template", "templateId": made["id"]}
    return {**_held[tenant.organization_id], "to": CUSTOMER}


@sample("reprocessMessage")
async def archived_message(api: Api, tenant: Tenant) -> Request:
    sent = await api.call("POST", "/messages", await held(api, tenant))
    await api.call("POST", f"/messages/{sent['id']}/archive")
    return Request({"id": sent["id"]}, body={"includeUncertain": True})


# Batches ------------------------------------------------------------------------------------------------------------


def batch(number_id: str) -> dict[str, Any]:
    """A batch whose one message stays queued."""
    shared = {name: value for name, value in later(number_id).items() if name != "to"}
    return {**shared, "name": new("batch "), "recipients": [{"to": CUSTOMER, "metadata": {"order": 1}}]}


@sample("createBatch")
async def new_batch(api: Api, tenant: Tenant) -> Request:
    return Request(body=batch(tenant.ids[NUMBER]))


@sample("getBatch")
async def one_batch(api: Api, tenant: Tenant) -> Request:
    return Request({"id": tenant.ids[BATCH]})


@sample("pauseBatch", "cancelBatch")
async def running_batch(api: Api, tenant: Tenant) -> Request:
    return Request({"id": (await api.call("POST", "/messages/bulk", batch(tenant.ids[NUMBER])))["id"]})


@sample("resumeBatch")
async def paused_batch(api: Api, tenant: Tenant) -> Request:
    request = await running_batch(api, tenant)
    await api.call("POST", f"/v2/batches/{request.path['id']}/pause")
    return request


@sample("resendMessages")
async def nothing_that_failed(api: Api, tenant: Tenant) -> Request:
    """Only a message that waits: it is skipped, and the batch has nobody to send to."""
    return Request(body={"messageIds": [tenant.ids[MESSAGE]], "includeUncertain": False})


@sample("getCampaign")
async def one_campaign(api: Api, tenant: Tenant) -> Request:
    return Request({"campaignId": tenant.ids[CAMPAIGN]})


@sample("simulateInbound")
async def inbound(api: Api, tenant: Tenant) -> Request:
    return Request(body={"numberId": tenant.ids[NUMBER], "from": CUSTOMER, "text": new("hello ")})


# Numbers ------------------------------------------------------------------------------------------------------------


def number_body() -> dict[str, Any]:
    serial = next(_serial)
    return {
        "phoneNumberId": f"provider's {serial}",
        "businessAccountId": "business",
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


@sample("getNumber", "getNumberHealth", "getNumberUsage", "getNumberUsageSeries")
async def one_number(api: Api, tenant: Tenant) -> Request:
    return Request({"id": tenant.ids[NUMBER]})


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


# Wallet -------------------------------------------------------------------------------------------------------------


@sample("updateWallet")
async def threshold(api: Api, tenant: Tenant) -> Request:
    return Request(body={"lowBalanceThresholdCoins": 1_000 + next(_serial)})


@sample("createTopUp")
async def top_up(api: Api, tenant: Tenant) -> Request:
    return Request(body={"coins": 1_000})


@sample("getTopUp")
async def one_top_up(api: Api, tenant: Tenant) -> Request:
    return Request({"id": tenant.ids[TOP_UP]})


@sample("creditWallet")
async def credit(api: Api, tenant: Tenant) -> Request:
    body = {"env": "test", "coins": 1_000, "reference": new("invoice ")}
    return Request({"id": tenant.ids[ORGANIZATION]}, body=body)


# Webhooks -----------------------------------------------------------------------------------------------------------

_spares: dict[str, list[str]] = {}


async def spare_webhook(api: Api, tenant: Tenant) -> str:
    """One of two subscriptions that may be changed, in turn; paused, so that nothing of it moves by itself."""
    spares = _spares.setdefault(tenant.organization_id, [])
    if len(spares) < 2:
        made = await api.call("POST", "/webhooks", webhook("spare"))
        await api.call("PATCH", f"/webhooks/{made['id']}", {"status": "paused"})
        spares.append(made["id"])
    else:
        spares.reverse()
    return spares[-1]


async def room(api: Api, description: str) -> None:
    """End the subscriptions of that description: an environment holds twenty."""
    for found in (await api.call("GET", "/webhooks?limit=200&status=active"))["items"]:
        if found.get("description") == description:
            await api.call("DELETE", f"/webhooks/{found['id']}")


@sample("createWebhook")
async def new_webhook(api: Api, tenant: Tenant) -> Request:
    await room(api, "made by the walk")
    return Request(body=webhook("made by the walk"))


@sample("deleteWebhook")
async def webhook_to_end(api: Api, tenant: Tenant) -> Request:
    await room(api, "to be ended")
    return Request({"id": (await api.call("POST", "/webhooks", webhook("to be ended")))["id"]})


@sample("getWebhook", "listWebhookDeliveries")
async def one_webhook(api: Api, tenant: Tenant) -> Request:
    return Request({"id": tenant.ids[WEBHOOK]})


@sample("getWebhookDelivery")
async def one_delivery(api: Api, tenant: Tenant) -> Request:
    return Request({"id": tenant.ids[WEBHOOK], "deliveryId": tenant.ids[DELIVERY]})


@sample("updateWebhook")
async def webhook_change(api: Api, tenant: Tenant) -> Request:
    return Request({"id": await spare_webhook(api, tenant)}, body={"description": new("Described ")})


@sample("rotateWebhook")
async def webhook_rotation(api: Api, tenant: Tenant) -> Request:
    return Request({"id": await spare_webhook(api, tenant)}, body={"graceHours": 1})


@sample("testWebhook")
async def webhook_test(api: Api, tenant: Tenant) -> Request:
    return Request({"id": await spare_webhook(api, tenant)}, body={"event": "message.sent"})


@sample("replayWebhookDelivery")
async def delivery_replay(api: Api, tenant: Tenant) -> Request:
    webhook_id = await spare_webhook(api, tenant)
    tested = await api.call("POST", f"/webhooks/{webhook_id}/test")
    return Request({"id": webhook_id, "deliveryId": tested["deliveryId"]})


@sample("replayWebhook")
async def replay(api: Api, tenant: Tenant) -> Request:
    end = datetime.now(UTC)
    period = {"from": (end - timedelta(days=1)).isoformat(), "to": end.isoformat()}
    return Request({"id": await spare_webhook(api, tenant)}, body=period)


# Contacts -----------------------------------------------------------------------------------------------------------


def contact_body() -> dict[str, Any]:
    """A contact with something in every field that a caller can give."""
    serial = next(_serial)
    return {
        "phone": f"+5581{serial:09}",
        "name": new("Maria "),
        "email": f"maria{serial}@example.com",
        "avatarUrl": "https://example.com/maria.png",
        "cpf": "529.982.247-25",
        "birthDate": "1990-12-31",
        "attributes": {"cidade": "Recife", "pontos": 1},
        "tags": ["walked"],
        "optIn": {"status": "granted", "source": "walk"},
        "externalId": new("crm "),
        "externalIds": {"integration_a": "A"},
        "debtorGroups": [{"company": "Loja", "phones": [CUSTOMER], "amountCents": 1, "status": "em_dia"}],
    }


@sample("listContacts", "listContactFields", "listDebtorGroups")
async def all_contacts(api: Api, tenant: Tenant) -> Request:
    return Request()


@sample("createContact")
async def new_contact(api: Api, tenant: Tenant) -> Request:
    return Request(body=contact_body())


@sample("optOutContact")
async def opt_out(api: Api, tenant: Tenant) -> Request:
    return Request(body={"phone": contact_body()["phone"], "reason": "asked", "source": "walk"})


@sample("getContact", "listContactConsents")
async def one_contact(api: Api, tenant: Tenant) -> Request:
    return Request({"id": tenant.ids[CONTACT]})


@sample("updateContact")
async def contact_change(api: Api, tenant: Tenant) -> Request:
    made = await api.call("POST", "/contacts", contact_body())
    return Request({"id": made["id"]}, body={"name": new("Ana "), "addTags": ["changed"], "attributes": {"pontos": 2}})


@sample("deleteContact")
async def spare_contact(api: Api, tenant: Tenant) -> Request:
    return Request({"id": (await api.call("POST", "/contacts", contact_body()))["id"]})


@sample("importContacts")
async def file_of_contacts(api: Api, tenant: Tenant) -> Request:
    return Request(body={"contacts": [contact_body(), {"phone": "none"}], "options": {"tags": ["imported"]}})


@sample("getContactImport")
async def one_import(api: Api, tenant: Tenant) -> Request:
    return Request({"id": tenant.ids[CONTACT_IMPORT]})


# Companies ----------------------------------------------------------------------------------------------------------


def company_body(tenant: Tenant) -> dict[str, Any]:
    """A company with something in every field; its main contact has another company already."""
    serial = next(_serial)
    return {
        "nome": new("Padaria "),
        "cnpj": f"{serial:012}00",
        "segmento": "alimentos",
        "site": "https://padaria.example",
        "endereco": "Rua das Flores, 1",
        "responsavelId": tenant.ids[ACCOUNT],
        "contatoPrincipalId": tenant.ids[CONTACT],
        "atributos": {"porte": "ME"},
    }


@sample("listCompanies")
async def all_companies(api: Api, tenant: Tenant) -> Request:
    return Request()


@sample("createCompany")
async def new_company(api: Api, tenant: Tenant) -> Request:
    return Request(body=company_body(tenant))


@sample("getCompany", "listCompanyContacts")
async def one_company(api: Api, tenant: Tenant) -> Request:
    return Request({"id": tenant.ids[COMPANY]})


@sample("updateCompany")
async def company_change(api: Api, tenant: Tenant) -> Request:
    body = {"segmento": new("comércio "), "atributos": {"lojas": 3}, "removerAtributos": ["porte"]}
    return Request((await spare_company(api, tenant)).path, body=body)


@sample("deleteCompany")
async def spare_company(api: Api, tenant: Tenant) -> Request:
    return Request({"id": (await api.call("POST", "/v2/companies", company_body(tenant)))["id"]})
