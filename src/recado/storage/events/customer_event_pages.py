"""Lists of customer events, the last one that occurred first, along an index in that order (C21.1)."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from recado.domain.events.customer_event import CustomerEvent
from recado.storage.core.statements.compose import compose
from recado.storage.core.statements.rows import Executor, Page
from recado.storage.core.statements.sql import fragments
from recado.storage.core.statements.wide_rows import bounded, rows_of
from recado.storage.events.customer_events import read

SQL = fragments("customer_event_pages")

_WIDE: Final = ("properties",)
_ORDER: Final = "p.occurred_at desc, p.id desc"


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomerEventFilter:
    """What a list shows: of what occurred in [start, end)."""

    organization_id: str
    env: str
    start: datetime
    end: datetime
    name: str | None = None
    contact_id: str | None = None


Place = tuple[datetime, str]
"""Where a page begins: after the event of this moment and id."""


def page_query(wanted: CustomerEventFilter, *, limit: int, after: Place | None = None) -> tuple[str, list[Any]]:
    """The query of one page."""
    values: dict[str, Any] = {
        "organization_id": wanted.organization_id, "env": wanted.env, "start": wanted.start, "end": wanted.end,
        "name": wanted.name, "contact_id": wanted.contact_id, "limit": limit,
    }  # fmt: skip
    conditions = [getattr(SQL, f"if_{name}") for name in ("name", "contact_id") if values[name] is not None]
    if after is not None:
        values |= {"after_at": after[0], "after_id": after[1]}
        conditions.append(SQL.if_after)
    text = SQL.page.replace("{conditions}", "\n    ".join(conditions))
    return compose(bounded(text, _WIDE, _ORDER), values)


async def list_page(
    executor: Executor, wanted: CustomerEventFilter, *, limit: int, after: Place | None = None
) -> Page[CustomerEvent]:
    """One page, or what is read of it at once. It is not counted."""
    sql, arguments = page_query(wanted, limit=limit + 1, after=after)
    rows = await executor.fetch(sql, *arguments)
    items = [read(row) for row in rows[:limit]]
    return Page(items, 0, estimated=False, more=rows_of(rows) > len(items))
