"""Pauses of a batch: what waits is held, and is let go again, whatever comes between (C15.5)."""

import asyncio
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

import pytest
from tests.emptied import POOL_SIZE
from tests.services.batches.conftest import Workshop
from tests.services.batches.counting import another_process
from tests.waiting import until

from recado.domain.core.errors import Unavailable
from recado.services.dispatch.hints import OwnerMoved
from recado.services.dispatch.owners import Owners
from recado.storage.batches import batches
from recado.storage.batches.batches import OpenBatch
from recado.storage.core.connections.postgres import Database
from recado.storage.core.shares.callers import working_for


async def test_a_pause_takes_what_is_queued_out_of_the_ready_index(workshop: Workshop) -> None:
    made = await workshop.made(workshop.draft(5))
    other = await workshop.made(workshop.draft(2))
    under_way = (await workshop.queue(made))[0]["id"]
    await workshop.claim([under_way])
    assert await workshop.batches.pause(await workshop.now(made))
    held = [row["reason"] for row in await workshop.queue(made)]
    assert held == [None, *(["owner_paused"] * 4)]
    assert {row["reason"] for row in await workshop.queue(other)} == {None}
    assert not await workshop.batches.pause(await workshop.now(made))


async def test_a_resumed_batch_is_let_go_by_its_dispatcher(workshop: Workshop) -> None:
    made = await workshop.made(workshop.draft(5))
    await workshop.batches.pause(await workshop.now(made))
    workshop.told.clear()
    assert await workshop.batches.resume(await workshop.now(made))
    number = (workshop.organization.id, "test", "chatapp", workshop.number.id)
    assert workshop.told == [(number, OwnerMoved(made.id))]
    assert not workshop.records.owners.holds(made.id)
    assert not await workshop.batches.resume(await workshop.now(made))


async def test_a_start_knows_what_is_paused_and_for_how_long(workshop: Workshop) -> None:
    made = await workshop.made(workshop.draft(1))
    [row] = await workshop.queue(made)
    await workshop.batches.pause(await workshop.now(made))
    await workshop.clock.advance(60)
    await workshop.batches.resume(await workshop.now(made))
    await workshop.clock.advance(30)
    await workshop.batches.pause(await workshop.now(made))
    await workshop.clock.advance(5)
    owners, now = Owners(), workshop.clock.now()
    owners.load(await batches.open_batches(workshop.db))
    assert owners.holds(made.id)
    for known in (owners, workshop.records.owners):
        assert known.held_ms(made.id, row["due_at"], now) == 65_000


async def test_a_pause_before_a_batch_is_due_lengthens_no_time_to_live(workshop: Workshop) -> None:
    due_at = workshop.clock.now() + timedelta(seconds=100)
    made = await workshop.made(workshop.draft(1, scheduled_at=due_at))
    [row] = await workshop.queue(made)
    assert row["due_at"] == due_at
    for paused, running in ((60, 20), (30, 10), (5, 30)):  # 80 s ahead of the due time, and then 10 and 5 s after it
        await workshop.batches.pause(await workshop.now(made))
        await workshop.clock.advance(paused)
        await workshop.batches.resume(await workshop.now(made))
        await workshop.clock.advance(running)
    owners, now = Owners(), workshop.clock.now()
    owners.load(await batches.open_batches(workshop.db))
    for known in (owners, workshop.records.owners):
        assert known.held_ms(made.id, due_at, now) == 15_000
        assert known.held_ms(made.id, due_at - timedelta(seconds=100), now) == 95_000  # forced, and due at once


async def test_a_resume_that_a_crash_cut_short_is_taken_up(workshop: Workshop) -> None:
    made = await workshop.made(workshop.draft(2))
    await workshop.batches.pause(await workshop.now(made))
    await batches.resume(workshop.db, made.key, workshop.clock.now())
    workshop.told.clear()
    await another_process(workshop).work()
    assert [message for _, message in workshop.told] == [OwnerMoved(made.id)]


