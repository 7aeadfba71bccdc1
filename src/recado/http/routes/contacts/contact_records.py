"""What belongs to contacts: opt-outs, consent history, catalogue of fields, debt groups (C12.5, C12.8, C12.9)."""

from typing import Any, Final

from recado.domain.access.scopes import PII
from recado.domain.contacts.consent import ConsentChange, ConsentStatus, with_request
from recado.domain.contacts.contact_fields import catalogue
from recado.domain.core.errors import FieldError, Problem, validation_error
from recado.domain.core.ids import CONTACT
from recado.domain.core.references import no_such
from recado.http.api.audit import actor_of
from recado.http.api.call import Call
from recado.http.api.paging import Cursors, items_of
from recado.http.callers.principal import ACCOUNT
from recado.http.routes.contacts.contact_answers import consent_view, group_view
from recado.http.routes.contacts.contact_models import OptOut
from recado.http.routes.core.lists import listed
from recado.http.routes.core.phones import phone_at, user_id_at
from recado.http.wire.reply import Reply
from recado.services.contacts.contacts import Contacts
from recado.storage.contacts import contact_consents, contact_fields, contacts, debtor_groups
from recado.storage.contacts.opt_outs import Registrant
from recado.storage.core.connections.postgres import Database

CONSENTS: Final = "listContactConsents"


class ContactRecords:
    """The handlers."""

    def __init__(self, database: Database, changes: Contacts, cursors: Cursors) -> None:
        self._database = database
        self._changes = changes
        self._cursors = cursors

    async def opt_out(self, call: Call) -> Reply:
        body: OptOut = call.body
        address, found = await self._addressed(call, body)
        change = for_caller(
            call,
            ConsentChange(
                ConsentStatus.DENIED,
                source=body.source,
                revoked_at=body.at,
                revoked_reason=body.reason,
                dates_count=True,
            ),
        )
        done = await self._changes.opt_out(found, address, change, by=actor_of(call), now=call.now)
        return Reply(
            200,
            {
                "contactId": done.contact_id,
                "alreadyOptedOut": done.already,
                "executionsCancelled": done.executions,
                "messagesWithdrawn": done.withdrawn,
            },
        )

    async def consents(self, call: Call) -> Reply:
        operation = f"{CONSENTS} {call.resource.id}"
        key = self._cursors.read(call, operation)
        entries = await contact_consents.of_contact(
            self._database,
            call.resource,
            call.now,
            before=contact_consents.LATEST if key is None else key[0],
            limit=call.query.limit + 1,
        )
        items = items_of(call, entries, consent_view)
        return Reply(200, await self._cursors.page(call, operation, items, lambda entry: [entry.revision]))

    async def fields(self, call: Call) -> Reply:
        principal = call.principal
        keys = await contact_fields.of_environment(self._database, principal.organization_id, principal.env)
        return Reply(200, {"items": catalogue(keys)})

    async def groups(self, call: Call) -> Reply:
        principal, query = call.principal, call.query
        page = await debtor_groups.list_page(
            self._database,
            principal.organization_id,
            principal.env,
            status=query.status,
            company=query.company,
            contact_id=query.contact_id,
            limit=query.limit,
            skip=query.skip,
        )
        unmasked = call.can(PII)

        def view(owned: debtor_groups.OwnedGroup) -> dict[str, Any]:
            return group_view(owned.group, unmasked) | {"contactId": owned.contact_id}

        return await listed(page, view)

    async def _addressed(self, call: Call, body: OptOut) -> tuple[Registrant, list[str]]:
        """Whom the body names: the registry's names, and the ids of contacts; 404 for an id that nobody has."""
        environment = (call.principal.organization_id, call.principal.env)
        named = (body.contact_id, body.external_id, body.phone, body.email, body.chatapp_user_id)
        if sum(value is not None for value in named) != 1:
            message = "needs exactly one of contactId, externalId, phone, email and chatappUserId"
            raise validation_error([FieldError("", "INVALID", message)])
        address = Registrant(*environment)
        if body.contact_id is not None:
            contact = await contacts.get(self._database, *environment, body.contact_id)
            found = [] if contact is None else [contact.id]
        elif body.external_id is not None:
            known = await contacts.by_external_ids(self._database, *environment, [body.external_id])
            found = [contact.id for contact in known]
        elif body.phone is not None:
            address = Registrant(*environment, phone=phone_at("/phone", body.phone))
            known = await contacts.by_phones(self._database, *environment, [address.phone or ""])
            found = [contact.id for contact in known]
        elif body.email is not None:
            address = Registrant(*environment, email=body.email)
            found = await contacts.ids_by_email(self._database, *environment, body.email)
        else:
            user_id = user_id_at("/chatappUserId", body.chatapp_user_id or "")
            address = Registrant(*environment, user_id=user_id)
            found = await contacts.ids_by_user_id(self._database, *environment, user_id)
        if not found and not address.names():
            raise _nobody(call, body)
        return address, found


def _nobody(call: Call, body: OptOut) -> Problem:
    """404, which names an id that was sent; an external id may be anything, also personal data (C4.1)."""
    env = call.principal.env
    if body.contact_id is not None:
        return Problem("NOT_FOUND", no_such(CONTACT, body.contact_id, env))
    return Problem("NOT_FOUND", f"No contact with this `externalId` in {env}.")


def for_caller(call: Call, change: ConsentChange) -> ConsentChange:
    """A change as this caller may ask for it."""
    if call.principal.actor_type != ACCOUNT:
        return change
    return with_request(change, ip=call.client_ip, user_agent=call.user_agent)
