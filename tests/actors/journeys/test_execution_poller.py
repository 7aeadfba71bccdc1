"""Whatever is due is taken along, a turn of each organization after the other, until nothing is left (C9.15)."""

from datetime import UTC, datetime
from typing import Any

import pytest
from tests.captured import capture_logs

from recado.actors.journeys.execution_poller import ExecutionPoller
from recado.domain.core.errors import Unavailable
from recado.engine.clock import VirtualClock
from recado.services.journeys.execution_turns import Turn
from recado.storage.journeys.executions import HeardSignals, WaitingWork


class Taking:
    """Turns with so many executions, in order. `after`: with which each of them was asked for."""

    def __init__(self, *turns: Turn, overslept: int = 0, signals: int = 0) -> None:
        self._turns = list(turns)
        self._signals = signals
        self._overslept = overslept
        self.after: list[str] = []
        self.waits = True

    async def waiting(self) -> WaitingWork:
        return WaitingWork(*[self.waits] * 5)

    async def hear(self, after: str = "") -> HeardSignals:
        self._signals, found = max(0, self._signals - 200), min(self._signals, 200)
        return HeardSignals(found)

    async def rouse(self) -> int:
        self._overslept, found = max(0, self._overslept - 200), min(self._overslept, 200)
        return found

    async def take(self, after: str = "") -> Turn:
        self.after.append(after)
        return self._turns.pop(0) if self._turns else Turn(0)


class Entering:
    """Turns of entries, as `Taking`."""

    def __init__(self, *turns: Turn) -> None:
        self._turns = list(turns)
        self.after: list[str] = []

    async def take(self, after: str = "") -> Turn:
        self.after.append(after)
        return self._turns.pop(0) if self._turns else Turn(0)


def polled(
    taking: Taking, events: Entering | None = None, arrivals: Entering | None = None
) -> tuple[ExecutionPoller, VirtualClock]:
    clock = VirtualClock(datetime(2026, 11, 23, tzinfo=UTC))
    given: Any = (taking, events or Entering(), arrivals or Entering())
    return ExecutionPoller(*given, clock=clock), clock


async def test_a_look_ends_when_no_organization_has_anything_due() -> None:
    taking = Taking(Turn(200, "org_5"), Turn(0), Turn(3), overslept=500, signals=300)
    poller, _ = polled(taking)
    await poller.work()
    assert taking.after == ["", "org_5", "org_5", "", ""]  # after a full one two at once
    assert (await taking.rouse(), (await taking.hear()).count) == (0, 0)


async def test_it_looks_twice_a_second_and_at_a_hint() -> None:
    taking = Taking()
    poller, clock = polled(taking)
    await poller.start()
    await clock.advance(0)
    assert len(taking.after) == 1
    await clock.advance(1.5)
    assert len(taking.after) == 4
    poller.hint()
    await clock.advance(0)
    assert len(taking.after) == 5
    await poller.stop()


async def test_who_enters_has_turns_until_none_is_left() -> None:
    taking = Taking()
    events, arrivals = Entering(Turn(200, "org_3"), Turn(0)), Entering(Turn(5), Turn(5))
    poller, _ = polled(taking, events, arrivals)
    await poller.work()
    assert (events.after, arrivals.after) == (["", "org_3", ""], ["", "", ""])


async def test_after_full_turns_two_of_a_kind_are_taken_at_once() -> None:
    taking = Taking(Turn(500, "org_2"), Turn(500, "org_7"), Turn(500, "org_5"), Turn(10))
    arrivals = Entering(Turn(1_000, "org_1"), Turn(1_000, "org_4"), Turn(7))
    poller, _ = polled(taking, arrivals=arrivals)
    await poller.work()
    assert taking.after == ["", "org_2", "org_2", "org_5", "org_5", ""]
    assert arrivals.after == ["", "org_1", "org_1", "", ""]


async def test_nothing_is_locked_while_nothing_waits() -> None:
    taking, events = Taking(Turn(3)), Entering()
    taking.waits = False
    poller, _ = polled(taking, events)
    await poller.work()
    assert (taking.after, events.after) == ([], [])


async def test_a_part_that_fails_keeps_no_other_from_its_work() -> None:
    class Failing(Taking):
        async def hear(self, after: str = "") -> HeardSignals:
            raise Unavailable("a signal that takes too long")

    taking, events = Failing(Turn(3), Turn(2), overslept=300), Entering(Turn(1))
    poller, _ = polled(taking, events)
    with capture_logs() as logs:
        await poller.work()
    assert (taking.after, await taking.rouse()) == (["", "", ""], 0)
    assert [line["part"] for line in logs] == ["signals"]  # once a look


async def test_a_part_that_failed_is_tried_again_within_a_look_that_goes_on() -> None:
    taking, events = Taking(Turn(3)), Entering(*[Turn(1)] * 3)
    poller, clock = polled(taking, events)
    heard: list[float] = []

    async def hear(after: str = "") -> HeardSignals:
        heard.append(clock.monotonic())
        if len(heard) == 1:
            raise Unavailable("a deadlock")
        return HeardSignals(0)

    async def slow(after: str = "") -> Turn:
        await clock.advance(0.6)
        return await enter(after)

    enter, taking.hear, events.take = events.take, hear, slow  # type: ignore[method-assign]
    with capture_logs():
        await poller.work()
    assert [moment - heard[0] for moment in heard[:2]] == [0, 1.2]


async def test_nothing_is_tried_on_while_every_part_fails() -> None:
    class Away:
        async def waiting(self) -> WaitingWork:
            return WaitingWork(*[True] * 5)

        async def take(self, after: str = "") -> Any:
            raise Unavailable("the database is away")

        hear = take

        async def rouse(self) -> int:
            raise Unavailable("the database is away")

    poller, _ = polled(Away(), Away(), Away())  # type: ignore[arg-type]
    with capture_logs(), pytest.raises(Unavailable):
        await poller.work()