async def test_moves_are_known_in_the_order_of_their_commits(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await workshop.made(workshop.draft(2))
    batch = await workshop.now(made)
    pause, resumed = batches.pause, []

    async def answered_late(*arguments: Any) -> bool:
        paused = await pause(*arguments)
        resumed.append(asyncio.ensure_future(workshop.batches.resume(batch)))
        await asyncio.wait(resumed, timeout=0.2)  # it waits for this answer: or its own would be told first
        return paused

    monkeypatch.setattr(batches, "pause", answered_late)
    assert await workshop.batches.pause(batch)
    assert await resumed[0]
    assert (await workshop.now(made)).status == "running"
    assert not workshop.records.owners.holds(made.id)


async def test_a_pause_that_waits_for_the_share_of_its_organization_keeps_no_other_waiting(workshop: Workshop) -> None:
    waits, other = await workshop.made(workshop.draft(1)), await workshop.made(workshop.draft(1))
    batch = await workshop.now(waits)

    async def pause_in_a_full_share() -> bool:
        working_for.set("org_full")
        async with AsyncExitStack() as share:
            for _ in range(POOL_SIZE // 2):
                await share.enter_async_context(workshop.db.acquire())
            paused = asyncio.ensure_future(workshop.batches.pause(batch))
            await let_go.wait()
        return await paused

    let_go = asyncio.Event()
    pausing = asyncio.ensure_future(pause_in_a_full_share())
    await until(lambda: "org_full" in workshop.db._places._waiting, "the pause that waits")
    await workshop.batches.work()
    assert await workshop.batches.pause(await workshop.now(other))
    assert "org_full" in workshop.db._places._waiting
    let_go.set()
    assert await pausing


async def test_a_look_that_read_before_a_pause_does_not_let_the_messages_go(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await workshop.made(workshop.draft(2))
    batch, open_batches = await workshop.now(made), batches.open_batches

    async def answered_late(db: Database) -> list[OpenBatch]:
        found = await open_batches(db)
        assert await workshop.batches.pause(batch)
        return found

    monkeypatch.setattr(batches, "open_batches", answered_late)
    await workshop.batches.work()
    assert workshop.records.owners.holds(made.id)


@pytest.mark.parametrize("move", ["pause", "cancel"])
async def test_a_move_whose_answer_is_lost_holds_the_messages_all_the_same(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, move: str
) -> None:
    made = await workshop.made(workshop.draft(2))
    await workshop.claim([(await workshop.queue(made))[0]["id"]])  # so that the batch is not over
    await workshop.batches.work()
    committed = getattr(batches, move)

    async def lost(*arguments: Any) -> bool:
        await committed(*arguments)
        raise Unavailable

    monkeypatch.setattr(batches, move, lost)
    with pytest.raises(Unavailable):
        await getattr(workshop.batches, move)(await workshop.now(made))
    await workshop.batches.work()
    assert workshop.records.owners.holds(made.id)


async def test_a_cancel_that_was_not_committed_lets_the_messages_go_on(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await workshop.made(workshop.draft(2))
    await workshop.batches.work()

    async def away(*arguments: Any) -> bool:
        assert workshop.records.owners.holds(made.id)
        raise Unavailable

    monkeypatch.setattr(batches, "cancel", away)
    with pytest.raises(Unavailable):
        await workshop.batches.cancel(await workshop.now(made))
    await workshop.batches.work()
    assert not workshop.records.owners.holds(made.id)


async def test_a_resume_whose_answer_is_lost_lets_the_messages_go_all_the_same(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await workshop.made(workshop.draft(2))
    await workshop.batches.work()
    assert await workshop.batches.pause(await workshop.now(made))
    resume = batches.resume

    async def lost(*arguments: Any) -> int | None:
        await resume(*arguments)
        raise Unavailable

    monkeypatch.setattr(batches, "resume", lost)
    with pytest.raises(Unavailable):
        await workshop.batches.resume(await workshop.now(made))
    workshop.told.clear()
    await workshop.batches.work()
    assert not workshop.records.owners.holds(made.id)
    assert [message for _, message in workshop.told] == [OwnerMoved(made.id)]
