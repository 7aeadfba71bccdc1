"""Samples of the operations on contacts and companies; see samples.py."""

from typing import Any

from tests.acceptance.caller import Request
from tests.acceptance.samples import fresh, new, sample
from tests.acceptance.tenants import CUSTOMER, Tenant
from tests.program import Api

from recado.domain.core.ids import ACCOUNT, COMPANY, CONTACT, CONTACT_IMPORT

# Contacts -----------------------------------------------------------------------------------------------------------


def contact_body() -> dict[str, Any]:
    """A contact with something in every field that a caller can give."""
    serial = fresh()
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
    serial = fresh()
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
