"""Contacts in lists (C12.1): by filters and search, newest first or, to synchronize, by change.

What is searched for may have few matches or a hundred thousand. They are found through their index and counted, up to
10,001: few are sorted, many are met soon enough along the order of the list.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from recado.domain.contacts.contact import Contact, tag_key
from recado.domain.contacts.contact_search import Inside, SearchTerm, search_mark, search_terms
from recado.storage.contacts import list_pages
from recado.storage.contacts.contacts import WIDE, read
from recado.storage.contacts.list_pages import Milestones
from recado.storage.core.connections.read_limit import in_time
from recado.storage.core.statements.compose import compose
from recado.storage.core.statements.rows import COUNTED_TO, Executor, Page, page
from recado.storage.core.statements.sql import fragments
from recado.storage.core.statements.wide_rows import bounded, rows_of

SQL = fragments("contact_reads")

_NARROWING: Final = ("opt_in_status", "source", "external_id", "company_id", "updated_since")

Query = tuple[str, list[Any]]
Position = tuple[datetime | None, str]
"""Where a page begins: after the contact with this change and id; the moment counts under `updated_since` only."""


class ContactSearch:
    """A service (`start`, `stop`): at its start it learns which words the server finds inside words."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self.inside = Inside.NONE

    async def start(self) -> None:
        found = await self._executor.fetchval(SQL.inside)
        self.inside = Inside.NONE if found is None else Inside(found)

    async def stop(self) -> None:
        """Nothing runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContactFilter:
    """What a list shows. `document`: a column of blind indexes and its value; `q`: as the caller typed it.

    `inside`: which words of `q` the server finds inside words (`ContactSearch`).
    """

    organization_id: str
    env: str
    tag: str | None = None
    opt_in_status: str | None = None
    source: str | None = None
    external_id: str | None = field(default=None, repr=False)
    list_id: str | None = None
    company_id: str | None = None
    q: str | None = field(default=None, repr=False)
    inside: Inside = Inside.NONE
    document: tuple[str, bytes] | None = field(default=None, repr=False)
    updated_since: datetime | None = None


ContactPage = Page[Contact]
"""Beyond 10,000 matches, `total` says how many only of a static list."""

NOBODY: ContactPage = page([], 0)


async def list_page(
    executor: Executor,
    wanted: ContactFilter,
    *,
    limit: int,
    skip: int = 0,
    after: Position | None = None,
    milestones: Milestones | None = None,
    counted: bool = True,
) -> ContactPage:
    """One page, or what is read of it at once: newest first, under `updated_since` the longest unchanged first (C5.3).

    The total is that of the whole list, if `counted`. `milestones`: what earlier pages of static lists came by. Raises
    `Unavailable` when the database does not find it in five seconds.
    """
    if wanted.q is not None and not _terms(wanted):
        return NOBODY
    async with in_time("narrow it with another filter"):
        if wanted.list_id is not None and not _narrows(wanted):
            rows, total = await list_pages.page(
                executor,
                (wanted.organization_id, wanted.env, wanted.list_id),
                Milestones() if milestones is None else milestones,
                limit=limit + 1,
                skip=skip,
                after_id=None if after is None else after[1],
            )
        else:
            rows, total = await _filtered(executor, wanted, limit, skip, after, counted)
    items = [read(row) for row in rows[:limit]]
    return page(items, total, more=rows_of(rows) > len(items))


async def _filtered(
    executor: Executor, wanted: ContactFilter, limit: int, skip: int, after: Position | None, counted: bool
) -> tuple[list[Any], int]:
    """The first rows of a page with one contact more, when there is one; the total."""
    total = None
    if _searches(wanted):
        sql, arguments = search_query(wanted, limit=limit + 1, skip=skip, after=after)
        rows = await executor.fetch(sql, *arguments)
        total = rows[0]["total"]
        rows = [row for row in rows if row["id"] is not None]
    if total is None or total > COUNTED_TO:
        sql, arguments = page_query(wanted, limit=limit + 1, skip=skip, after=after)
        rows = await executor.fetch(sql, *arguments)
    if total is None and counted:
        known = after is None and 0 < rows_of(rows) <= limit
        total = skip + rows_of(rows) if known else await _count(executor, wanted)
    return rows, total or 0


def page_query(wanted: ContactFilter, *, limit: int, skip: int = 0, after: Position | None = None) -> Query:
    """The query of one page, found along the order of the list."""
    everybody = SQL.along if _searches(wanted) else SQL.walk
    found = everybody if wanted.list_id is None else SQL.members
    return _composed(SQL.page.replace("{found}", found), wanted, limit, skip, after)


def search_query(wanted: ContactFilter, *, limit: int, skip: int = 0, after: Position | None = None) -> Query:
    """The query of one page and the count, found through the index of the search."""
    return _composed(SQL.searched, wanted, limit, skip, after)


def _composed(text: str, wanted: ContactFilter, limit: int, skip: int, after: Position | None) -> Query:
    values = _values(wanted) | {"limit": limit, "skip": skip}
    by_change = wanted.updated_since is not None
    start = ""
    if after is not None:
        values |= {"after_at": after[0], "after_id": after[1]}
        start = _start(wanted)
    search, arguments = _search(wanted)
    text = text.replace("{search}", search).replace("{conditions}", _conditions(wanted))
    text = text.replace("{start}", start).replace("{order}", SQL.changed if by_change else SQL.newest)
    return compose(bounded(text, WIDE, "p.updated_at, p.id" if by_change else "p.id desc"), values, arguments)


def _start(wanted: ContactFilter) -> str:
    if wanted.updated_since is not None:
        return SQL.after_changed
    return SQL.after_newest if wanted.list_id is None else f"{SQL.after_newest}\n{SQL.after_member}"


def count_query(wanted: ContactFilter) -> Query:
    """The query that counts the whole list up to 10,001."""
    source = SQL.count_members if wanted.list_id is not None else SQL.count
    search, arguments = _search(wanted)
    text = source.replace("{search}", search).replace("{conditions}", _conditions(wanted))
    return compose(text, _values(wanted), arguments)


async def _count(executor: Executor, wanted: ContactFilter) -> int:
    text, arguments = count_query(wanted)
    return int(await executor.fetchval(text, *arguments))


def is_search(wanted: ContactFilter) -> bool:
    """Whether thousands of contacts may have to be looked at for a page."""
    unsorted = (wanted.q, wanted.tag, wanted.opt_in_status, wanted.source)
    return any(each is not None for each in unsorted) or (wanted.list_id is not None and _narrows(wanted))


def _searches(wanted: ContactFilter) -> bool:
    """Whether the list is found through an index that knows no order."""
    return wanted.list_id is None and (wanted.q is not None or wanted.tag is not None)


def _narrows(wanted: ContactFilter) -> bool:
    """Whether anything but a static list says who is shown."""
    return bool(wanted.q is not None or wanted.tag is not None or _conditions(wanted))


def _search(wanted: ContactFilter) -> Query:
    """What is found through an index that knows no order; of the arguments those of `q`, which come first."""
    text, arguments = condition(_terms(wanted))
    given = [(wanted.q, f"and {text}"), (wanted.tag, SQL.if_tag)]
    return "\n".join(demanded for value, demanded in given if value is not None), arguments


def condition(terms: Sequence[SearchTerm]) -> tuple[str, list[Any]]:
    """What all the terms demand of a contact `c`: a text with `$1`, `$2`, … and the arguments in that order."""
    arguments: list[Any] = []

    def said(fragment: str, **value: str) -> str:
        nonlocal arguments
        text, arguments = compose(fragment, value, arguments)
        return text

    def demanded(term: SearchTerm) -> str:
        words = [said(SQL.if_inside, expression=each) for each in term.inside]
        if term.beginnings is not None:
            words.append(said(SQL.if_begins, query=term.beginnings))
        text = "\nand ".join(words)
        if term.phone is None:
            return text
        phone = said(SQL.if_begins, query=term.phone)
        return f"({text}\nor {phone})" if words else phone

    return "\nand ".join(map(demanded, terms)), arguments


def _terms(wanted: ContactFilter) -> tuple[SearchTerm, ...]:
    if wanted.q is None:
        return ()
    return search_terms(search_mark(wanted.organization_id, wanted.env), wanted.q, wanted.inside)


def _conditions(wanted: ContactFilter) -> str:
    conditions = [getattr(SQL, f"if_{name}") for name in _NARROWING if getattr(wanted, name) is not None]
    if wanted.document is not None:
        conditions.append(getattr(SQL, f"if_{wanted.document[0]}"))
    return "\n".join(conditions)


def _values(wanted: ContactFilter) -> dict[str, Any]:
    values = {name: getattr(wanted, name) for name in ("organization_id", "env", "list_id", *_NARROWING)}
    tag, document = wanted.tag, wanted.document
    return values | {"tag": tag and tag_key(tag), "document": document and document[1]}


def position_of(wanted: ContactFilter, contact: Contact) -> Position:
    """Where a page begins behind a contact."""
    return (None if wanted.updated_since is None else contact.updated_at), contact.id


def position(key: list[Any]) -> Position:
    """From the order key of a cursor: `[id]`, under `updated_since` `[change, id]` (C5.4)."""
    return (None, key[0]) if len(key) == 1 else (datetime.fromisoformat(key[0]), key[1])
