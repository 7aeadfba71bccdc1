"""The operations on contacts and on what belongs to them (C12.1)."""

from typing import Any

from recado.domain.core.ids import CONTACT, IdSource
from recado.http.api.paging import CursorQuery, Cursors
from recado.http.api.route import Idempotency, Route
from recado.http.routes.contacts.contact_answers import (
    ConsentHistory,
    ContactDetail,
    ContactFields,
    ContactOut,
    ContactPage,
    DebtorGroupPage,
    OptedOutResult,
)
from recado.http.routes.contacts.contact_models import (
    ContactCreate,
    ContactPatch,
    ContactQuery,
    DebtorGroupQuery,
    OptOut,
)
from recado.http.routes.contacts.contact_operations import LIST, ContactOperations
from recado.http.routes.contacts.contact_records import ContactRecords
from recado.services.imports.contact_system import ContactSystem
from recado.storage.core.postgres import Database

TAG = "Contacts"

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
    read: dict[str, Any] = {"tag": TAG, "scope": "contacts:read", "rate_class": "read"}
    write: dict[str, Any] = {"tag": TAG, "scope": "contacts:write", "rate_class": "write"}
    one: dict[str, Any] = {"load": operations.find, "path_ids": {"id": CONTACT}}
    return (
        Route(
            method="GET",
            path="/contacts",
            handler=operations.list,
            operation_id=LIST,
            summary="List and search contacts, newest first",
            description=(
                "`q` looks for beginnings of words in name, profile name and e-mail, where the database can (pg_trgm) "
                "also inside words, and for the beginning or the end of phones; without `pii:full` it is dropped, and "
                "`warnings` says so. With `updatedSince` the list is in the order of changes."
            ),
            query=ContactQuery,
            responses={200: ContactPage},
            errors=("SESSION_ONLY",),
            **read,
        ),
        Route(
            method="POST",
            path="/contacts",
            handler=operations.create,
            operation_id="createContact",
            summary="Create a contact",
            description=(
                "Phone and `externalId` are unique in the environment. A phone or address in the opt-out registry "
                "makes the contact `denied`, unless it comes with a younger consent that names its source."
            ),
            body=ContactCreate,
            responses={201: ContactOut},
            errors=("CONFLICT", *CONTACT_CODES),
            idempotency=Idempotency.ACCEPTED,
            replay=operations.replay,
            versioned=True,
            creates=True,
            **write,
        ),
        Route(
            method="POST",
            path="/contacts/opt-out",
            handler=records.opt_out,
            operation_id="optOutContact",
            summary="Record that somebody wants no more messages",
            description=(
                "Works for people who are no contact yet: the registry remembers the phone or address. Queued messages "
                "that are subject to consent fail with `opted_out`."
            ),
            body=OptOut,
            responses={200: OptedOutResult},
            errors=("NOT_FOUND", "PHONE_INVALID", "DATA_DO_CONSENTIMENTO_NO_FUTURO"),
            idempotency=Idempotency.ACCEPTED,
            while_suspended=True,
            **write,
        ),
        Route(
            method="GET",
            path="/contacts/fields",
            handler=records.fields,
            operation_id="listContactFields",
            summary="List the fields of contacts, and the attribute keys in use",
            responses={200: ContactFields},
            **read,
        ),
        Route(
            method="GET",
            path="/contacts/{id}",
            handler=operations.read,
            operation_id="getContact",
            summary="Read a contact, with its documents masked",
            responses={200: ContactDetail},
            versioned=True,
            **one,
            **read,
        ),
        Route(
            method="PATCH",
            path="/contacts/{id}",
            handler=operations.patch,
            operation_id="updateContact",
            summary="Change a contact",
            body=ContactPatch,
            responses={200: ContactOut},
            errors=("PHONE_IMMUTABLE", *CONTACT_CODES),
            versioned=True,
            **one,
            **write,
        ),
        Route(
            method="DELETE",
            path="/contacts/{id}",
            handler=operations.delete,
            operation_id="deleteContact",
            summary="Delete a contact for good",
            description=(
                "Queued messages to it are withdrawn; those that exist keep their history, with the recipient masked "
                "and the content emptied. Its refusal stays in the opt-out registry."
            ),
            responses={204: None},
            versioned=True,
            **one,
            **write,
        ),
        Route(
            method="GET",
            path="/contacts/{id}/consents",
            handler=records.consents,
            operation_id="listContactConsents",
            summary="Read the history of a contact's consent, newest first",
            query=CursorQuery,
            responses={200: ConsentHistory},
            **one,
            **read,
        ),
        Route(
            method="GET",
            path="/v2/debtor-groups",
            handler=records.groups,
            operation_id="listDebtorGroups",
            summary="List the debt groups of contacts, newest first",
            query=DebtorGroupQuery,
            responses={200: DebtorGroupPage},
            **read,
        ),
    )
