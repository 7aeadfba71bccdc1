"""The rows of an open batch are found by the ranges of ids that its blocks were given (C15.5)."""

from typing import Any

import pytest
from tests.services.batches.conftest import Workshop
from tests.services.batches.counting import checked

from recado.storage.batches import batches
from recado.storage.messages import replacements
from recado.storage.messages.replacements import Replacement

OWN = "update dispatch set owner = 'single', source_kind = 'single', batch_id = null where id = $1"


async def ranges(workshop: Workshop, made: Any) -> list[tuple[str, str]]:
    rows = await workshop.db.fetch("select * from batch_ranges where batch_id = $1 order by first_id", made.id)
    return [(row["first_id"], row["last_id"]) for row in rows]


async def test_a_range_holds_a_block_and_no_message_of_another_batch(workshop: Workshop) -> None:
    made = [await workshop.made(workshop.draft(count)) for count in (2_500, 1_500, 10)]
    await workshop.batches.work()
    for each, sizes in zip(made, ([1_000, 1_000, 500], [1_000, 500], [10]), strict=True):
        found = []
        for first_id, last_id in await ranges(workshop, each):
            rows = await workshop.db.fetch(
                "select batch_id from messages where id between $1 and $2", first_id, last_id
            )
            assert {row["batch_id"] for row in rows} == {each.id}
            found.append(len(rows))
        assert found == sizes


async def test_the_blocks_of_a_batch_follow_it_and_those_between_them_do_not(workshop: Workshop) -> None:
    one, other = [await workshop.made(workshop.draft(2_500)) for _ in range(2)]
    await workshop.batches.work()  # a block of each in turn
    assert await workshop.batches.pause(await workshop.now(one))
    await workshop.batches.queue.work()
    reasons = {row["reason"] for row in await workshop.queue(one)}
    assert (reasons, {row["reason"] for row in await workshop.queue(other)}) == ({"owner_paused"}, {None})
    assert await workshop.batches.cancel(await workshop.now(one))
    await workshop.batches.queue.work()
    await workshop.batches.work()
    assert ((await checked(workshop, one)).archived, (await checked(workshop, other)).queued) == (2_500, 2_500)
    assert await ranges(workshop, one) == []
    assert len(await ranges(workshop, other)) == 3


async def test_a_batch_that_is_through_has_no_range_any_more(workshop: Workshop) -> None:
    made = await workshop.made(workshop.draft(2))
    assert len(await ranges(workshop, made)) == 1
    await workshop.depart([row["id"] for row in await workshop.queue(made)])
    await workshop.batches.work()
    assert (await workshop.now(made)).status == "completed"
    assert await ranges(workshop, made) == []


async def test_the_senders_of_a_batch_are_those_that_its_rows_wait_for(workshop: Workshop) -> None:
    made, other = [await workshop.made(workshop.draft(4)) for _ in range(2)]
    rows = await workshop.queue(made)
    for sender, row in zip("aba", rows, strict=False):
        await workshop.db.execute("update dispatch set sender_id = $1 where id = $2", sender, row["id"])
    await workshop.db.execute("delete from dispatch where id = $1", rows[3]["id"])
    found = await workshop.db.fetch(batches.SQL.senders_of, workshop.organization.id, made.id)
    assert sorted(row["sender_id"] for row in found) == ["a", "b"]
    assert {row["sender_id"] for row in await workshop.queue(other)} == {workshop.number.id}


@pytest.mark.parametrize("open_still", [True, False], ids=["open", "canceled"])
async def test_what_takes_the_place_of_a_message_follows_its_batch_while_that_is_open(
    workshop: Workshop, open_still: bool
) -> None:
    made = await workshop.made(workshop.draft(2))
    again = await workshop.made(workshop.draft(1))
    new_id = (await workshop.queue(again))[0]["id"]
    await workshop.db.execute(OWN, new_id)
    if not open_still:
        assert await workshop.batches.cancel(await workshop.now(made))
    replacement = Replacement(
        workshop.organization.id, "test", "chatapp", "msg_old", new_id, include_uncertain=False, batch_id=made.id
    )
    owner = await replacements.inherit(workshop.db, replacement)
    assert owner == (made.id if open_still else "single")
    assert ((new_id, new_id) in await ranges(workshop, made)) is open_still
    if open_still:
        assert await workshop.batches.pause(await workshop.now(made))
        assert [row["reason"] for row in await workshop.queue(made)] == ["owner_paused"] * 3
