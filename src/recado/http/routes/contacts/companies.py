"""Companies: list, create, read, change, delete, and the contacts of one (C20)."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from recado.domain.contacts.cnpj import searched_cnpj
from recado.domain.contacts.contact_attributes import merged, read_attributes
from recado.domain.core.clock import Clock
from recado.domain.core.errors import Problem, not_found, validation_error
from recado.domain.core.ids import ACCOUNT, COMPANY, CONTACT, IdSource, created_at
from recado.domain.core.reading import Refusal
from recado.domain.core.references import reference_not_found
from recado.http.api.audit import actor_of
from recado.http.api.call import Call
from recado.http.api.operation import missing_scope
from recado.http.api.page_items import PageItems
from recado.http.api.paging import PageQuery
from recado.http.api.route import Idempotency, Route
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
from recado.http.routes.core.lists import shown
from recado.http.wire.reply import Reply
from recado.storage.contacts import companies, contact_reads
from recado.storage.contacts.companies import Company
from recado.storage.contacts.contacts import Contact
from recado.storage.core import audit
from recado.storage.core.postgres import Connection, Database
from recado.storage.core.rows import Executor, Page

FindAccount = Callable[[Executor, str, str], Awaitable[object | None]]
"""From organization and id to an account, or None."""

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


class CompanyOperations:
    """The handlers."""

    def __init__(self, database: Database, ids: IdSource, clock: Clock, find_account: FindAccount) -> None:
        self._database = database
        self._ids = ids
        self._clock = clock
        self._find_account = find_account

    async def find(self, call: Call) -> Company:
        principal = call.principal
        company = await companies.get(self._database, principal.organization_id, principal.env, call.path["id"])
        if company is None:
            raise not_found()
        return company

    async def list(self, call: Call) -> Reply:
        principal, query = call.principal, call.query
        cnpj = None if query.q is None else searched_cnpj(query.q)
        read = partial(
            companies.list_page,
            self._database.searches if query.q is not None else self._database.page(query.skip),
            principal.organization_id,
            principal.env,
            cnpj=cnpj,
            part=query.q if cnpj is None else None,
            responsible_id=query.responsavel_id,
        )

        def rest(last: Company, left: int) -> Awaitable[Page[Company]]:
            return read(limit=left, after=last)

        async def views(found: list[Company]) -> Iterable[Any]:
            counts = await companies.counts(self._database, principal.organization_id, principal.env, found)
            return (company_view(company, counts[company.id]) for company in found)

        return await shown(PageItems(await read(limit=query.limit, skip=query.skip), views, rest, query.limit))

    async def read(self, call: Call) -> Reply:
        return await self._reply(self._database, call.resource)

    async def find_for_contacts(self, call: Call) -> Company:
        """As `find`, for anyone who may read contacts, too."""
        if not call.can(CONTACTS):
            raise missing_scope(CONTACTS)
        return await self.find(call)

    async def contacts(self, call: Call) -> Reply:
        company: Company = call.resource
        organization_id, env = company.organization_id, company.env
        wanted = contact_reads.ContactFilter(organization_id=organization_id, env=env, company_id=company.id)
        limit, skip = call.query.limit, call.query.skip
        read = partial(contact_reads.list_page, self._database.page(skip), wanted)

        def rest(last: Contact, left: int) -> Awaitable[Page[Contact]]:
            return read(limit=left, after=contact_reads.position_of(wanted, last), counted=False)

        views = contact_views(self._database, call)
        return await shown(PageItems(await read(limit=limit, skip=skip), views, rest, limit))

    async def create(self, call: Call) -> Reply:
        principal, body = call.principal, call.body
        company_id = self._ids.new(COMPANY)
        new = Company(
            organization_id=principal.organization_id,
            env=principal.env,
            id=company_id,
            attributes=_attributes(body.atributos),
            created_by_id=principal.actor_id,
            updated_at=created_at(company_id),
            **{column: getattr(body, name) for name, column in _COLUMNS.items()},
        )
        async with self._database.transaction() as connection:
            await self._check_references(connection, new)
            company = await companies.insert(connection, new)
            await companies.adopt(connection, company, call.now)
            return await self._reply(connection, company, 201)  # nothing is waited for once it is committed

    async def patch(self, call: Call) -> Reply:
        changes = call.body.changes()
        given = _attributes(changes.get("atributos"))
        async with self._database.transaction() as connection:
            before = await self._locked(connection, call)
            edited = _edited(before, changes, given)
            await self._check_references(connection, edited, before)
            after = await companies.save(connection, before, edited, call.now)
            if after.main_contact_id != before.main_contact_id:
                await companies.adopt(connection, after, call.now)
            return await self._reply(connection, after)

    async def delete(self, call: Call) -> Reply:
        found: Company = call.resource
        decided = await self._release_most_contacts(found, call)
        async with self._database.transaction() as connection:
            company = await companies.get_to_delete(connection, found.organization_id, found.env, found.id)
            if company is None:
                raise not_found()
            if not decided:
                call.check_revision(company.revision)
            await companies.delete(connection, company, self._clock.now())
            await audit.write(
                connection,
                self._ids,
                actor_of(call),
                "company.delete",
                organization_id=company.organization_id,
                env=company.env,
                target_id=company.id,
            )
        return Reply(204)

    async def _release_most_contacts(self, found: Company, call: Call) -> bool:
        """A company may have a million contacts: most of them are released in blocks, before others wait for its row.

        True: its deletion is decided, by the commit that released the first of them in a version that the caller
        accepts; anyone who knows that version changes it no more. A smaller one loses its contacts when it is deleted.
        """
        if not await companies.has_more_contacts(self._database, found, than=companies.RELEASED_AT_ONCE):
            return False
        async with self._database.transaction() as connection:
            company = await self._locked(connection, call)
            await companies.save(connection, company, replace(company, revision=company.revision + 1), call.now)
            await companies.release_contacts(connection, company, self._clock.now())
        await companies.release_in_blocks(self._database, company, self._clock)
        return True

    async def _locked(self, connection: Connection, call: Call) -> Company:
        """The path's company, held until the transaction ends, in a version that the caller accepts."""
        found: Company = call.resource
        company = await companies.get_locked(connection, found.organization_id, found.env, found.id)
        if company is None:
            raise not_found()
        call.check_revision(company.revision)
        return company

    async def _check_references(self, connection: Connection, company: Company, before: Company | None = None) -> None:
        """Raise REFERENCE_NOT_FOUND (422) for an account or a contact, named now, that is not there."""
        environment = (company.organization_id, company.env)
        account_id = company.responsible_id
        if before is not None and account_id == before.responsible_id:
            account_id = None
        if account_id is not None and await self._find_account(connection, environment[0], account_id) is None:
            raise reference_not_found("responsavelId", ACCOUNT, account_id, environment[1])
        contact_id = company.main_contact_id
        if before is not None and contact_id == before.main_contact_id:
            contact_id = None
        if contact_id is not None and not await companies.contact_exists(connection, *environment, contact_id):
            raise reference_not_found("contatoPrincipalId", CONTACT, contact_id, environment[1])

    async def _reply(self, executor: Executor, company: Company, status: int = 200) -> Reply:
        counts = await companies.counts(executor, company.organization_id, company.env, [company])
        return Reply(status, company_view(company, counts[company.id]), revision=company.revision)


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
    return validation_error([refusal.under("atributos").error])


