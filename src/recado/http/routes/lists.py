"""The answer of a list by `limit` and `skip` (C5.1)."""

from collections.abc import Callable
from typing import Any, TypeVar

from recado.http.paging import envelope
from recado.http.reply import Reply
from recado.storage.rows import Page

T = TypeVar("T")


def listed(page: Page[T], view: Callable[[T], dict[str, Any]]) -> Reply:
    """One page, each item as `view` shows it."""
    return Reply(200, envelope([view(item) for item in page.items], page.total, estimated=page.estimated))
