"""Companies: list, create, read, change, delete, and the contacts of one (C20)."""

from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from recado.domain.contacts.contact import Contact
from recado.domain.contacts.contact_attributes import merged, read_attributes
from recado.domain.contacts.documents import searched_cnpj
from recado.domain.core.errors import Problem, validation_error
from recado.domain.core.ids import ACCOUNT, COMPANY, CONTACT
from recado.domain.core.reading import Refusal
from recado.domain.core.references import reference_not_found
from recado.http.api.call import Call
from recado.http.api.operation import missing_scope
from recado.http.api.page_items import PageItems
from recado.http.api.paging import PageQuery
from recado.http.api.route import Route
from recado.http.problems.missing import found
from recado.http.routes.contacts.company_models import (
    CompanyContactPage,
    CompanyCreate,
    CompanyOut,
    CompanyPage,
    CompanyPatch,
    CompanyQuery,
    company_view,
)
from recado.http.routes.contacts.contact_lists import contact_views
from recado.http.routes.core.dependencies import Dependencies
from recado.http.routes.core.groups import Group
from recado.http.routes.core.lists import shown
from recado.http.routes.core.resource import Resource
from recado.http.wire.reply import Reply
from recado.storage.access import accounts
from recado.storage.contacts import companies, contact_reads
from recado.storage.contacts.companies import COMPANIES, Company
from recado.storage.core.statements.rows import Executor, Page

CONTACTS: Final = "contacts:read"
_COLUMNS: Final = {
    "nome": "name",
    "cnpj": "cnpj",
    "segmento": "segment",
    "site": "site",
    "endereco": "address",
    "responsavel_id": "responsible_id",
    "contato_principal_id": "main_contact_id",
}


@dataclass(frozen=True, slots=True)
class CompanyOperations:
    """What is particular to companies: their order, what they refer to, and their contacts."""

    companies: Resource[Company]

    async def list(self, call: Call) -> Reply:
        principal, query, database = call.principal, call.query, self.companies.database
        cnpj = None if query.q is None else searched_cnpj(query.q)
        read = partial(
            companies.list_page,
            database.searches if query.q is not None else database.page(query.skip),
            principal.organization_id,
            principal.env,
            cnpj=cnpj,
            part=query.q if cnpj is None else None,
            responsible_id=query.responsavel_id,
        )

        def rest(last: Company, left: int) -> Awaitable[Page[Company]]:
            return read(limit=left, after=last)

        first, views = await read(limit=query.limit, skip=query.skip), partial(_views, call, database)
        return await shown(PageItems(first, views, rest, query.limit))

    async def find_for_contacts(self, call: Call) -> Company:
        """The company, for anyone who may read contacts, too."""
        if not call.can(CONTACTS):
            raise missing_scope(CONTACTS)
        return await self.companies.find(call)

    async def contacts(self, call: Call) -> Reply:
        company: Company = call.resource
        organization_id, env = company.organization_id, company.env
        wanted = contact_reads.ContactFilter(organization_id=organization_id, env=env, company_id=company.id)
        limit, skip = call.query.limit, call.query.skip
        read = partial(contact_reads.list_page, self.companies.database.page(skip), wanted)

        def rest(last: Contact, left: int) -> Awaitable[Page[Contact]]:
            return read(limit=left, after=contact_reads.position_of(wanted, last), counted=False)

        views = contact_views(self.companies.database, call)
        return await shown(PageItems(await read(limit=limit, skip=skip), views, rest, limit))

    async def examine(self, call: Call) -> None:
        """Raise `Problem` 422 for what no company can be."""
        await self._check_references(self.companies.database, self._new(call))

    async def create(self, call: Call) -> Reply:
        new = self._new(call)
        async with self.companies.database.transaction() as connection:
            await self._check_references(connection, new)
            company = await companies.insert(connection, new)
            await companies.adopt(connection, company, call.now)
            # Nothing is waited for once it is committed.
            return await self.companies.reply(call, company, 201, by=connection)

    def _new(self, call: Call) -> Company:
        return Company(
            **self.companies.born(call),
            attributes=_attributes(call.body.atributos),
            created_by_id=call.principal.actor_id,
            **{column: getattr(call.body, name) for name, column in _COLUMNS.items()},
        )

    async def patch(self, call: Call) -> Reply:
        changes = call.body.changes()
        given = _attributes(changes.get("atributos"))
        async with self.companies.editing(call) as (connection, before, body):
            with body:
                edited = _edited(before, changes, given)
                await self._check_references(connection, edited, before)
            after = await companies.save(connection, before, edited, call.now)
            if after.main_contact_id != before.main_contact_id:
                await companies.adopt(connection, after, call.now)
            return await self.companies.reply(call, after, by=connection)

    async def delete(self, call: Call) -> Reply:
        known: Company = call.resource
        decided = await self._release_most_contacts(known, call)
        async with self.companies.database.transaction() as connection:
            company = found(await companies.get_to_delete(connection, known.organization_id, known.env, known.id))
            if not decided:
                call.check_revision(company.revision)
            await companies.delete(connection, company, self.companies.dependencies.clock.now())
            await self.companies.note(connection, call, "company.delete", company)
        return Reply(204)

    async def _release_most_contacts(self, known: Company, call: Call) -> bool:
        """A company may have a million contacts: most of them are released in blocks, before others wait for its row.

        True: its deletion is decided, by the commit that released the first of them in a version that the caller
        accepts; anyone who knows that version changes it no more. A smaller one loses its contacts when it is deleted.
        """
        database, clock = self.companies.database, self.companies.dependencies.clock
        if not await companies.has_more_contacts(database, known, than=companies.RELEASED_AT_ONCE):
            return False
        async with self.companies.locked(call) as (connection, company):
            await companies.save(connection, company, replace(company, revision=company.revision + 1), call.now)
            await companies.release_contacts(connection, company, clock.now())
        await companies.release_in_blocks(database, company, clock)
        return True

    async def _check_references(self, connection: Executor, company: Company, before: Company | None = None) -> None:
        """Raise REFERENCE_NOT_FOUND (422) for an account or a contact, named now, that is not there."""
        environment = (company.organization_id, company.env)
        account_id = company.responsible_id
        if before is not None and account_id == before.responsible_id:
            account_id = None
        if account_id is not None and await accounts.get(connection, environment[0], account_id) is None:
            raise reference_not_found("responsavelId", ACCOUNT, account_id, environment[1])
        contact_id = company.main_contact_id
        if before is not None and contact_id == before.main_contact_id:
            contact_id = None
        if contact_id is not None and not await companies.contact_exists(connection, *environment, contact_id):
            raise reference_not_found("contatoPrincipalId", CONTACT, contact_id, environment[1])


