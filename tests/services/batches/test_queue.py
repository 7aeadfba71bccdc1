"""The rows of a large batch follow it in blocks: most of them after the answer, and all of them in the end (C15.5)."""

import asyncio
from typing import Any

import pytest
from tests.services.batches.conftest import PRICE, Workshop
from tests.services.batches.counting import another_process, checked
from tests.waiting import until

from recado.domain.core.errors import Unavailable
from recado.services.batches import batch_queue
from recado.services.batches.batch_queue import BLOCKS_AT_ONCE
from recado.services.effects.campaigns import CampaignCompletion
from recado.storage.batches import batches, campaigns
from recado.storage.dispatch import dispatch, overtaken
from recado.storage.dispatch.overtaken import WaitingGroup

ROWS = 1_000
BLOCK = 100
AT_ONCE = BLOCKS_AT_ONCE * BLOCK


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_queue, "BLOCK", BLOCK)


async def test_a_cancel_is_answered_before_all_of_a_large_batch_is_archived(workshop: Workshop) -> None:
    made = await workshop.made(workshop.draft(ROWS))
    await workshop.depart([(await workshop.queue(made))[0]["id"]])
    assert await workshop.batches.cancel(await workshop.now(made))
    canceled = await checked(workshop, made)
    assert (canceled.status, canceled.archived, canceled.queued) == ("canceled", AT_ONCE, ROWS - AT_ONCE - 1)
    assert (await workshop.wallet())[1] == canceled.held_coins == canceled.queued * PRICE
    assert workshop.records.owners.holds(made.id)
    await workshop.batches.queue.work()
    await workshop.batches.work()
    done = await checked(workshop, made)
    assert (done.status, done.archived, done.sent, done.queued) == ("canceled", ROWS - 1, 1, 0)
    assert done.finished_at == canceled.finished_at
    assert (await workshop.wallet())[1] == 0
    assert await workshop.db.fetchval("select open from batches") is False
    assert not workshop.records.owners.holds(made.id)


async def test_a_small_batch_is_archived_and_over_before_the_answer(workshop: Workshop) -> None:
    made = await workshop.made(workshop.draft(AT_ONCE - 1))
    assert await workshop.batches.cancel(await workshop.now(made))
    assert (await checked(workshop, made)).archived == AT_ONCE - 1
    assert await workshop.db.fetchval("select open from batches") is False


async def test_a_service_that_runs_archives_the_rest_by_itself(workshop: Workshop) -> None:
    made = await workshop.made(workshop.draft(ROWS))
    await workshop.batches.start()
    try:
        assert await workshop.batches.cancel(await workshop.now(made))

        async def is_over() -> bool:
            return not await workshop.db.fetchval("select open from batches")

        await until(is_over, "the batch is over")
    finally:
        await workshop.batches.stop()
    assert (await checked(workshop, made)).archived == ROWS


async def test_what_a_dead_process_had_not_archived_is_archived_and_no_batch_waits_for_that(
    workshop: Workshop,
) -> None:
    made = await workshop.made(workshop.draft(ROWS))
    assert await workshop.batches.cancel(await workshop.now(made))
    next_one = another_process(workshop)
    await next_one.work()
    assert (await checked(workshop, made)).archived == AT_ONCE  # the look archives nothing itself
    await next_one.queue.work()
    await next_one.work()
    assert (await checked(workshop, made)).archived == ROWS
    assert (await workshop.wallet())[1] == 0
    assert await workshop.db.fetchval("select open from batches") is False


