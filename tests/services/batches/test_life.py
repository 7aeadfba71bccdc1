"""The life of a batch: built block by block, cancelled, completed, whatever comes between (C15.5)."""

import asyncio
from typing import Any

import pytest
from tests.causes import cause
from tests.services.batches.conftest import PRICE, Workshop
from tests.services.batches.counting import COUNTS, another_process, checked
from tests.waiting import until

from recado.services.batches.batch_prices import WalletTariff
from recado.storage.batches import batch_making, batches
from recado.storage.dispatch.settlements import Failed


async def test_a_large_batch_is_built_in_blocks_and_then_runs(workshop: Workshop) -> None:
    made = await workshop.made(workshop.draft(2_500))
    assert workshop.hints == 1
    first = await checked(workshop, made)
    assert (first.status, first.accepted, first.requested) == ("building", 1_000, 2_500)
    await workshop.batches.work()
    built = await checked(workshop, made)
    assert (built.status, built.accepted, built.held_coins) == ("running", 2_500, 2_500 * PRICE)
    assert await workshop.db.fetchval("select count(distinct recipient) from messages") == 2_500
    assert await workshop.db.fetchval("select count(*) from batch_blocks") == 0
    assert (await workshop.wallet())[1] == 2_500 * PRICE
    assert [len(message.rows) for _, message in workshop.told] == [321, 321, 321]


async def test_what_held_the_number_before_a_later_block_lengthens_no_time_to_live(workshop: Workshop) -> None:
    made = await workshop.made(workshop.draft(1_001))
    await workshop.clock.advance(60)
    await workshop.db.execute(
        "update numbers set held_ms = 30000, updated_at = $2 where id = $1", workshop.number.id, workshop.clock.now()
    )
    await workshop.batches.work()
    assert [row["held_base_ms"] for row in await workshop.queue(made)] == [0] * 1_000 + [30_000]
    assert [row.held_base_ms for row in workshop.told[-1][1].rows] == [30_000]


async def test_batches_are_built_in_turn(workshop: Workshop) -> None:
    large = await workshop.made(workshop.draft(4_000))
    small = await workshop.made(workshop.draft(1_100))
    told = len(workshop.told)
    await workshop.batches.work()
    owners = [message.rows[0].owner for _, message in workshop.told[told:]]
    assert owners == [large.id, small.id, large.id, large.id]


async def test_what_a_dead_process_had_not_built_is_built_once(workshop: Workshop) -> None:
    made = await workshop.made(workshop.draft(2_500))
    await workshop.maker.make_next(made.key)
    await asyncio.gather(*(another_process(workshop).work() for _ in range(2)))
    assert (await checked(workshop, made)).accepted == 2_500
    assert await workshop.db.fetchval("select count(distinct recipient) from messages") == 2_500


