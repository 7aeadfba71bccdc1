"""Rows of an export: the messages of a channel and a period, newest first, along the key (C18).

A page costs the same at any depth: it begins at an id, not behind so many rows. What a row holds is as it is when its
page is read.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from recado.domain.core.ids import MESSAGE, lowest_id
from recado.storage.core.statements.compose import compose
from recado.storage.core.statements.rows import Executor, Page
from recado.storage.core.statements.sql import fragments
from recado.storage.core.statements.wide_rows import bounded, rows_of

SQL = fragments("message_exports")

_PAGE: Final = bounded(SQL.page, ("metadata",), "p.id desc")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedPeriod:
    """What an export holds: the messages of `channel` made in [start, end)."""

    organization_id: str
    env: str
    channel: str
    start: datetime
    end: datetime


class ExportedMessage(NamedTuple):
    """One row: a page has up to a thousand. `metadata`: a JSON text; `details`: what its channel alone knows of it.

    `known`: its contact is there, or it has none; what a deleted one was reached by is not shown any more.
    """

    id: str
    direction: str
    recipient: str
    known: bool
    status: str
    campaign_id: str | None
    contact_id: str | None
    contact_external_id: str | None
    metadata: str | None
    sent_at: datetime | None
    delivered_at: datetime | None
    read_at: datetime | None
    failed_at: datetime | None
    failure_code: str | None
    last_error: str | None
    units: int
    details: dict[str, Any] | None


_WIDTH: Final = len(ExportedMessage._fields)


def page_query(wanted: ExportedPeriod, *, limit: int, before_id: str | None = None) -> tuple[str, list[Any]]:
    """The query of one page. `before_id`: only what is older than this message."""
    end = lowest_id(MESSAGE, wanted.end)
    values = {
        "organization_id": wanted.organization_id, "env": wanted.env, "channel": wanted.channel,
        "first_id": lowest_id(MESSAGE, wanted.start), "before_id": end if before_id is None else min(before_id, end),
        "limit": limit,
    }  # fmt: skip
    return compose(_PAGE, values)


async def list_page(
    executor: Executor, wanted: ExportedPeriod, *, limit: int, before_id: str | None = None
) -> Page[ExportedMessage]:
    """One page, or what is read of it at once. It is not counted."""
    sql, arguments = page_query(wanted, limit=limit + 1, before_id=before_id)
    rows = await executor.fetch(sql, *arguments)
    items = [ExportedMessage._make(row[:_WIDTH]) for row in rows[:limit]]
    return Page(items, 0, estimated=False, more=rows_of(rows) > len(items))