def company_routes(*, database: Database, ids: IdSource, clock: Clock, find_account: FindAccount) -> tuple[Route, ...]:
    """`find_account`: who can be responsible for a company."""
    operations = CompanyOperations(database, ids, clock, find_account)
    read: dict[str, Any] = {"tag": "Companies", "scope": "crm:read", "rate_class": "read"}
    write: dict[str, Any] = {"tag": "Companies", "scope": "crm:write", "rate_class": "write"}
    one: dict[str, Any] = {"load": operations.find, "path_ids": {"id": COMPANY}, "versioned": True}
    return (
        Route(
            method="GET",
            path="/v2/companies",
            handler=operations.list,
            operation_id="listCompanies",
            summary="List companies by name",
            description="A `q` that is a valid CNPJ finds the company with it; any other one is a part of the name.",
            query=CompanyQuery,
            responses={200: CompanyPage},
            **read,
        ),
        Route(
            method="POST",
            path="/v2/companies",
            handler=operations.create,
            operation_id="createCompany",
            summary="Create a company",
            body=CompanyCreate,
            responses={201: CompanyOut},
            errors=("CNPJ_JA_CADASTRADO", "LIMIT_REACHED", "CNPJ_INVALID", "REFERENCE_NOT_FOUND"),
            idempotency=Idempotency.ACCEPTED,
            versioned=True,
            creates=True,
            **write,
        ),
        Route(
            method="GET",
            path="/v2/companies/{id}",
            handler=operations.read,
            operation_id="getCompany",
            summary="Read a company",
            responses={200: CompanyOut},
            **one,
            **read,
        ),
        Route(
            method="PATCH",
            path="/v2/companies/{id}",
            handler=operations.patch,
            operation_id="updateCompany",
            summary="Change a company",
            body=CompanyPatch,
            responses={200: CompanyOut},
            errors=("CNPJ_JA_CADASTRADO", "CNPJ_INVALID", "REFERENCE_NOT_FOUND"),
            **one,
            **write,
        ),
        Route(
            method="DELETE",
            path="/v2/companies/{id}",
            handler=operations.delete,
            operation_id="deleteCompany",
            summary="Delete a company",
            description="Its contacts stay, without `companyId` and `papelNaEmpresa`.",
            responses={204: None},
            **one,
            **write,
        ),
        Route(
            method="GET",
            path="/v2/companies/{id}/contacts",
            handler=operations.contacts,
            operation_id="listCompanyContacts",
            summary="List the contacts of a company, newest first",
            description="Needs the scope `contacts:read` as well.",
            query=PageQuery,
            responses={200: CompanyContactPage},
            load=operations.find_for_contacts,
            path_ids={"id": COMPANY},
            **read,
        ),
    )
