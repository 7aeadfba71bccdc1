"""Companies (C20): records, their order by name, and the contacts that belong to them.

`revision` rises with every change of the record; what is counted of its contacts is no part of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from recado.domain.contacts.contact_search import folded
from recado.domain.core.clock import Clock
from recado.domain.core.errors import conflict
from recado.domain.core.ids import Identified
from recado.storage.core.connections.postgres import Database
from recado.storage.core.statements.rows import Executor, Page, affected, page
from recado.storage.core.statements.sql import load
from recado.storage.core.statements.tables import Table, Unique
from recado.storage.core.statements.wide_rows import bounded, rows_of

MOST_COMPANIES: Final = 100_000  # C31
RELEASED_AT_ONCE: Final = 5_000  # contacts in a transaction
_LONGEST_KEY: Final = (
    400  # characters: an entry of an index has its limit, and few letters take so many without accents
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Company(Identified):
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


@dataclass(frozen=True, slots=True)
class Counts:
    """What a company's contacts say now. `has_main_contact`: the one that it names is still there."""

    contacts: int
    last_interaction_at: datetime | None
    has_main_contact: bool


def name_key(text: str) -> str:
    """A name as names are ordered and searched: without case and accents."""
    return folded(text)[:_LONGEST_KEY]


COMPANIES: Final = Table(
    "companies",
    Company,
    "company",
    own=load("companies"),
    derived={"name_key": lambda company: name_key(company.name)},
    unique=Unique(("cnpj",), "CNPJ_JA_CADASTRADO", "Another company has this CNPJ.", "companyId"),
)
SQL = COMPANIES.sql
PAGE: Final = bounded(SQL.page, ("attributes",), "p.name_key, p.id")
save = COMPANIES.save


async def insert(connection: Executor, company: Company) -> Company:
    """Store a new company, in a transaction; raises `Problem` LIMIT_REACHED (100,000) or CNPJ_JA_CADASTRADO."""
    if await connection.fetchval(SQL.count_one, company.organization_id, company.env, MOST_COMPANIES) is None:
        raise conflict("LIMIT_REACHED", f"There are {MOST_COMPANIES} companies already.", limit=MOST_COMPANIES)
    return await COMPANIES.insert(connection, company)


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
    return page([COMPANIES.read(row) for row in rows], total, more=rows_of(rows) > len(rows))


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


async def get_to_delete(connection: Executor, organization_id: str, env: str, company_id: str) -> Company | None:
    """The company, locked, in a transaction that ends with `delete` or is undone."""
    await connection.execute(SQL.uncount_one, organization_id, env)
    return await COMPANIES.get_locked(connection, organization_id, env, company_id)


async def delete(connection: Executor, company: Company, now: datetime) -> None:
    """Remove the row, and clear it where contacts refer to it."""
    while await release_contacts(connection, company, now) == RELEASED_AT_ONCE:
        pass
    await COMPANIES.delete(connection, company)


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
