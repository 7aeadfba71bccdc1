"""A server that is away again and again: told at most every ten seconds, and what is not told is counted."""

from datetime import UTC, datetime

import pytest
from structlog.typing import EventDict
from tests.captured import capture_logs

from recado.engine.clock import VirtualClock
from recado.storage.core.connections.outage import QUIET, Outage

BROKEN = ConnectionResetError("reset by peer")
LEVELS = {"database_away": "error", "database_back": "warning"}


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(datetime(2026, 1, 1, tzinfo=UTC))


@pytest.fixture
def outage(clock: VirtualClock) -> Outage:
    async def written() -> None: ...

    return Outage(clock, written)


def brief(entry: EventDict) -> tuple[str, float | None, int | None]:
    """The event, how long the server was away, and how many outages were not told before it."""
    assert entry["log_level"] == LEVELS[entry["event"]]
    return entry["event"], entry.get("seconds"), entry.get("left_out")


async def test_an_outage_is_told_once_and_its_end_once(outage: Outage, clock: VirtualClock) -> None:
    with capture_logs() as logs:
        for _ in range(3):
            outage.lost(BROKEN)
            await clock.advance(2 * QUIET)
        outage.over()
        outage.over()
    assert [brief(entry) for entry in logs] == [("database_away", None, 0), ("database_back", 6 * QUIET, None)]


async def test_connections_that_break_again_and_again_are_told_now_and_then_and_counted(
    outage: Outage, clock: VirtualClock
) -> None:
    with capture_logs() as logs:
        for _ in range(41):  # one every half second, for 20 s
            outage.lost(BROKEN)
            await clock.advance(0.25)
            outage.over()
            await clock.advance(0.25)
    pair = ("database_back", 0.2, None)
    assert [brief(entry) for entry in logs] == [
        ("database_away", None, 0), pair, ("database_away", None, 19), pair, ("database_away", None, 19), pair,
    ]  # fmt: skip


async def test_an_outage_that_begins_right_after_another_is_told_when_it_lasts(
    outage: Outage, clock: VirtualClock
) -> None:
    with capture_logs() as logs:
        outage.lost(BROKEN)
        outage.over()
        for _ in range(2):
            outage.lost(BROKEN)
            await clock.advance(QUIET)
        outage.over()
    assert [brief(entry) for entry in logs] == [
        ("database_away", None, 0), ("database_back", 0.0, None),
        ("database_away", None, 0), ("database_back", 2 * QUIET, None),
    ]  # fmt: skip
