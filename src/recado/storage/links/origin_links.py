"""Origin links (C27.4) as records, and what is stored when somebody opens one."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from recado.domain.core.ids import created_at
from recado.domain.links.origin import CODES_KEPT, MAX_ORIGIN_LINKS, Fonte
from recado.storage.core.statements.rows import Executor, columns, in_blocks
from recado.storage.core.statements.sql import load
from recado.storage.core.statements.tables import Limit, Table

PURGE_BLOCK: Final = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginLink:
    """One link to the chat of a number. `clicks`: how often people opened it."""

    organization_id: str
    env: str
    id: str
    name: str
    number_id: str
    text: str
    fonte: Fonte
    fonte_rotulo: str | None = None
    slug: str
    clicks: int = 0
    updated_at: datetime

    @property
    def created_at(self) -> datetime:
        return created_at(self.id)


ORIGIN_LINKS: Final = Table(
    "origin_links",
    OriginLink,
    "origin link",
    own=load("origin_links"),
    convert={"fonte": Fonte},
    limit=Limit(MAX_ORIGIN_LINKS, "origin links"),
)
SQL = ORIGIN_LINKS.sql


@dataclass(frozen=True, slots=True)
class OriginCode:
    """A code that a person got with the opened link. `origin`: what a message that brings it shows, as JSON."""

    organization_id: str
    sender_id: str
    code: str
    origin: str
    created_at: datetime

    @property
    def key(self) -> tuple[str, str, str]:
        return (self.organization_id, self.sender_id, self.code)


async def by_slug(executor: Executor, slugs: Sequence[str]) -> dict[str, OriginLink]:
    """The links at these addresses."""
    return {row["slug"]: ORIGIN_LINKS.read(row) for row in await executor.fetch(SQL.by_slug, list(slugs))}


async def count_clicks(connection: Executor, clicked: Sequence[OriginLink]) -> None:
    """Each stands there as often as it was clicked."""
    clicks = Counter(ORIGIN_LINKS.key_of(link) for link in clicked)
    await connection.execute(SQL.count_clicks, *columns([(*key, clicks[key]) for key in sorted(clicks)], 4))


async def store_codes(connection: Executor, codes: Sequence[OriginCode]) -> set[tuple[str, str, str]]:
    """Keep those that their numbers do not have yet; answers their keys."""
    rows = [(*each.key, each.origin, each.created_at) for each in codes]
    return {tuple(row) for row in await connection.fetch(SQL.store_codes, *columns(rows, 5))}


async def use_up(
    connection: Executor, brought: Sequence[tuple[str, str, str]], now: datetime
) -> dict[tuple[str, str, str], str]:
    """Take the codes that messages brought, by organization, sender and code; answers what each of them tells.

    Nobody finds them again; those older than 30 days nobody does.
    """
    rows = await connection.fetch(SQL.use_up, *columns(sorted(set(brought)), 3), now - CODES_KEPT)
    return {(row["organization_id"], row["sender_id"], row["code"]): row["origin"] for row in rows}


async def purge(executor: Executor, until: datetime) -> None:
    """Remove the codes that nobody used within 30 days, in blocks."""
    await in_blocks(executor, SQL.purge_codes, until - CODES_KEPT, block=PURGE_BLOCK)