async def _views(call: Call, executor: Executor, known: list[Company]) -> Iterable[dict[str, Any]]:
    counts = await companies.counts(executor, call.principal.organization_id, call.principal.env, known)
    return (company_view(company, counts[company.id]) for company in known)


def _edited(company: Company, changes: Mapping[str, Any], given: Mapping[str, Any]) -> Company:
    """The company with a caller's changes: `given` attributes are merged, `null` clears."""
    fields = {_COLUMNS[name]: value for name, value in changes.items() if name in _COLUMNS}
    cleared = "atributos" in changes and changes["atributos"] is None
    try:
        attributes = merged(
            {} if cleared else company.attributes, given, frozenset(changes.get("remover_atributos") or ())
        )
    except Refusal as refusal:
        raise _refused(refusal) from None
    return replace(company, **fields, attributes=attributes)


def _attributes(given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Attributes of a body; 422 that points at the one that is not acceptable."""
    try:
        return read_attributes(given or {})
    except Refusal as refusal:
        raise _refused(refusal) from None


def _refused(refusal: Refusal) -> Problem:
    return validation_error(refusal.under("atributos").errors)


def company_routes(dependencies: Dependencies) -> tuple[Route, ...]:
    """The operations on companies."""
    resource = Resource(
        dependencies=dependencies,
        table=COMPANIES,
        path="/v2/companies/{id}",
        prefix=COMPANY,
        name="company",
        group=Group("Companies", "crm:read", "crm:write"),
        out=CompanyOut,
        page=CompanyPage,
        views=_views,
    )
    operations = CompanyOperations(resource)
    return (
        resource.route(
            "GET /v2/companies", "listCompanies", "List companies by name", operations.list, query=CompanyQuery,
            description="A `q` that is a valid CNPJ finds the company with it; any other one is a part of the name.",
        ),
        resource.route(
            "POST /v2/companies", "createCompany", "Create a company", operations.create, body=CompanyCreate,
            errors=("CNPJ_JA_CADASTRADO", "LIMIT_REACHED", "CNPJ_INVALID", "REFERENCE_NOT_FOUND"),
            examine=operations.examine,
        ),
        resource.route("GET /v2/companies/{id}", "getCompany", "Read a company", resource.read),
        resource.route(
            "PATCH /v2/companies/{id}", "updateCompany", "Change a company", operations.patch, body=CompanyPatch,
            errors=("CNPJ_JA_CADASTRADO", "CNPJ_INVALID", "REFERENCE_NOT_FOUND"),
        ),
        resource.route(
            "DELETE /v2/companies/{id}", "deleteCompany", "Delete a company", operations.delete,
            description="Its contacts stay, without `companyId` and `papelNaEmpresa`.",
        ),
        resource.route(
            "GET /v2/companies/{id}/contacts", "listCompanyContacts", "List the contacts of a company, newest first",
            operations.contacts, load=operations.find_for_contacts,
            query=PageQuery, responses={200: CompanyContactPage},
            description="Needs the scope `contacts:read` as well.",
        ),
    )  # fmt: skip
