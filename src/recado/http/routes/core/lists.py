"""The answers of lists with a total (C5.1)."""

from collections.abc import Callable
from typing import Any, TypeVar

from recado.http.api.page_items import PAGE_BYTES, PageItems, each
from recado.http.api.paging import envelope
from recado.http.wire.rendering import JSON
from recado.http.wire.reply import Reply, StreamReply
from recado.storage.core.statements.rows import Page

T = TypeVar("T")


async def listed(page: Page[T], view: Callable[[T], dict[str, Any]]) -> Reply:
    """One page, which was read at once, each item as `view` shows it."""
    return await shown(PageItems(page, each(view), None, len(page.items)))


async def shown(
    items: PageItems[T],
    *,
    cursor: Callable[[T], str] | None = None,
    ends_early: bool = False,
    warnings: list[dict[str, Any]] | None = None,
) -> Reply:
    """One page: whole, or until its items come to `PAGE_BYTES` when it `ends_early` (C5.7).

    `cursor`: that of the page after a record. What is too large to be read at once is sent while it is read.
    """

    def body(shown_items: Any) -> dict[str, Any]:
        following = items.last if items.more and cursor is not None else None
        found = envelope(
            shown_items,
            items.total,
            estimated=items.estimated,
            next_cursor=None if following is None or cursor is None else cursor(following),
        )
        return found if warnings is None else found | {"warnings": warnings}

    def members() -> dict[str, Any]:
        return {name: value for name, value in body(None).items() if name != "items"}

    if ends_early:
        return Reply(200, body(await items.up_to(PAGE_BYTES)))
    if items.at_hand:
        return Reply(200, body(await items.up_to()))
    return StreamReply(200, items.sent(members), content_type=JSON)
