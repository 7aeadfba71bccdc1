"""Pages of large records: how they end, how they are sent in parts, and whose turn it is meanwhile (C5.7, C31)."""

import asyncio
from typing import Any

import orjson
import pytest
from aiohttp import ClientPayloadError
from tests.http.wire.test_server import HEAD
from tests.http.wire.test_unread_answers import without_reading

from recado.domain.core.errors import Unavailable
from recado.domain.core.page import CursorSigner
from recado.http.api.call import Call
from recado.http.api.page_items import PAGE_BYTES, STEP_BYTES, PageItems, each
from recado.http.api.paging import CursorQuery, Cursors, PageQuery, items_of
from recado.http.dispatch import PAGES_OF_CALLER
from recado.http.routes.core.lists import shown
from recado.http.wire.reply import Reply
from recado.storage.core.statements.rows import Page

LARGE = "x" * (300 * 1024)
CURSORS = Cursors(CursorSigner(b"k" * 32))


def of(number: int) -> list[Any]:
    return [number, LARGE]


def part(first: int, count: int, *, of_all: int = 10) -> Page[int]:
    return Page(list(range(first, first + count)), of_all, estimated=False, more=first + count < of_all)


async def two_more(last: int, left: int) -> Page[int]:
    return part(last + 1, min(2, left))


async def body(items: PageItems[int]) -> Any:
    return orjson.loads(b"".join([piece async for piece in items.sent(lambda: {"total": items.total})]))


async def test_a_page_by_cursor_ends_where_it_is_large_and_the_next_one_goes_on(serve: Any, thing: Any) -> None:
    async def handle(call: Call) -> Reply:
        after = CURSORS.read(call, "numbers")
        rows = range(0 if after is None else after[0] + 1, 10)[: call.query.limit + 1]
        return Reply(200, await CURSORS.page(call, "numbers", items_of(call, rows, of), lambda row: [row]))

    api = await serve(thing(handler=handle, query=CursorQuery))
    pages, cursor = [], ""
    while cursor is not None:
        async with api.client.get(f"/things?limit=7{cursor}") as answer:
            assert answer.content_length < PAGE_BYTES + len(LARGE) + 1000
            page = await answer.json()
        pages.append([number for number, _ in page["items"]])
        cursor = f"&cursor={page['nextCursor']}" if "nextCursor" in page else None
    assert pages == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


async def test_one_item_is_shown_however_large() -> None:
    items = PageItems(part(0, 2), each(of), two_more, 5)
    assert orjson.loads(orjson.dumps(await items.up_to(1))) == [of(0)]
    assert (items.last, items.more) == (0, True)


async def test_a_page_that_is_read_in_parts_ends_where_all_of_them_are_large() -> None:
    items = PageItems(part(0, 3), each(of), two_more, 10)
    shown_items = orjson.loads(orjson.dumps(await items.up_to(PAGE_BYTES)))
    assert [number for number, _ in shown_items] == [0, 1, 2, 3]  # four of 300 KiB
    assert (items.last, items.more) == (3, True)


@pytest.mark.parametrize(("limit", "last", "more"), [(5, 4, True), (10, 9, False), (50, 9, False)])
async def test_a_page_by_skip_is_whole_and_read_in_parts(limit: int, last: int, more: bool) -> None:
    items = PageItems(part(0, 2), each(of), two_more, limit)
    assert not items.at_hand
    whole = await body(items)
    assert [number for number, _ in whole["items"]] == list(range(last + 1))
    assert whole["total"] == 10
    assert (items.last, items.more) == (last, more)


async def test_what_was_read_at_once_has_its_length(serve: Any, thing: Any) -> None:
    async def handle(call: Call) -> Reply:
        return await shown(PageItems(part(0, 2, of_all=2), each(of), two_more, 5), cursor=str)

    api = await serve(thing(handler=handle))
    async with api.client.get("/things") as answer:
        assert answer.content_length == len(await answer.read())
        assert await answer.json() == {"items": [of(0), of(1)], "total": 2}


