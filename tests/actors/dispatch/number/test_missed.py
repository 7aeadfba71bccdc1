"""Rows that another process stored, and of which the lane was not told, are found within a second (C32)."""

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from recado.actors.dispatch.due_poller import DuePoller
from recado.actors.dispatch.lane_messages import Look
from recado.domain.messages.message import BULK, NORMAL
from recado.services.dispatch.hints import Arrived
from recado.services.dispatch.row import row_from
from recado.storage.dispatch import dispatch

if TYPE_CHECKING:
    from tests.actors.dispatch.number.conftest import Line

EARLIER = timedelta(seconds=2)
OLDER = "update dispatch set due_at = due_at - $2::interval where id = any($1::text[])"


@pytest.fixture
def poller(line: "Line") -> DuePoller:
    """One that has reminded the lanes in memory a moment ago, and does so again in ten seconds."""
    found = DuePoller(
        line.db,
        clock=line.clock,
        tell=lambda _, message: line.tell(message),
        in_memory=lambda _: line.in_memory,
        starting=lambda: 0,
    )
    found._runs = 1
    return found


async def busy(line: "Line", poller: DuePoller) -> list[str]:
    """A lane that has read all that there is, and has much of it waiting in memory."""
    queued = await line.queue(200)
    await line.goes_on(1.5)
    await poller.work()
    await line.goes_on(0.2)
    assert line.provider.sent == queued[: len(line.provider.sent)]
    assert 50 < len(line.provider.sent) < 130
    return queued


async def test_an_earlier_row_of_another_process_goes_next_within_a_second(line: "Line", poller: DuePoller) -> None:
    """It has a lower id than those that the lane has read, and was committed after them."""
    earlier = line.ids.new("msg_")
    queued = await busy(line, poller)
    (stored,) = await line.queue(1, tell=False)
    await line.db.execute("update messages set id = $2 where id = $1", stored, earlier)
    await line.db.execute("update dispatch set id = $2 where id = $1", stored, earlier)
    await line.db.execute(OLDER, [earlier], EARLIER)

    await line.goes_on(0.2)
    assert earlier not in line.provider.sent
    left = len(line.provider.sent)
    await poller.work()
    await line.goes_on(5)
    assert line.provider.sent.index(earlier) < left + 10  # what was claimed before may leave before it
    assert [each for each in line.provider.sent if each != earlier] == queued


async def test_a_row_that_was_not_told_leaves_while_others_arrive_without_end(line: "Line", poller: DuePoller) -> None:
    await line.queue(1)
    await line.goes_on(2)
    (missed,) = await line.queue(1, tell=False)
    for _ in range(4):  # the lane is never idle, and sees no reason to look
        await line.goes_on(0.25)
    assert missed not in line.provider.sent
    await poller.work()
    await line.goes_on(0.2)
    assert missed in line.provider.sent


async def test_a_forced_row_that_was_not_told_leaves_though_its_class_is_held(line: "Line", poller: DuePoller) -> None:
    """A look at the rows of the classes leaves forced ones out: it waited for the next start of the lane."""
    await line.queue(1)
    await line.goes_on(2)
    (missed,) = await line.queue(1, klass=BULK, tell=False)
    await line.db.execute("update dispatch set force = true where id = $1", missed)
    line.tell(Look())
    await line.goes_on(1)
    assert missed not in line.provider.sent
    await poller.work()
    await line.goes_on(0.2)
    assert missed in line.provider.sent


async def test_a_lane_that_knows_its_rows_reads_none_again(
    line: "Line", poller: DuePoller, monkeypatch: pytest.MonkeyPatch
) -> None:
    await busy(line, poller)
    refill, reads = dispatch.refill, 0

    async def counted(*arguments: object) -> object:
        nonlocal reads
        reads += 1
        return await refill(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(dispatch, "refill", counted)
    for _ in range(3):
        await poller.work()
        await line.goes_on(0.1)
    assert reads == 0


async def test_a_hint_that_comes_when_its_rows_have_left_sends_nothing_twice(line: "Line") -> None:
    """The lane may read what another process has committed before it is told of it."""
    queued = await line.queue(5, tell=False)
    found = await dispatch.refill(line.db, line.organization.id, line.number.id, NORMAL, "", 5)
    line.tell(Look())
    await line.goes_on(2)
    assert line.provider.sent == queued
    line.tell(Arrived(tuple(row_from(record) for record in found)))
    (last,) = await line.queue(1)
    await line.goes_on(2)
    assert line.provider.sent == [*queued, last]
    assert await line.counts() == {"sent": 6}
