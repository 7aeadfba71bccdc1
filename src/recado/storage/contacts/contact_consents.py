"""The history of contacts' consent: one row for each change, in the transaction that makes it (C12.5.2)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from recado.domain.contacts.consent import Changed, ConsentStatus
from recado.domain.contacts.contact import Contact
from recado.storage.core.audit import Actor
from recado.storage.core.rows import Executor, columns, reader
from recado.storage.core.sql import load

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


async def append(connection: Executor, changes: Sequence[tuple[Contact, Changed, Actor]]) -> None:
    """Record changes and who made them; each contact is given as it is stored after its change.

    A repeat adds nothing.
    """
    for start in range(0, len(changes), _STATEMENT):
        rows = [_row(*change) for change in changes[start : start + _STATEMENT]]
        await connection.execute(SQL.append, *columns(rows, 15))


def _row(contact: Contact, changed: Changed, actor: Actor) -> tuple[Any, ...]:
    return (
        contact.organization_id,
        contact.env,
        contact.id,
        contact.revision,
        None if contact.revision == 1 else changed.before.value,
        changed.after.status.value,
        changed.at,
        changed.date_given,
        changed.after.source,
        changed.after.ip,
        changed.after.user_agent,
        changed.after.revoked_reason,
        actor.type,
        actor.id,
        contact.updated_at,
    )


async def of_contact(executor: Executor, contact: Contact, *, before: int = LATEST, limit: int) -> list[ConsentEntry]:
    """Newest first, those of revisions below `before`."""
    rows = await executor.fetch(SQL.of_contact, contact.organization_id, contact.env, contact.id, before, limit)
    return [read(row) for row in rows]


async def forget(connection: Executor, contact: Contact) -> None:
    """Remove the history of a contact that is deleted (C12.6)."""
    await connection.execute(SQL.forget, contact.organization_id, contact.env, contact.id)


async def purge(executor: Executor, now: datetime) -> None:
    """Remove what was recorded more than five years ago (C32)."""
    await executor.execute(SQL.purge, now - KEPT)
