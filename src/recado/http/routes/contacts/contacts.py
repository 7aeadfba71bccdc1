"""Contacts: list, create, read, change, delete (C12.1 to C12.3, C12.6), and the routes of what belongs to them."""

from collections.abc import Awaitable
from dataclasses import replace
from functools import partial
from typing import Any, Final

from recado.domain.access.scopes import PII
from recado.domain.contacts.consent import ConsentChange
from recado.domain.contacts.contact import Contact
from recado.domain.contacts.contact_input import GivenFields, read_changes, read_new
from recado.domain.core.ids import CONTACT, IdSource
from recado.http.api.audit import actor_of
from recado.http.api.call import Call
from recado.http.api.operation import missing_scope, session_needed
from recado.http.api.page_items import PageItems
from recado.http.api.paging import CursorQuery, Cursors
from recado.http.api.route import Route
from recado.http.bodies.parsing import invalid_body
from recado.http.callers.principal import ACCOUNT
from recado.http.problems.missing import found
from recado.http.problems.tampering import tampering_recorded
from recado.http.routes.contacts.contact_answers import (
    ConsentHistory,
    ContactDetail,
    ContactFields,
    ContactOut,
    ContactPage,
    DebtorGroupPage,
    OptedOutResult,
    contact_view,
    masked,
)
from recado.http.routes.contacts.contact_lists import contact_views
from recado.http.routes.contacts.contact_models import (
    ContactCreate,
    ContactPatch,
    ContactQuery,
    DebtorGroupQuery,
    OptOut,
)
from recado.http.routes.contacts.contact_records import ContactRecords, for_caller
from recado.http.routes.core.groups import Group
from recado.http.routes.core.lists import shown
from recado.http.wire.reply import Reply
from recado.services.contacts.consents import ContactKey
from recado.services.contacts.contact_creation import NewContact
from recado.services.contacts.contact_rules import new_contact
from recado.services.imports.contact_system import ContactSystem
from recado.storage.contacts import contact_reads, contacts, debtor_groups
from recado.storage.contacts.contact_reads import ContactFilter
from recado.storage.contacts.debtor_groups import Groups
from recado.storage.contacts.documents import CIPHER_COLUMNS
from recado.storage.contacts.list_pages import Milestones
from recado.storage.core.connections.postgres import Database

CONTACTS: Final = Group("Contacts", "contacts:read", "contacts:write")

# What a contact, and a change of one, can be refused for.
CONTACT_CODES = (
    "PHONE_INVALID",
    "PHONE_TAKEN",
    "EXTERNAL_ID_TAKEN",
    "CONSENTIMENTO_ANTERIOR_A_RECUSA",
    "CONSENTIMENTO_SEM_ORIGEM",
    "DATA_DO_CONSENTIMENTO_NO_FUTURO",
    "CPF_INVALID",
    "CNPJ_INVALID",
    "URL_NOT_ALLOWED",
    "REFERENCE_NOT_FOUND",
)
DOCUMENTS: Final = "contacts:pii"
LIST: Final = "listContacts"

_DROPPED = {
    "code": "FILTER_DROPPED",
    "parameter": "q",
    "detail": "The search looks into phones, and the credential lacks the scope pii:full.",
}


