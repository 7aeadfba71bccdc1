"""Whatever is due is taken along, a turn of each organization after the other, until nothing is left (C9.15)."""

from datetime import UTC, datetime

from recado.actors.journeys.execution_poller import ExecutionPoller
from recado.engine.clock import VirtualClock
from recado.services.journeys.execution_turns import Turn


class Taking:
    """Turns with so many executions, in order. `after`: with which each of them was asked for."""

    def __init__(self, *turns: Turn, overslept: int = 0, signals: int = 0) -> None:
        self._turns = list(turns)
        self._signals = signals
        self._overslept = overslept
        self.after: list[str] = []

    async def hear(self) -> int:
        self._signals, found = max(0, self._signals - 200), min(self._signals, 200)
        return found

    async def rouse(self) -> int:
        self._overslept, found = max(0, self._overslept - 200), min(self._overslept, 200)
        return found

    async def take(self, after: str = "") -> Turn:
        self.after.append(after)
        return self._turns.pop(0) if self._turns else Turn(0)


def polled(taking: Taking) -> tuple[ExecutionPoller, VirtualClock]:
    clock = VirtualClock(datetime(2026, 11, 23, tzinfo=UTC))
    return ExecutionPoller(taking, clock=clock), clock  # type: ignore[arg-type]


async def test_a_look_ends_when_no_organization_has_anything_due() -> None:
    taking = Taking(Turn(200, "org_5"), Turn(0), Turn(3), overslept=500, signals=300)
    poller, _ = polled(taking)
    await poller.work()
    assert taking.after == ["", "org_5", "", ""]
    assert (await taking.rouse(), await taking.hear()) == (0, 0)


async def test_it_looks_each_second_and_at_a_hint() -> None:
    taking = Taking()
    poller, clock = polled(taking)
    await poller.start()
    await clock.advance(0)
    assert len(taking.after) == 1
    await clock.advance(3)
    assert len(taking.after) == 4
    poller.hint()
    await clock.advance(0)
    assert len(taking.after) == 5
    await poller.stop()
