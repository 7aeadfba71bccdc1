"""Debt groups as rows (C12.9): those of a contact are replaced together; a list shows those of many."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from recado.domain.contacts.contact import DebtStatus
from recado.domain.contacts.contact_search import folded
from recado.domain.contacts.debts import DebtGroup
from recado.domain.core.errors import FieldError, validation_error
from recado.domain.core.ids import DEBTOR_GROUP, IdSource
from recado.storage.core.statements.rows import Executor, Page, columns, page, reader
from recado.storage.core.statements.sql import load

SQL = load("debtor_groups")

Groups = tuple[DebtGroup, ...]

_FOREIGN = "REFERENCE_NOT_FOUND"
_NOT_HERS = "is not the id of a group of this contact"


@dataclass(frozen=True, slots=True)
class OwnedGroup:
    """A group, and whose it is."""

    contact_id: str
    group: DebtGroup


_COLUMNS = (
    "id", "contact_id", "position", "company", "company_key", "phones", "amount_cents", "status", "reference",
)  # fmt: skip
_read = reader(DebtGroup, status=DebtStatus, phones=tuple)


def with_ids(groups: Sequence[DebtGroup], ids: IdSource) -> Groups:
    """The same groups, where each has an id."""
    return tuple(group if group.id is not None else replace(group, id=ids.new(DEBTOR_GROUP)) for group in groups)


async def of_contacts(
    executor: Executor, organization_id: str, env: str, contact_ids: Sequence[str]
) -> dict[str, Groups]:
    """By contact, those that have any, in the order in which they were given."""
    found: dict[str, Groups] = {}
    for row in await executor.fetch(SQL.of_contacts, organization_id, env, list(contact_ids)):
        found[row["contact_id"]] = (*found.get(row["contact_id"], ()), _read(row))
    return found


async def insert(
    connection: Executor, organization_id: str, env: str, owned: Sequence[tuple[str, Sequence[DebtGroup]]]
) -> None:
    """Store the groups of contacts (contact's id, groups); each group has an id.

    Raises `Problem` REFERENCE_NOT_FOUND when an id is that of another contact's group.
    """
    rows = [
        (
            group.id,
            contact_id,
            position,
            group.company,
            folded(group.company),
            "\n".join(group.phones),
            group.amount_cents,
            None if group.status is None else group.status.value,
            group.reference,
        )
        for contact_id, groups in owned
        for position, group in enumerate(groups)
    ]
    if not rows:
        return
    given = dict(zip(_COLUMNS, columns(rows, len(_COLUMNS)), strict=True))
    stored = {
        row["id"]
        for row in await connection.fetch(*SQL.bind("insert", organization_id=organization_id, env=env, **given))
    }
    taken = [FieldError(f"/debtorGroups/{row[2]}/id", _FOREIGN, _NOT_HERS) for row in rows if row[0] not in stored]
    if taken:
        raise validation_error(taken, code=_FOREIGN)


async def holders(connection: Executor, organization_id: str, env: str, group_ids: Sequence[str]) -> dict[str, str]:
    """By the id of each group that exists: the contact that it belongs to."""
    rows = await connection.fetch(SQL.held, organization_id, env, list(group_ids))
    return {row["id"]: row["contact_id"] for row in rows}


async def remove(connection: Executor, organization_id: str, env: str, contact_ids: Sequence[str]) -> None:
    """Remove all of these contacts."""
    if contact_ids:
        await connection.execute(SQL.remove, organization_id, env, list(contact_ids))


async def list_page(
    executor: Executor,
    organization_id: str,
    env: str,
    *,
    status: str | None = None,
    company: str | None = None,
    contact_id: str | None = None,
    limit: int,
    skip: int,
) -> Page[OwnedGroup]:
    """Newest first. `company`: a part of its name, without case and accents."""
    filters: tuple[Any, ...] = (
        organization_id,
        env,
        status,
        None if company is None else folded(company),
        contact_id,
    )
    rows = await executor.fetch(SQL.page, *filters, limit, skip)
    total = await executor.fetchval(SQL.page_count, *filters)
    return page([OwnedGroup(row["contact_id"], _read(row)) for row in rows], total)
