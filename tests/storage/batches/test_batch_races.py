"""A block that is made while its batch is canceled, or by two processes at once: one of them wins (C15.5)."""

import asyncio
import random
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.storage.dispatch.test_claims import stored
from tests.waiting import locked_out, until, until_locked_out

from recado.domain.core.ids import BATCH, NUMBER, ORGANIZATION, IdSource
from recado.domain.messages.message import WaitReason
from recado.engine.clock import SystemClock
from recado.storage.batches import batch_making, batches, totals
from recado.storage.batches.batch_making import NewBatch, PendingBlock
from recado.storage.batches.batch_rows import Block, Recipients
from recado.storage.core.connections.postgres import Database
from recado.storage.dispatch import dispatch

IDS = IdSource(SystemClock(), random.Random(11))
NOW = datetime(2026, 11, 21, 9, tzinfo=UTC)


class Interrupted:
    """A connection whose statements are followed by `pause`: the moment at which another may come in between."""

    def __init__(self, connection: Any, pause: Any) -> None:
        self._connection = connection
        self._pause = pause

    async def execute(self, *arguments: Any) -> Any:
        result = await self._connection.execute(*arguments)
        await self._pause()
        return result

    async def fetchval(self, *arguments: Any) -> Any:
        result = await self._connection.fetchval(*arguments)
        await self._pause()
        return result


async def building(database: Database, blocks: int = 1) -> PendingBlock:
    """The next block of a batch that has so many left."""
    nobody = Recipients([], [], [], [])
    new = NewBatch(
        organization_id=IDS.new(ORGANIZATION),
        env="test",
        id=IDS.new(BATCH),
        channel="chatapp",
        sender_id=IDS.new(NUMBER),
        type="text",
        klass=2,
        ttl_ms=60_000,
        held_base_ms=0,
        accepted_at=NOW,
        requested=1,
        recipients=Recipients(["+15551234567"], [1], [None], [None]),
        first=Block(nobody, [], [], [], []),
        rest=[Recipients(["+15551234567"], [1], [None], [None]).dump()] * blocks,
    )
    assert await batch_making.insert(database, [new], hold=False) == set()
    block = {(new.organization_id, new.env, totals.BATCH, new.id): [1, 1, 0, 0, 0, 0, 0, 0, 0]}
    await totals.add(database, block, NOW)  # counted as the block's messages are, before `block_made`
    pending = await batch_making.next_block(database, new.key, NOW)
    assert pending is not None
    return pending


async def own(database: Database, pending: PendingBlock, message_id: str) -> None:
    """Let the message be one of the batch."""
    await database.execute(
        "update dispatch set organization_id = $1, sender_id = $2, owner = $3 where id = $4",
        pending.organization_id, pending.sender_id, pending.id, message_id,
    )  # fmt: skip
    await database.execute(
        "insert into batch_ranges values ($1, $2, $3, $3)", pending.organization_id, pending.id, message_id
    )


@pytest.mark.parametrize("first", ["the block", "the cancel"])
async def test_a_block_and_a_cancel_never_wait_for_each_other(database: Database, first: str) -> None:
    pending = await building(database)
    canceling: list[asyncio.Task[bool]] = []

    async def cancel_comes_in() -> None:
        if not canceling:
            canceling.append(asyncio.create_task(batches.cancel(database, pending.key, NOW)))

            await until_locked_out(database)  # the cancel waits for the block

    if first == "the cancel":
        assert await batches.cancel(database, pending.key, NOW)
    async with database.transaction() as connection:
        executor: Any = Interrupted(connection, cancel_comes_in) if first == "the block" else connection
        left = await batch_making.block_made(executor, pending, NOW, {})
    if first == "the block":
        assert left == 0
        assert await canceling[0] is True
    else:
        assert left is None
    assert await database.fetchval("select status from batches where id = $1", pending.id) == "canceled"
    assert await database.fetchval("select count(*) from batch_blocks where batch_id = $1", pending.id) == 0


async def test_of_two_processes_that_make_the_same_block_one_does(database: Database) -> None:
    pending = await building(database, blocks=3)
    async with database.transaction() as first:
        assert await batch_making.block_made(first, pending, NOW, {}) == 2
        other = asyncio.ensure_future(made_by_another(database, pending))

        await until_locked_out(database)  # the second waits for the first

    assert await other is None
    row = await database.fetchrow("select blocks_left, status from batches where id = $1", pending.id)
    assert row is not None
    assert dict(row) == {"blocks_left": 2, "status": "building"}


async def test_what_is_held_while_the_batch_is_resumed_is_let_go_all_the_same(database: Database) -> None:
    pending = await building(database)
    await own(database, pending, await stored(database))
    assert await batches.pause(database, pending.key, NOW)

    async def goes_on() -> None:
        assert await batches.resume(database, pending.key, NOW) is not None
        assert pending.sender_id is not None
        await dispatch.release(
            database, pending.organization_id, pending.sender_id, WaitReason.OWNER_PAUSED, owner=pending.id
        )

    async with database.transaction() as connection:
        assert len(await batches.hold(connection, pending.key, 10)) == 1
        going_on = asyncio.create_task(goes_on())

        async def it_waits_or_is_through() -> bool:
            return going_on.done() or await locked_out(database) > 0

        await until(it_waits_or_is_through, "the resume")
    await going_on
    assert await database.fetchval("select reason from dispatch where owner = $1", pending.id) is None


async def test_nothing_is_held_of_a_batch_that_goes_on_at_the_same_moment(database: Database) -> None:
    pending = await building(database)
    await own(database, pending, await stored(database))
    assert await batches.pause(database, pending.key, NOW)
    async with database.transaction() as connection:
        assert await batches.resume(connection, pending.key, NOW) is not None
        holding = asyncio.create_task(batches.hold(database, pending.key, 10))

        async def it_waits_or_is_through() -> bool:
            return holding.done() or await locked_out(database) > 0

        await until(it_waits_or_is_through, "the hold")
    assert await holding == []


class Undone(Exception):
    """Nothing of the transaction is to stay."""


async def made_by_another(database: Database, pending: PendingBlock) -> int | None:
    """As `BatchMaker.make_next`: what was not to be made is undone."""
    try:
        async with database.transaction() as connection:
            left = await batch_making.block_made(connection, pending, NOW, {})
            if left is None:
                raise Undone
            return left
    except Undone:
        return None