async def test_a_block_of_a_batch_that_was_paused_meanwhile_is_undone(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await workshop.made(workshop.draft(1_500))
    add = batch_making.add

    async def pause_first(*arguments: Any, **named: Any) -> None:
        await batches.pause(workshop.db, made.key, workshop.clock.now())
        await add(*arguments, **named)

    monkeypatch.setattr(batch_making, "add", pause_first)
    assert await workshop.maker.make_next(made.key) is None
    paused = await checked(workshop, made)
    assert (paused.status, paused.accepted) == ("paused", 1_000)
    assert (await workshop.wallet())[1] == 1_000 * PRICE
    monkeypatch.undo()
    assert await workshop.batches.resume(paused)
    assert (await workshop.now(made)).status == "building"
    await workshop.batches.work()
    assert (await checked(workshop, made)).accepted == 1_500


async def test_a_block_that_is_not_covered_pauses_the_batch_until_it_is(workshop: Workshop) -> None:
    made = await workshop.made(workshop.draft(2_200))
    await workshop.set_coins(1_100 * PRICE)
    await workshop.batches.work()
    paused = await checked(workshop, made)
    assert (paused.status, paused.pause_reason, paused.accepted) == ("paused", "no_balance", 2_000)
    assert {row["reason"] for row in await workshop.queue(made)} == {"owner_paused"}
    assert workshop.records.owners.holds(made.id)
    assert await workshop.wallet() == (100 * PRICE, 2_000 * PRICE)
    assert await workshop.batches.resume(paused)
    await workshop.batches.work()
    assert (await workshop.now(made)).pause_reason == "no_balance"
    await workshop.set_coins(200 * PRICE)
    assert await workshop.batches.resume(await workshop.now(made))
    await workshop.batches.work()
    built = await checked(workshop, made)
    assert (built.status, built.pause_reason, built.accepted) == ("running", None, 2_200)


async def test_the_last_message_completes_the_batch(workshop: Workshop) -> None:
    made = await workshop.made(workshop.draft(3))
    first, second, third = [row["id"] for row in await workshop.queue(made)]
    await workshop.depart([first, second])
    await workshop.batches.work()
    assert (await checked(workshop, made)).status == "running"
    at = workshop.clock.now()
    await workshop.settle(
        [Failed(workshop.organization.id, "test", "chatapp", third, cause("expired: x"), at, queued=True)]
    )
    await workshop.batches.work()
    done = await checked(workshop, made)
    assert (done.status, done.finished_at, done.sent, done.failed) == ("completed", workshop.clock.now(), 2, 1)
    assert (done.held_coins, done.charged_coins) == (0, 2 * PRICE)


async def test_a_batch_that_left_before_it_was_built_completes_with_its_last_block(workshop: Workshop) -> None:
    made = await workshop.made(workshop.draft(1_001))
    await workshop.depart([row["id"] for row in await workshop.queue(made)])
    await workshop.batches.work()
    last = await workshop.queue(made)
    assert ((await workshop.now(made)).status, len(last)) == ("running", 1)
    await workshop.depart([last[0]["id"]])
    await workshop.batches.work()
    assert (await checked(workshop, made)).status == "completed"


async def test_a_cancel_archives_what_waits_and_gives_its_price_back(workshop: Workshop) -> None:
    made = await workshop.made(workshop.draft(2_300, campaign_id="spring"))
    queue = [row["id"] for row in await workshop.queue(made)]
    await workshop.depart(queue[:10])
    await workshop.claim(queue[10:12])
    assert await workshop.batches.cancel(await workshop.now(made))
    canceled = await checked(workshop, made)
    assert (canceled.status, canceled.archived, canceled.queued) == ("canceled", 988, 2)
    assert (canceled.held_coins, canceled.charged_coins) == (2 * PRICE, 10 * PRICE)
    assert (await workshop.wallet())[1] == 2 * PRICE
    await workshop.batches.work()
    assert (await workshop.now(made)).accepted == 1_000
    campaign = await workshop.db.fetchrow("select * from totals where kind = 'campaign'")
    assert (campaign["key"], campaign["queued"], campaign["sent"], campaign["archived"]) == ("spring", 2, 10, 988)
    assert not await workshop.batches.cancel(canceled)


@pytest.mark.parametrize("move", ["pause", "cancel"])
async def test_a_batch_whose_last_message_has_just_left_is_completed_and_not_moved(
    workshop: Workshop, move: str
) -> None:
    made = await workshop.made(workshop.draft(2))
    await workshop.depart([row["id"] for row in await workshop.queue(made)])
    assert not await getattr(workshop.batches, move)(await workshop.now(made))
    assert (await checked(workshop, made)).status == "completed"


async def test_what_comes_back_of_a_cancelled_batch_is_withdrawn_too(workshop: Workshop) -> None:
    made = await workshop.made(workshop.draft(2))
    claimed = (await workshop.queue(made))[0]["id"]
    await workshop.claim([claimed])
    await workshop.batches.cancel(await workshop.now(made))
    assert workshop.records.owners.holds(made.id)
    await workshop.db.execute("update dispatch set claimed_epoch = null where id = $1", claimed)
    await workshop.db.execute("update messages set status = 'queued' where id = $1", claimed)
    next_one = another_process(workshop)
    await next_one.work()
    await next_one.queue.work()
    await next_one.work()
    assert (await checked(workshop, made)).archived == 2
    assert await workshop.db.fetchval("select open from batches") is False


async def test_totals_stay_true_while_everything_happens_at_once(workshop: Workshop) -> None:
    made = [await workshop.made(workshop.draft(300, campaign_id=f"c{n % 2}")) for n in range(4)]
    queues = [[row["id"] for row in await workshop.queue(batch)] for batch in made]
    read = [await workshop.now(batch) for batch in made]

    async def fail(ids: list[str]) -> None:
        now = workshop.clock.now()
        failed = [
            Failed(workshop.organization.id, "test", "chatapp", each, cause("expired: x"), now, True) for each in ids
        ]
        await workshop.settle(failed)

    await asyncio.gather(
        *(workshop.depart(queue[:100]) for queue in queues),
        *(fail(queue[100:150]) for queue in queues),
        *(workshop.batches.cancel(batch) for batch in read[:2]),
        *(workshop.batches.pause(batch) for batch in read[2:]),
        *(workshop.made(workshop.draft(50, campaign_id="c1")) for _ in range(5)),
    )
    held = 0
    for batch in made:
        held += (await checked(workshop, batch)).held_coins
    assert (await workshop.wallet())[1] == held + 5 * 50 * PRICE
    for row in await workshop.db.fetch("select * from totals where kind = 'campaign'"):
        assert row["accepted"] == sum(row[name] for name in COUNTS)
        assert row["accepted"] == await workshop.db.fetchval(
            "select count(*) from messages where campaign_id = $1", row["key"]
        )


async def test_a_stop_ends_after_the_block_under_way(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    made = await workshop.made(workshop.draft(4_000))
    make_next, stopping = workshop.maker.make_next, []

    async def stop_meanwhile(key: Any) -> int | None:
        if not stopping:
            stopping.append(asyncio.ensure_future(workshop.batches.stop()))
        return await make_next(key)

    monkeypatch.setattr(workshop.maker, "make_next", stop_meanwhile)
    await workshop.batches.start()
    await until(stopping.__len__, "the stop")
    await stopping[0]
    assert (await checked(workshop, made)).accepted == 2_000
    await another_process(workshop).work()
    assert (await checked(workshop, made)).accepted == 4_000


async def test_a_batch_that_cannot_be_made_keeps_no_other_waiting(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, good = await workshop.made(workshop.draft(1_001)), await workshop.made(workshop.draft(1_001))
    price = WalletTariff.price

    async def fail_one(self: WalletTariff, batch: Any, block: Any, at: Any) -> None:
        if batch.id == bad.id:
            raise LookupError("no such price")
        await price(self, batch, block, at)

    monkeypatch.setattr(WalletTariff, "price", fail_one)
    await workshop.batches.work()
    assert ((await workshop.now(good)).status, (await workshop.now(bad)).status) == ("running", "building")
    monkeypatch.undo()
    await workshop.batches.work()
    assert (await checked(workshop, bad)).status == "running"


async def test_however_many_batches_cannot_be_made_a_newer_one_is_made(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = [await workshop.made(workshop.draft(1_001)) for _ in range(3)]
    good = await workshop.made(workshop.draft(2_001))
    price, tries = WalletTariff.price, []

    async def fail_most(self: WalletTariff, batch: Any, block: Any, at: Any) -> None:
        tries.append(batch.id)
        if batch.id != good.id:
            raise LookupError("no such price")
        await price(self, batch, block, at)

    monkeypatch.setattr(WalletTariff, "price", fail_most)
    await workshop.batches.work()
    assert (await checked(workshop, good)).status == "running"
    assert sorted(tries) == sorted([*(each.id for each in bad), good.id, good.id])  # once in a look


async def test_however_many_batches_an_organization_has_another_has_every_second_turn(workshop: Workshop) -> None:
    many = [await workshop.made(workshop.draft(2_001)) for _ in range(3)]
    another = await workshop.another_organization()
    other = await workshop.made(workshop.draft(3_001, **another))
    told = len(workshop.told)
    await workshop.batches.work()
    made = [message.rows[0].owner for _, message in workshop.told[told:]]
    assert [[made[place], made[place + 1]].count(other.id) for place in (0, 2, 4)] == [1, 1, 1]
    assert [each for each in made if each != other.id] == [each.id for each in many] * 2