async def test_a_page_that_is_sent_in_parts_ends_with_what_every_page_says(serve: Any, thing: Any) -> None:
    async def handle(call: Call) -> Reply:
        warning = {"code": "W"}
        items = PageItems(part(0, 2), each(of), two_more, 5)
        return await shown(items, cursor=lambda last: f"after {last}", warnings=[warning])

    api = await serve(thing(handler=handle))
    async with api.client.get("/things") as answer:
        assert (answer.status, answer.content_type) == (200, "application/json")
        found = await answer.json()
    assert [number for number, _ in found.pop("items")] == [0, 1, 2, 3, 4]
    assert found == {"total": 10, "nextCursor": "after 4", "warnings": [{"code": "W"}]}


async def test_a_page_that_cannot_be_read_to_its_end_has_none(serve: Any, thing: Any) -> None:
    async def fails(last: int, left: int) -> Page[int]:
        raise Unavailable("The database is away.")

    async def handle(call: Call) -> Reply:
        return await shown(PageItems(part(0, 2), each(of), fails, 5))

    api = await serve(thing(handler=handle), thing(path="/others"))
    async with api.client.get("/things") as answer:
        assert answer.status == 200
        with pytest.raises(ClientPayloadError):
            await answer.read()
    async with api.client.get("/others") as answer:
        assert answer.status == 200


async def test_others_have_a_turn_after_each_step() -> None:
    turns: list[str] = []

    async def other() -> None:
        while True:
            turns.append("other")
            await asyncio.sleep(0)

    def view(number: int) -> Any:
        turns.append("item")
        return of(number)

    async def one_more(last: int, left: int) -> Page[int]:
        turns.append("read")
        return part(last + 1, 1)

    beside = asyncio.create_task(other())
    await PageItems(part(0, 2), each(view), one_more, 4).up_to()
    beside.cancel()
    assert len(LARGE) > STEP_BYTES
    steps = [step for step in turns if step != "other"]
    assert steps == ["item", "item", "read", "item", "read", "item"]
    told = ",".join(turns)
    assert not any(pair in told for pair in ("item,item", "item,read", "read,item"))


async def test_a_page_that_nobody_takes_keeps_no_other_waiting(serve: Any, thing: Any, wait_until: Any) -> None:
    async def handle(_: Call) -> Reply:
        return await shown(PageItems(part(0, 2), each(of), two_more, 10))

    api = await serve(thing(handler=handle, query=PageQuery))
    for _ in range(PAGES_OF_CALLER + 1):
        writer = await without_reading(api)
        writer.write(b"GET /things HTTP/1.1\r\n" + HEAD + b"\r\n")
    await wait_until(lambda: sum(c.writing_paused for c in api.server._web.connections) > PAGES_OF_CALLER)
    async with asyncio.timeout(60), api.client.get("/things") as answer:
        assert len((await answer.json())["items"]) == 10


async def test_parts_that_are_sent_wait_for_a_place_as_pages_do(serve: Any, thing: Any, wait_until: Any) -> None:
    reading: list[int] = []
    go_on = asyncio.Event()

    async def slow(last: int, left: int) -> Page[int]:
        reading.append(last)
        await go_on.wait()
        return await two_more(last, left)

    async def handle(_: Call) -> Reply:
        return await shown(PageItems(part(0, 2), each(of), slow, 4))

    api = await serve(thing(handler=handle, query=PageQuery))
    other = api.as_principal(organization_id="org_2", actor_id="key_2")

    async def ask(headers: dict[str, str]) -> int:
        async with api.client.get("/things", headers=headers) as answer:
            return len((await answer.json())["items"])

    asking = [asyncio.create_task(ask({})) for _ in range(PAGES_OF_CALLER)]
    await wait_until(lambda: len(reading) == PAGES_OF_CALLER)
    waiting = api.server._dispatcher._pages._waiting
    asking.append(asyncio.create_task(ask({})))
    await wait_until(lambda: list(waiting) == ["org_1"])
    asking.append(asyncio.create_task(ask(other)))
    await wait_until(lambda: len(reading) == PAGES_OF_CALLER + 1)
    go_on.set()
    assert await asyncio.gather(*asking) == [4] * (PAGES_OF_CALLER + 2)