class ContactOperations:
    """The handlers."""

    def __init__(self, database: Database, ids: IdSource, people: ContactSystem, cursors: Cursors) -> None:
        self._database = database
        self._ids = ids
        self._documents = people.documents
        self._creation = people.creation
        self._changes = people.changes
        self._search = people.search
        self._cursors = cursors
        self._milestones = Milestones()

    async def list(self, call: Call) -> Reply:
        query: ContactQuery = call.query
        after = self._cursors.read(call, LIST)
        dropped = query.q is not None and not call.can(PII)
        wanted = self._wanted(call, query, None if dropped else query.q)
        items = await self._items(call, wanted, None if after is None else contact_reads.position(after))
        return await shown(
            items,
            cursor=lambda last: self._cursors.write(call, LIST, _position(query, last)),
            ends_early=after is not None,
            warnings=[_DROPPED] if dropped else None,
        )

    async def examine(self, call: Call) -> None:
        """Raise `Problem` for what no contact can be."""
        await self._creation.examine(self._new(call))

    async def create(self, call: Call) -> Reply:
        new = self._new(call)
        contact = await self._creation.create(new)
        return _reply(call, contact, new.groups, 201)

    def _new(self, call: Call) -> NewContact:
        """The contact of the body. Raises `Problem` 422."""
        principal = call.principal
        given = _accepted(read_new(call.body, call.now.date()), call)
        contact = new_contact(
            given.values,
            self._documents,
            organization_id=principal.organization_id,
            env=principal.env,
            contact_id=self._ids.new(CONTACT),
        )
        groups = debtor_groups.with_ids(given.values.get("debtor_groups", ()), self._ids)
        return NewContact(contact, actor_of(call), consent_of(call, given), groups)

    async def read(self, call: Call) -> Reply:
        contact: Contact = call.resource
        reply = _reply(call, contact, await self._groups(contact), 200)
        ciphers = {name: getattr(contact, column) for name, column in CIPHER_COLUMNS.items()}
        async with tampering_recorded(self._database, self._ids, call):
            documents = self._documents.masked(ciphers, organization_id=contact.organization_id, contact_id=contact.id)
        if documents:
            reply.body["documentos"] = documents
        return reply

    async def patch(self, call: Call) -> Reply:
        given = _accepted(read_changes(call.body, call.now.date()), call)
        contact, groups = await self._changes.change(
            _key(call.resource),
            given.values,
            consent_of(call, given),
            by=actor_of(call),
            now=call.now,
            check=lambda current: call.check_revision(current.revision),
        )
        return _reply(call, contact, groups, 200)

    async def delete(self, call: Call) -> Reply:
        await self._changes.delete(
            _key(call.resource),
            by=actor_of(call),
            now=call.now,
            check=lambda current: call.check_revision(current.revision),
        )
        return Reply(204)

    async def replay(self, call: Call, status: int, body: Any) -> Reply:
        """A kept answer, its phones masked for this caller."""
        return Reply(status, _for_eyes(call, body))

    async def find(self, call: Call) -> Contact:
        """The contact of the path; 404."""
        principal = call.principal
        return found(await contacts.get(self._database, principal.organization_id, principal.env, call.path["id"]))

    async def _items(
        self, call: Call, wanted: ContactFilter | None, after: contact_reads.Position | None
    ) -> PageItems[Contact]:
        query: ContactQuery = call.query
        views = contact_views(self._database, call)
        if wanted is None:
            return PageItems(contact_reads.NOBODY, views, None, query.limit)
        skip = query.skip if after is None else 0
        read = partial(
            contact_reads.list_page,
            self._database.searches if contact_reads.is_search(wanted) else self._database.page(skip),
            wanted,
            milestones=self._milestones,
        )

        def rest(last: Contact, left: int) -> Awaitable[contact_reads.ContactPage]:
            return read(limit=left, after=contact_reads.position_of(wanted, last), counted=False)

        return PageItems(await read(limit=query.limit, skip=skip, after=after), views, rest, query.limit)

    def _wanted(self, call: Call, query: ContactQuery, q: str | None) -> ContactFilter | None:
        """What the query asks for; None for what nobody can be."""
        principal = call.principal
        document = None
        if query.documento is not None:
            if principal.actor_type != ACCOUNT:
                raise session_needed()
            if not call.can(DOCUMENTS):
                raise missing_scope(DOCUMENTS)
            document = self._documents.searched(
                query.documento, organization_id=principal.organization_id, env=principal.env
            )
            if document is None:
                return None
        return ContactFilter(
            organization_id=principal.organization_id,
            env=principal.env,
            tag=query.tag,
            opt_in_status=query.opt_in_status,
            source=query.source,
            external_id=query.external_id,
            list_id=query.list_id,
            q=q,
            inside=self._search.inside,
            document=document,
            updated_since=query.updated_since,
        )

    async def _groups(self, contact: Contact) -> Groups:
        groups = await debtor_groups.of_contacts(self._database, contact.organization_id, contact.env, [contact.id])
        return groups.get(contact.id, ())


def consent_of(call: Call, given: GivenFields) -> ConsentChange | None:
    """The change of consent in a body; of a session its dates do not count (C12.5.1)."""
    change: ConsentChange | None = given.values.get("opt_in")
    return change if change is None else for_caller(call, change)


def _key(contact: Contact) -> ContactKey:
    return contact.organization_id, contact.env, contact.id


