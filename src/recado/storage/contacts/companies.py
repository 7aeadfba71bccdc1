"""Companies (C20): records, their order by name, and the contacts that belong to them.

`revision` rises with every change of the record; what is counted of its contacts is no part of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import asyncpg

from recado.domain.contacts.contact_search import folded
from recado.domain.core.clock import Clock
from recado.domain.core.errors import Problem, conflict
from recado.domain.core.ids import created_at
from recado.storage.core.postgres import Database
from recado.storage.core.rows import Executor, Page, affected, page, reader
from recado.storage.core.sql import load
from recado.storage.core.wide_rows import bounded, rows_of

SQL = load("companies")
PAGE: Final = bounded(SQL.page, ("attributes",), "p.name_key, p.id")

MOST_COMPANIES: Final = 100_000  # C31
RELEASED_AT_ONCE: Final = 5_000  # contacts in a transaction
_LONGEST_KEY: Final = (
    400  # characters: an entry of an index has its limit, and few letters take so many without accents
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Company:
    """One company. `responsible_id`: an account. `attributes`: text, numbers, booleans, null and lists of texts."""

    organization_id: str
    env: str
    id: str
    name: str
    cnpj: str | None = field(default=None, repr=False)
    segment: str | None = None
    site: str | None = None
    address: str | None = None
    responsible_id: str | None = None
    main_contact_id: str | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    created_by_id: str | None = None
    revision: int = 1
    updated_at: datetime

    @property
    def created_at(self) -> datetime:
        return created_at(self.id)


@dataclass(frozen=True, slots=True)
class Counts:
    """What a company's contacts say now. `has_main_contact`: the one that it names is still there."""

    contacts: int
    last_interaction_at: datetime | None
    has_main_contact: bool


read = reader(Company)


def name_key(text: str) -> str:
    """A name as names are ordered and searched: without case and accents."""
    return folded(text)[:_LONGEST_KEY]


async def insert(connection: Executor, company: Company) -> Company:
    """Store a new company. Run it in a transaction.

    Raises `Problem` LIMIT_REACHED (100,000 in an environment) or CNPJ_JA_CADASTRADO.
    """
    if await connection.fetchval(SQL.count_one, company.organization_id, company.env, MOST_COMPANIES) is None:
        raise conflict("LIMIT_REACHED", f"There are {MOST_COMPANIES} companies already.", limit=MOST_COMPANIES)
    row = await connection.fetchrow(
        SQL.insert,
        company.organization_id,
        company.env,
        company.id,
        company.name,
        name_key(company.name),
        company.cnpj,
        company.segment,
        company.site,
        company.address,
        company.responsible_id,
        company.main_contact_id,
        company.attributes,
        company.created_by_id,
        company.revision,
        company.updated_at,
    )
    if row is None:
        raise _cnpj_taken(await _of_cnpj(connection, company))
    return read(row)


async def get(executor: Executor, organization_id: str, env: str, company_id: str) -> Company | None:
    row = await executor.fetchrow(SQL.by_id, organization_id, env, company_id)
    return read(row) if row else None


async def get_locked(connection: Executor, organization_id: str, env: str, company_id: str) -> Company | None:
    """As `get`, and nobody else changes the row until this transaction ends."""
    row = await connection.fetchrow(SQL.by_id_locked, organization_id, env, company_id)
    return read(row) if row else None


async def existing(connection: Executor, organization_id: str, env: str, company_ids: Sequence[str]) -> set[str]:
    """Of these ids, those that a contact can refer to; none of them is deleted until this transaction ends."""
    rows = await connection.fetch(SQL.existing, organization_id, env, list(company_ids))
    return {row["id"] for row in rows}


async def list_page(
    executor: Executor,
    organization_id: str,
    env: str,
    *,
    cnpj: str | None = None,
    part: str | None = None,
    responsible_id: str | None = None,
    limit: int,
    skip: int = 0,
    after: Company | None = None,
) -> Page[Company]:
    """By name without case and accents, then by id (C5.3), what is read of the page at once.

    `part`: of the name; `after`: only those behind it, and nobody counts them.
    """
    filters = (organization_id, env, cnpj, None if part is None else name_key(part), responsible_id)
    start = (None, None) if after is None else (name_key(after.name), after.id)
    rows = await executor.fetch(PAGE, *filters, *start, limit, skip)
    total = 0 if after else await executor.fetchval(SQL.page_count, *filters)
    return page([read(row) for row in rows], total, more=rows_of(rows) > len(rows))


