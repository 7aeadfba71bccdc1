"""Contacts: list, create, read, change, delete (C12.1 to C12.3, C12.6)."""

from collections.abc import Awaitable
from functools import partial
from typing import Any, Final

from recado.domain.contacts.consent import ConsentChange, with_request
from recado.domain.contacts.contact import Contact
from recado.domain.contacts.contact_input import Given, read_changes, read_new
from recado.domain.contacts.documents import BIRTH_DATE, CNPJ, CPF
from recado.domain.core.errors import not_found
from recado.domain.core.ids import CONTACT, IdSource
from recado.http.api.audit import actor_of
from recado.http.api.call import Call
from recado.http.api.operation import missing_scope, session_needed
from recado.http.api.page_items import PageItems
from recado.http.api.paging import Cursors
from recado.http.api.parsing import invalid_body
from recado.http.api.principal import ACCOUNT
from recado.http.api.tampering import tampering_recorded
from recado.http.routes.contacts.contact_lists import contact_views
from recado.http.routes.contacts.contact_models import ContactQuery
from recado.http.routes.contacts.contact_view import contact_view, masked
from recado.http.routes.core.lists import shown
from recado.http.wire.reply import Reply
from recado.services.contacts.contact_creation import NewContact
from recado.services.contacts.contact_rules import new_contact
from recado.services.imports.contact_system import ContactSystem
from recado.storage.contacts import contact_reads, contacts, debtor_groups
from recado.storage.contacts.contact_reads import ContactFilter, ContactPage
from recado.storage.contacts.debtor_groups import Groups
from recado.storage.contacts.list_pages import Milestones
from recado.storage.core.postgres import Database

PII: Final = "pii:full"
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

    async def create(self, call: Call) -> Reply:
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
        new = NewContact(contact, actor_of(call), consent_of(call, given), groups)
        contact = await self._creation.create(new)
        return _reply(call, contact, groups, 201)

    async def read(self, call: Call) -> Reply:
        contact: Contact = call.resource
        reply = _reply(call, contact, await self._groups(contact), 200)
        ciphers = {CPF: contact.cpf_cipher, CNPJ: contact.cnpj_cipher, BIRTH_DATE: contact.birth_date_cipher}
        async with tampering_recorded(self._database, self._ids, call):
            documents = self._documents.masked(ciphers, organization_id=contact.organization_id, contact_id=contact.id)
        if documents:
            reply.body["documentos"] = documents
        return reply

    async def patch(self, call: Call) -> Reply:
        found: Contact = call.resource
        given = _accepted(read_changes(call.body, call.now.date()), call)
        contact, groups = await self._changes.change(
            (found.organization_id, found.env, found.id),
            given.values,
            consent_of(call, given),
            by=actor_of(call),
            now=call.now,
            check=lambda current: call.check_revision(current.revision),
        )
        return _reply(call, contact, groups, 200)

    async def delete(self, call: Call) -> Reply:
        found: Contact = call.resource
        await self._changes.delete(
            (found.organization_id, found.env, found.id),
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
        contact = await contacts.get(self._database, principal.organization_id, principal.env, call.path["id"])
        if contact is None:
            raise not_found()
        return contact

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

        def rest(last: Contact, left: int) -> Awaitable[ContactPage]:
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
        found = await debtor_groups.of_contacts(self._database, contact.organization_id, contact.env, [contact.id])
        return found.get(contact.id, ())


def consent_of(call: Call, given: Given) -> ConsentChange | None:
    """The change of consent in a body; of a session its dates do not count (C12.5.1)."""
    change: ConsentChange | None = given.values.get("opt_in")
    return change if change is None else for_caller(call, change)


def for_caller(call: Call, change: ConsentChange) -> ConsentChange:
    """A change as this caller may ask for it."""
    if call.principal.actor_type != ACCOUNT:
        return change
    return with_request(change, ip=call.client_ip, user_agent=call.user_agent)


def _accepted(given: Given, call: Call) -> Given:
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
