"""Audiences are read beside the making: whose reading waits keeps nobody else waiting (C15.5)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.services.batches.audiences import a_list, people, reached
from tests.services.batches.conftest import Workshop
from tests.waiting import until

from recado.domain.batches.batch import BatchStatus
from recado.domain.core.errors import Unavailable
from recado.services.batches import audience_reader
from recado.services.batches.audience_reader import PAUSE
from recado.services.batches.batch_audience import Audiences
from recado.storage.audience.segment_evaluation import Evaluation

pytestmark = pytest.mark.usefixtures("nobody")


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The batches whose audience was begun to be read, in their order."""
    found: list[str] = []
    read = Audiences.read

    async def note(self: Audiences, key: Any) -> int | None:
        found.append(key[2])
        return await read(self, key)

    monkeypatch.setattr(Audiences, "read", note)
    return found


@asynccontextmanager
async def held(workshop: Workshop) -> AsyncIterator[None]:
    """While the first organization's place among the evaluations is taken; the service runs meanwhile."""
    places = workshop.audiences._evaluation._places
    owner = workshop.organization.id
    assert places.take(owner)
    await workshop.batches.start()
    try:
        yield
    finally:
        await workshop.batches.stop()
        places.leave(owner)


async def to_list(workshop: Workshop, list_id: str, **changes: Any) -> Any:
    return await workshop.made(workshop.draft(0, recipients=(), list_id=list_id, **changes))


async def status_is(workshop: Workshop, batch: Any, status: BatchStatus) -> None:
    async def reached() -> bool:
        return (await workshop.now(batch)).status == status

    await until(reached, f"the batch is {status}")


async def test_an_audience_that_waits_for_its_turn_keeps_no_other_batch_waiting(
    workshop: Workshop, begun: list[str]
) -> None:
    await a_list(workshop, await people(workshop, [{}] * 2))
    waiting = [await to_list(workshop, "lst_1") for _ in range(3)]
    another = await workshop.another_organization()
    members = await people(workshop, [{}] * 3, first=10, organization_id=another["organization_id"])
    await a_list(workshop, members, "lst_2", another["organization_id"])
    listed = await to_list(workshop, "lst_2", **another)
    own, others = await workshop.made(workshop.draft(2_001)), await workshop.made(workshop.draft(2_001, **another))
    async with held(workshop):
        for batch in (own, others, listed):
            await status_is(workshop, batch, BatchStatus.RUNNING)
        assert [(await workshop.now(batch)).status for batch in waiting] == ["building"] * 3
        assert len(set(begun) & {batch.id for batch in waiting}) == 1  # one at a time
    for batch in waiting:
        assert (await workshop.built(batch)).accepted == 2


@pytest.mark.parametrize("move", ["pause", "cancel"])
async def test_a_batch_whose_audience_is_being_read_is_moved_at_once(
    workshop: Workshop, begun: list[str], move: str
) -> None:
    await a_list(workshop, await people(workshop, [{}] * 2))
    made, next_one = await to_list(workshop, "lst_1"), await to_list(workshop, "lst_1")
    async with held(workshop):
        await until(lambda: begun == [made.id], "its audience is being read")
        assert await getattr(workshop.batches, move)(await workshop.now(made))
        await until(lambda: begun == [made.id, next_one.id], "the next one's turn has come")
    assert (await workshop.built(next_one)).accepted == 2
    now = await workshop.now(made)
    assert (now.accepted, now.status) == (0, {"pause": "paused", "cancel": "canceled"}[move])
    if move == "pause":
        assert await workshop.batches.resume(now)
        assert (await workshop.built(made)).accepted == 2


async def test_a_stop_breaks_the_reading_off_and_the_next_start_takes_it_up(
    workshop: Workshop, begun: list[str]
) -> None:
    ids = await people(workshop, [{}] * 2)
    made = await to_list(workshop, await a_list(workshop, ids))
    async with held(workshop):
        await until(lambda: begun, "its audience is being read")
    assert (await workshop.now(made)).status == "building"
    assert (await workshop.built(made)).accepted == 2
    assert await reached(workshop) == ids


async def test_what_cannot_be_read_now_is_read_later_and_keeps_no_other_of_its_organization_waiting(
    workshop: Workshop, begun: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    await a_list(workshop, await people(workshop, [{}] * 2))
    bad, good = await to_list(workshop, "lst_1"), await to_list(workshop, "lst_1")
    next_of, errors = Evaluation.next_of, [Unavailable(), LookupError("x")]

    async def fail(self: Evaluation, *arguments: Any, **more: Any) -> Any:
        if begun[-1] == bad.id and errors:
            raise errors.pop()
        return await next_of(self, *arguments, **more)

    async def all_were_tried() -> bool:
        await workshop.clock.advance(PAUSE)  # again and again: who pauses may not have begun to
        return len(begun) >= 4

    monkeypatch.setattr(Evaluation, "next_of", fail)
    await workshop.batches.start()
    try:
        await until(lambda: begun == [bad.id], "it was tried")
        await until(all_were_tried, "each was tried, the bad one three times")
        await status_is(workshop, good, BatchStatus.RUNNING)
        await status_is(workshop, bad, BatchStatus.RUNNING)
    finally:
        await workshop.batches.stop()
    assert begun == [bad.id, good.id, bad.id, bad.id]


async def test_organizations_take_turns_where_not_all_are_read_at_once(
    workshop: Workshop, begun: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audience_reader, "AT_ONCE", 1)
    await a_list(workshop, await people(workshop, [{}] * 2))
    another = await workshop.another_organization()
    members = await people(workshop, [{}], first=10, organization_id=another["organization_id"])
    await a_list(workshop, members, "lst_2", another["organization_id"])
    own = [await to_list(workshop, "lst_1") for _ in range(3)]
    others = [await to_list(workshop, "lst_2", **another) for _ in range(3)]
    await workshop.batches.start()
    try:
        for batch in (*own, *others):
            await status_is(workshop, batch, BatchStatus.RUNNING)
    finally:
        await workshop.batches.stop()
    of_others = {batch.id for batch in others}
    assert [batch_id for batch_id in begun if batch_id in of_others] == [batch.id for batch in others]
    assert [batch_id for batch_id in begun if batch_id not in of_others] == [batch.id for batch in own]
    first, second, *_ = turns = [batch_id in of_others for batch_id in begun]
    assert first != second
    assert turns == [first, second] * 3
