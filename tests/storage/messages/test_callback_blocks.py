"""Callbacks as rows: which of them are taken together (C29.5)."""

import hashlib
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from recado.storage.core.connections.postgres import Database
from recado.storage.messages import receipts
from recado.storage.messages.receipts import CallbackRow

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)


def callback(text: str, size: int) -> CallbackRow:
    body = text.encode() * size
    return CallbackRow("chatapp", "cloud", hashlib.sha256(body).digest(), body, NOW)


async def test_a_block_is_bounded_by_count_and_by_size(database: Database) -> None:
    await receipts.store_callbacks(database, [callback("a", 600), callback("b", 600), callback("c", 600)])

    async def taken(limit: int, size: int) -> str:
        return "".join(chr(row["body"][0]) for row in await receipts.open_callbacks(database, limit, size))

    assert await taken(50, 10_000) == "abc"
    assert await taken(2, 10_000) == "ab"
    assert await taken(50, 1_000) == "ab"  # the second begins within the bound
    assert await taken(50, 600) == "a"
    assert await taken(50, 1) == "a"
    first = (await receipts.open_callbacks(database, 1, 1))[0]["id"]
    await receipts.callbacks_processed(database, [(first, None)], NOW)
    assert await taken(50, 1) == "b"


async def test_a_block_leaves_out_those_that_are_postponed(database: Database) -> None:
    await receipts.store_callbacks(database, [callback("a", 1), callback("b", 1), callback("c", 1)])
    first, second, third = [row["id"] for row in await receipts.open_callbacks(database, 50, 1_000)]

    taken = await receipts.open_callbacks(database, 2, 1_000, but=[first])
    assert [row["id"] for row in taken] == [second, third]
    assert [row["id"] for row in await receipts.open_callbacks(database, 2, 1_000, after=second)] == [third]
    assert await receipts.newest_open(database) == third

    one = await receipts.open_callback(database, first)
    assert one is not None
    assert one["body"] == b"a"
    await receipts.callbacks_processed(database, [(first, None)], NOW)
    assert await receipts.open_callback(database, first) is None


async def test_a_callback_keeps_what_its_body_is_read_with(database: Database) -> None:
    headers = {"Content-Type": "text/xml", "X-Kind": "é"}
    await receipts.store_callbacks(database, [callback("a", 1), replace(callback("b", 1), headers=headers)])

    rows = await receipts.open_callbacks(database, 50, 1_000)
    assert [row["headers"] for row in rows] == [{}, headers]
    alone = await receipts.open_callback(database, rows[1]["id"])
    assert alone is not None
    assert alone["headers"] == headers


async def test_open_callbacks_are_found_without_the_done_ones(database: Database) -> None:
    lines = await database.hot.fetch(
        "explain " + receipts.SQL.open_callbacks.rstrip().rstrip(";"), 50, 1_000, [1, 2], ["sms/bridge"], 7
    )
    plan = "\n".join(line[0] for line in lines)
    assert re.search(r"Index Scan (using|on) callbacks_open", plan)


async def test_callbacks_that_came_before_a_moment_are_removed_block_by_block(database: Database) -> None:
    late = NOW + timedelta(days=7)
    old = [callback(letter, 1) for letter in "abcde"]
    await receipts.store_callbacks(database, [*old, replace(callback("f", 1), received_at=late)])

    assert await receipts.purge_callbacks(database, late, block=2) == 5

    left = await receipts.open_callbacks(database, 10, 1_000)
    assert [row["body"] for row in left] == [b"f"]