async def test_large_batches_are_archived_in_turns_and_one_that_fails_keeps_no_other_waiting(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, good = [await workshop.made(workshop.draft(ROWS)) for _ in range(2)]
    for made in (bad, good):
        assert await workshop.batches.cancel(await workshop.now(made))
    withdraw = batches.withdraw

    async def fail_one(executor: Any, key: Any, *arguments: Any) -> Any:
        if key == bad.key:
            raise LookupError("a row that nobody expected")
        return await withdraw(executor, key, *arguments)

    monkeypatch.setattr(batches, "withdraw", fail_one)
    await workshop.batches.queue.work()
    assert (await checked(workshop, good)).archived == ROWS
    assert (await checked(workshop, bad)).archived == AT_ONCE
    monkeypatch.undo()
    monkeypatch.setattr(batch_queue, "BLOCK", BLOCK)
    await workshop.batches.queue.work()
    assert (await checked(workshop, bad)).archived == ROWS


@pytest.mark.parametrize("error", [Unavailable(), LookupError("a row that nobody expected")])
async def test_a_cancel_is_answered_whatever_happens_after_its_commit(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    made = await workshop.made(workshop.draft(3))

    async def away(*arguments: Any) -> Any:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(batches, "withdraw", away)
        assert await workshop.batches.cancel(await workshop.now(made))
    await workshop.batches.queue.work()
    assert (await checked(workshop, made)).archived == 3


async def test_a_row_that_another_holds_meanwhile_is_archived_in_the_next_round(workshop: Workshop) -> None:
    made = await workshop.made(workshop.draft(ROWS))
    first = (await workshop.queue(made))[0]["id"]
    async with workshop.db.transaction() as connection:
        await connection.execute("select from dispatch where id = $1 for update", first)
        assert await workshop.batches.cancel(await workshop.now(made))
        assert (await workshop.queue(made))[0]["id"] == first
    await workshop.batches.queue.work()
    assert (await checked(workshop, made)).archived == ROWS


async def test_a_claim_that_was_begun_is_committed_before_the_cancel(workshop: Workshop) -> None:
    made = await workshop.made(workshop.draft(2))
    asked, may_go_on = asyncio.Event(), asyncio.Event()

    async def claims_settled() -> None:
        assert workshop.records.owners.holds(made.id)  # none begins any more
        asked.set()
        await may_go_on.wait()

    workshop.batches._claims_settled = claims_settled
    canceling = asyncio.ensure_future(workshop.batches.cancel(await workshop.now(made)))
    await asked.wait()
    assert (await workshop.now(made)).status == "running"
    await workshop.claim([(await workshop.queue(made))[0]["id"]])
    may_go_on.set()
    assert await canceling
    assert (await checked(workshop, made)).archived == 1


async def test_a_cancel_waits_for_the_claims_under_way(workshop: Workshop) -> None:
    made = await workshop.made(workshop.draft(2))
    _, arrived = workshop.told[-1]
    claim = workshop.sending.claim(arrived.rows[0])
    assert await workshop.batches.cancel(await workshop.now(made))
    assert claim.done()
    assert await claim == dispatch.CLAIMED
    canceled = await checked(workshop, made)
    assert (canceled.archived, canceled.queued) == (1, 1)


async def test_a_refused_cancel_holds_nothing(workshop: Workshop) -> None:
    made = await workshop.made(workshop.draft(1))
    before = await workshop.now(made)
    await workshop.depart([(await workshop.queue(made))[0]["id"]])
    await workshop.batches.work()
    assert not await workshop.batches.cancel(before)
    assert not workshop.records.owners.holds(made.id)


async def test_the_campaign_is_through_when_the_last_message_is_archived(workshop: Workshop) -> None:
    made = await workshop.made(workshop.draft(ROWS, campaign_id="spring"))
    completion = CampaignCompletion(workshop.db, clock=workshop.clock, ids=workshop.ids, changed=lambda change: None)

    async def status() -> str:
        await completion.work()
        found = await campaigns.get(workshop.db, workshop.organization.id, "test", "spring")
        assert found is not None
        return found.status

    assert await workshop.batches.cancel(await workshop.now(made))
    await workshop.clock.advance(16 * 60)
    assert await status() == "running"
    await workshop.batches.queue.work()
    assert await status() == "completed"


async def test_while_the_database_is_away_the_rest_waits(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    made = await workshop.made(workshop.draft(ROWS))
    assert await workshop.batches.cancel(await workshop.now(made))

    async def away(*arguments: Any) -> Any:
        raise Unavailable

    with monkeypatch.context() as patched:
        patched.setattr(batches, "withdraw", away)
        with pytest.raises(Unavailable):
            await workshop.batches.queue.work()
    await workshop.batches.queue.work()
    assert (await checked(workshop, made)).archived == ROWS


async def test_what_is_not_archived_yet_does_not_outlive_its_time(workshop: Workshop) -> None:
    made = await workshop.made(workshop.draft(ROWS))
    due_at = (await workshop.queue(made))[0]["due_at"]
    await workshop.batches.pause(await workshop.now(made))
    await workshop.clock.advance(60)
    await workshop.batches.cancel(await workshop.now(made))
    await workshop.clock.advance(60)
    read_again = another_process(workshop)
    await read_again.start()
    await read_again.stop()
    for owners in (workshop.records.owners, read_again._owners):
        assert owners.held_ms(made.id, due_at, workshop.clock.now()) == 120_000


async def test_what_is_to_be_archived_is_not_made_ready_again(workshop: Workshop) -> None:
    made = await workshop.made(workshop.draft(ROWS))
    await workshop.batches.pause(await workshop.now(made))
    await workshop.batches.queue.work()
    await workshop.batches.cancel(await workshop.now(made))
    group = WaitingGroup(workshop.organization.id, workshop.number.id, "owner_paused")
    page = await overtaken.release(workshop.db, group, limit=ROWS)
    assert (page.rows, page.released) == (ROWS - AT_ONCE, 0)


async def test_a_large_batch_is_held_back_in_blocks_until_it_goes_on(workshop: Workshop) -> None:
    made = await workshop.made(workshop.draft(ROWS))

    async def reasons() -> dict[str | None, int]:
        rows = await workshop.db.fetch("select reason, count(*) from dispatch group by 1")
        return {row["reason"]: row["count"] for row in rows}

    assert await workshop.batches.pause(await workshop.now(made))
    assert await reasons() == {"owner_paused": AT_ONCE, None: ROWS - AT_ONCE}
    await workshop.batches.queue.work()
    assert await reasons() == {"owner_paused": ROWS}
    await workshop.batches.resume(await workshop.now(made))
    await workshop.db.execute("update dispatch set not_before = null, reason = null")
    await workshop.batches.pause(await workshop.now(made))
    await workshop.batches.resume(await workshop.now(made))
    await workshop.batches.queue.work()
    assert await reasons() == {"owner_paused": AT_ONCE, None: ROWS - AT_ONCE}


async def test_organizations_take_turns_and_the_batches_of_each_however_many_one_has(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = [("org_1", "test", f"bat_{n}") for n in range(5)] + [("org_2", "test", "bat_9")]
    told: list[str] = []

    async def hold(executor: Any, key: Any, limit: int, after_id: str) -> list[str]:
        told.append(key[2])
        return ["msg_1"] * BLOCK if told.count(key[2]) < AT_ONCE // BLOCK + 5 else []

    monkeypatch.setattr(batches, "hold", hold)
    for key in keys:
        await workshop.batches.queue.hold(key)
    told.clear()
    told += [each for _, _, each in keys for _ in range(BLOCKS_AT_ONCE)]
    before = len(told)
    await workshop.batches.queue.work()
    turns = told[before:]
    assert turns[:12] == [
        "bat_0", "bat_9", "bat_1", "bat_9", "bat_2", "bat_9", "bat_3", "bat_9", "bat_4", "bat_9", "bat_0", "bat_9",
    ]  # fmt: skip
    assert turns[12:16] == ["bat_1", "bat_2", "bat_3", "bat_4"]
    assert {turns.count(key[2]) for key in keys} == {6}
