"""The items of one page as JSON, read and rendered in parts: others have a turn meanwhile, however much it is (C31).

Lists by `skip` show the whole page, or whoever goes on behind `skip + limit` would miss what was left out: a large one
is sent while it is read. Lists by cursor end a page early, and their cursor says where (C5.7).
"""

from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import aclosing
from typing import Any, Final, Generic, TypeVar

import orjson

from recado.engine.turns import turns
from recado.http.wire.rendering import dump
from recado.storage.core.statements.rows import Page

T = TypeVar("T")

PAGE_BYTES: Final = 2**20  # of items, with which a page by cursor ends
STEP_BYTES: Final = 256 * 1024  # that are rendered in one turn of the event loop

Views = Callable[[list[T]], Awaitable[Iterable[Any]]]
"""From records to what callers see of each: plain values, made one by one while they are rendered."""
Rest = Callable[[T, int], Awaitable[Page[T]]]
"""What follows a record in the list: so many records at most, or what is read of them at once."""


class PageItems(Generic[T]):
    """Goes once over the items of a page of `limit`, which begins with `first`.

    `last`, `more`: the record of the item that came last, and whether others follow it in the list. `at_hand`: the
    whole page was read at once.
    """

    def __init__(self, first: Page[T], views: Views[T], rest: Rest[T] | None, limit: int) -> None:
        """`rest` is asked where `first` holds a part of the page only; without it the page ends there."""
        self.total, self.estimated = first.total, first.estimated
        self.at_hand = rest is None or _whole(first, limit)
        self.last: T | None = None
        self.more = False
        self._parts = [first]
        self._views = views
        self._rest = rest
        self._limit = limit

    async def up_to(self, most: int | None = None) -> orjson.Fragment:
        """The array of the items; it ends behind the one with which it comes to `most` bytes."""
        found: list[bytes] = []
        async with aclosing(self._rendered(most)) as parts:
            async for items in parts:
                found += items
        return orjson.Fragment(b"[" + b",".join(found) + b"]")

    async def sent(self, members: Callable[[], dict[str, Any]]) -> AsyncGenerator[bytes]:
        """The whole body, piece by piece: the array, and behind it the other `members`, once the last item is known."""
        begin = b'{"items":['
        async with aclosing(self._rendered(None)) as parts:
            async for items in parts:
                while items:
                    yield begin + _step(items)
                    begin = b","
        yield b"]," + dump(members())[1:]

    async def _rendered(self, most: int | None) -> AsyncGenerator[deque[bytes]]:
        """The items of each part of the page; whoever goes through them sees to it that few pages are made at once."""
        page, left = self._parts.pop(), self._limit
        items = await self._render(page, most)
        yield items
        while self._rest is not None and not _whole(page, left):
            if most is not None and (most := most - sum(map(len, items))) <= 0:
                return
            left -= len(page.items)
            await turns.next()
            page = await self._rest(page.items[-1], left)
            await turns.next()
            items = await self._render(page, most)
            yield items

    async def _render(self, page: Page[T], most: int | None) -> deque[bytes]:
        items: deque[bytes] = deque()
        size = stepped = 0
        for record, view in zip(page.items, await self._views(page.items), strict=True):
            items.append(dump(view))
            size += len(items[-1])
            self.last, self.more = record, page.more or len(items) < len(page.items)
            if most is not None and size >= most:
                break
            if size - stepped >= STEP_BYTES:
                stepped = size
                await turns.next()
        return items


def each(view: Callable[[T], Any]) -> Views[T]:
    """The views of records that need nothing but themselves."""

    async def views(records: list[T]) -> Iterable[Any]:
        return map(view, records)

    return views


def _whole(page: Page[T], left: int) -> bool:
    return not page.more or not 0 < len(page.items) < left


def _step(items: deque[bytes]) -> bytes:
    """The first of the items, as many as are sent at once; they are held no longer."""
    taken, size = [], 0
    while items and size < STEP_BYTES:
        taken.append(items.popleft())
        size += len(taken[-1])
    return b",".join(taken)