def _accepted(given: GivenFields, call: Call) -> GivenFields:
    if given.errors:
        raise invalid_body(given.errors, 422)
    return given


def _position(query: ContactQuery, last: Contact) -> list[Any]:
    if query.updated_since is None:
        return [last.id]
    return [last.updated_at.isoformat(), last.id]


def _for_eyes(call: Call, view: dict[str, Any]) -> dict[str, Any]:
    """A contact as this caller may see it."""
    return view if call.can(PII) else masked(view, hashed=call.principal.sees_phone_hashes)


def _reply(call: Call, contact: Contact, groups: Groups, status: int) -> Reply:
    view = contact_view(contact, groups, unmasked=True)
    return Reply(status, _for_eyes(call, view), revision=contact.revision, stored=view, subject_id=contact.id)


def contact_routes(
    *,
    database: Database,
    ids: IdSource,
    people: ContactSystem,
    cursors: Cursors,
) -> tuple[Route, ...]:
    """`people` writes; lists and reads go to the database."""
    operations = ContactOperations(database, ids, people, cursors)
    records = ContactRecords(database, people.changes, cursors)
    find, of_contact = operations.find, {"id": CONTACT}
    return (
        CONTACTS.route(
            "GET /contacts", LIST, "List and search contacts, newest first", operations.list,
            query=ContactQuery, responses={200: ContactPage}, errors=("SESSION_ONLY",),
            description=(
                "`q` looks for beginnings of words in name, profile name and e-mail, where the database can (pg_trgm) "
                "also inside words, and for the beginning or the end of phones; without `pii:full` it is dropped, and "
                "`warnings` says so. With `updatedSince` the list is in the order of changes."
            ),
        ),
        CONTACTS.route(
            "POST /contacts", "createContact", "Create a contact", operations.create,
            body=ContactCreate, responses={201: ContactOut}, errors=("CONFLICT", *CONTACT_CODES),
            replay=operations.replay, versioned=True, creates=True, examine=operations.examine,
            description=(
                "Phone and `externalId` are unique in the environment. A phone or address in the opt-out registry "
                "makes the contact `denied`, unless it comes with a younger consent that names its source."
            ),
        ),
        replace(
            CONTACTS.route(
                "POST /contacts/opt-out", "optOutContact", "Record that somebody wants no more messages",
                records.opt_out,
                body=OptOut, responses={200: OptedOutResult},
                errors=("NOT_FOUND", "PHONE_INVALID", "DATA_DO_CONSENTIMENTO_NO_FUTURO"),
                description=(
                    "Works for people who are no contact yet: the registry remembers the phone or address. Queued "
                    "messages that are subject to consent fail with `opted_out`."
                ),
            ),
            while_suspended=True,
        ),
        CONTACTS.route(
            "GET /contacts/fields", "listContactFields",
            "List the fields of contacts, and the attribute keys in use", records.fields,
            responses={200: ContactFields},
        ),
        CONTACTS.route(
            "GET /contacts/{id}", "getContact", "Read a contact, with its documents masked", operations.read,
            responses={200: ContactDetail}, load=find, path_ids=of_contact, versioned=True,
        ),
        CONTACTS.route(
            "PATCH /contacts/{id}", "updateContact", "Change a contact", operations.patch,
            body=ContactPatch, responses={200: ContactOut},
            errors=("PHONE_IMMUTABLE", "SOCIAL_IDENTITY_TAKEN", *CONTACT_CODES),
            load=find, path_ids=of_contact, versioned=True,
        ),
        CONTACTS.route(
            "DELETE /contacts/{id}", "deleteContact", "Delete a contact for good", operations.delete,
            responses={204: None}, load=find, path_ids=of_contact, versioned=True,
            description=(
                "Queued messages to it are withdrawn; those that exist keep their history, with the recipient masked "
                "and the content emptied. Its refusal stays in the opt-out registry."
            ),
        ),
        CONTACTS.route(
            "GET /contacts/{id}/consents", "listContactConsents",
            "Read the history of a contact's consent, newest first", records.consents,
            query=CursorQuery, responses={200: ConsentHistory}, load=find, path_ids=of_contact,
        ),
        CONTACTS.route(
            "GET /v2/debtor-groups", "listDebtorGroups", "List the debt groups of contacts, newest first",
            records.groups, query=DebtorGroupQuery, responses={200: DebtorGroupPage},
        ),
    )  # fmt: skip
