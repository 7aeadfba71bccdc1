"""The one way to a contact's documents in the clear: a person says why, and the audit keeps it (C12.4)."""

from typing import Annotated, Any, Literal

from pydantic import Field

from recado.domain.contacts.contact import Contact
from recado.domain.contacts.documents import SHOWN_AS
from recado.domain.core.ids import CONTACT, IdSource
from recado.http.api.audit import actor_of
from recado.http.api.call import Call
from recado.http.api.models import ApiModel
from recado.http.api.route import Route
from recado.http.problems.missing import found
from recado.http.problems.tampering import tampering_recorded
from recado.http.wire.reply import Reply
from recado.storage.contacts import contacts, reveals
from recado.storage.contacts.documents import CIPHER_COLUMNS, DocumentCipher
from recado.storage.core import audit
from recado.storage.core.connections.postgres import Connection, Database

ShownField = Literal["cpf", "cnpj", "nascimento"]


class RevealRequest(ApiModel):
    """Why, and which documents; all of them when nothing is chosen."""

    motivo: Annotated[str, Field(min_length=10, max_length=300, description="Kept in the audit.")]
    campos: Annotated[list[ShownField], Field(min_length=1, max_length=3)] | None = None


class RevealedDocuments(ApiModel):
    """The documents that the contact has."""

    cpf: str | None = None
    cnpj: str | None = None
    nascimento: str | None = None
    audit_id: str


def document_reveal_routes(*, database: Database, ids: IdSource, documents: DocumentCipher) -> tuple[Route, ...]:
    """For sessions only. The call takes no idempotency key, because no document is to be kept with an answer."""

    async def stored(connection: Database | Connection, call: Call) -> Contact:
        principal = call.principal
        return found(await contacts.get(connection, principal.organization_id, principal.env, call.path["id"]))

    async def find(call: Call) -> Contact:
        return await stored(database, call)

    async def reveal(call: Call) -> Reply:
        principal, contact_id = call.principal, call.path["id"]
        wanted = sorted(set(call.body.campos or SHOWN_AS.values()))
        entry = audit.entry_of(
            ids,
            actor_of(call),
            "contact.reveal",
            organization_id=principal.organization_id,
            env=principal.env,
            target_id=contact_id,
            details={"fields": wanted, "reason": call.body.motivo},
        )
        body: dict[str, Any] = {"auditId": entry.id}
        async with tampering_recorded(database, ids, call), database.transaction() as connection:
            contact = await stored(connection, call)
            call.check_revision(contact.revision)
            await reveals.count(connection, principal.organization_id, principal.actor_id, entry.id, call.now)
            for name, column in CIPHER_COLUMNS.items():
                cipher = getattr(contact, column)
                if cipher is not None and SHOWN_AS[name] in wanted:
                    body[SHOWN_AS[name]] = documents.open(
                        name, cipher, organization_id=principal.organization_id, contact_id=contact_id
                    )
            await audit.append(connection, entry)
        return Reply(200, body)

    return (
        Route(
            method="POST",
            path="/v2/contacts/{id}/documentos/revelar",
            handler=reveal,
            operation_id="revealDocuments",
            summary="Reveal a contact's documents",
            description="Each call is in the audit with its reason. At most 60 an hour for each account.",
            tag="Contacts",
            scope="contacts:pii",
            session_only=True,
            rate_class="write",
            body=RevealRequest,
            responses={200: RevealedDocuments},
            path_ids={"id": CONTACT},
            matches=True,
            load=find,
        ),
    )