async def counts(executor: Executor, organization_id: str, env: str, companies: Sequence[Company]) -> dict[str, Counts]:
    """What the contacts of each of these companies say, by its id."""
    rows = await executor.fetch(
        SQL.counts,
        organization_id,
        env,
        [company.id for company in companies],
        [company.main_contact_id for company in companies],
    )
    return {row["id"]: Counts(row["contacts"], row["last_interaction_at"], row["has_main_contact"]) for row in rows}


async def save(connection: Executor, before: Company, after: Company, now: datetime) -> Company:
    """Write what differs; a difference raises the revision. Run it in a transaction.

    Raises `Problem` CNPJ_JA_CADASTRADO, or VERSION_MISMATCH when the row is no longer at `before.revision`.
    """
    if after == before:
        return before
    if after.cnpj not in (None, before.cnpj) and (holder := await _of_cnpj(connection, after)) is not None:
        raise _cnpj_taken(holder)
    try:
        row = await connection.fetchrow(
            SQL.save,
            before.organization_id,
            before.env,
            before.id,
            before.revision,
            after.name,
            name_key(after.name),
            after.cnpj,
            after.segment,
            after.site,
            after.address,
            after.responsible_id,
            after.main_contact_id,
            after.attributes,
            before.revision + 1,
            now,
        )
    except asyncpg.UniqueViolationError:
        raise _cnpj_taken(None) from None
    if row is None:
        raise Problem(
            "VERSION_MISMATCH",
            "Another request changed the company at the same time: read it again and repeat the change.",
        )
    return read(row)


async def get_to_delete(connection: Executor, organization_id: str, env: str, company_id: str) -> Company | None:
    """As `get_locked`, in a transaction that ends with `delete` or is undone."""
    await connection.execute(SQL.uncount_one, organization_id, env)
    return await get_locked(connection, organization_id, env, company_id)


async def delete(connection: Executor, company: Company, now: datetime) -> None:
    """Remove the row, and clear it where contacts refer to it."""
    while await release_contacts(connection, company, now) == RELEASED_AT_ONCE:
        pass
    await connection.execute(SQL.delete, company.organization_id, company.env, company.id)


# Contacts -----------------------------------------------------------------------------------------------------------


async def contact_exists(executor: Executor, organization_id: str, env: str, contact_id: str) -> bool:
    """Whether there is such a contact. It may be gone a moment later: then the company has no main contact (C20)."""
    return await executor.fetchval(SQL.contact_exists, organization_id, env, contact_id) is not None


async def adopt(connection: Executor, company: Company, now: datetime) -> None:
    """The main contact joins the company when it has none."""
    if company.main_contact_id is not None:
        await connection.execute(
            SQL.adopt, company.organization_id, company.env, company.main_contact_id, company.id, now
        )


async def has_more_contacts(executor: Executor, company: Company, than: int) -> bool:
    """Whether more than so many contacts belong to it."""
    found: bool = await executor.fetchval(SQL.has_more_contacts, company.organization_id, company.env, company.id, than)
    return found


async def release_contacts(
    connection: Executor, company: Company, now: datetime, *, limit: int = RELEASED_AT_ONCE
) -> int:
    """Clear company and role of up to `limit` of its contacts; answers how many there were."""
    status = await connection.execute(
        SQL.release_contacts, company.organization_id, company.env, company.id, now, limit
    )
    return affected(status)


async def release_in_blocks(database: Database, company: Company, clock: Clock) -> None:
    """Release all of its contacts that are there now, each block in a commit of its own.

    Each says its own moment: anyone who follows changes looks back a minute (C12.1), and all blocks may take longer.
    """
    released = RELEASED_AT_ONCE
    while released == RELEASED_AT_ONCE:
        async with database.transaction() as connection:
            released = await release_contacts(connection, company, clock.now())


async def _of_cnpj(connection: Executor, company: Company) -> str | None:
    """The id of the company that has its CNPJ."""
    holder: str | None = await connection.fetchval(SQL.of_cnpj, company.organization_id, company.env, company.cnpj)
    return holder


def _cnpj_taken(holder: str | None) -> Problem:
    """`holder`: its id; None: it took the CNPJ at the same moment, or is gone meanwhile."""
    return Problem("CNPJ_JA_CADASTRADO", "Another company has this CNPJ.", meta={"companyId": holder})
