"""The history of contacts' consent: one row for each change, in the transaction that makes it (C12.5.2)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from recado.domain.contacts.consent import ConsentStatus, ConsentUpdate
from recado.domain.contacts.contact import Contact
from recado.storage.core.audit import AuditPrincipal
from recado.storage.core.statements.rows import Executor, reader
from recado.storage.core.statements.sql import load

SQL = load("contact_consents")

LATEST = 2**31 - 1  # above every revision
KEPT = timedelta(days=5 * 365 + 2)
_STATEMENT = 250  # changes: what makes thousands has others wait a millisecond or two for one


@dataclass(frozen=True, slots=True)
class ConsentEntry:
    """One change. `revision`: of the contact with it. `at`: of the consent or refusal. `from_status` None: at birth.

    `date_given`: the caller named the date.
    """

    revision: int
    from_status: ConsentStatus | None
    to_status: ConsentStatus
    at: datetime
    date_given: bool
    source: str | None
    ip: str | None = field(repr=False)
    user_agent: str | None = field(repr=False)
    reason: str | None = field(repr=False)
    actor_type: str | None
    actor_id: str | None
    recorded_at: datetime


read = reader(ConsentEntry, from_status=ConsentStatus, to_status=ConsentStatus)


async def append(connection: Executor, changes: Sequence[tuple[Contact, ConsentUpdate, AuditPrincipal]]) -> None:
    """Record changes and who made them; each contact is given as it is stored after its change.

    A repeat adds nothing.
    """
    for start in range(0, len(changes), _STATEMENT):
        some = changes[start : start + _STATEMENT]
        contacts, decided, actors = zip(*some, strict=True)
        await connection.execute(
            *SQL.bind(
                "append",
                organization_id=[contact.organization_id for contact in contacts],
                env=[contact.env for contact in contacts],
                contact_id=[contact.id for contact in contacts],
                revision=[contact.revision for contact in contacts],
                from_status=[None if each.revision == 1 else change.before.value for each, change, _ in some],
                to_status=[change.after.status.value for change in decided],
                at=[change.at for change in decided],
                date_given=[change.date_given for change in decided],
                source=[change.after.source for change in decided],
                ip=[change.after.ip for change in decided],
                user_agent=[change.after.user_agent for change in decided],
                reason=[change.after.revoked_reason for change in decided],
                actor_type=[actor.type for actor in actors],
                actor_id=[actor.id for actor in actors],
                recorded_at=[contact.updated_at for contact in contacts],
            )
        )


async def of_contact(
    executor: Executor, contact: Contact, now: datetime, *, before: int = LATEST, limit: int
) -> list[ConsentEntry]:
    """Newest first, those of revisions below `before`; none that is past its time, removed or not (C32)."""
    key = (contact.organization_id, contact.env, contact.id)
    rows = await executor.fetch(SQL.of_contact, *key, before, now - KEPT, limit)
    return [read(row) for row in rows]


async def forget(connection: Executor, contact: Contact) -> None:
    """Remove the history of a contact that is deleted (C12.6)."""
    await connection.execute(SQL.forget, contact.organization_id, contact.env, contact.id)


async def purge(executor: Executor, now: datetime) -> None:
    """Remove what was recorded more than five years ago (C32)."""
    await executor.execute(SQL.purge, now - KEPT)
