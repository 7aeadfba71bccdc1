"""The pace at which a caller's bodies are read (C31)."""

from datetime import UTC, datetime

import pytest

from recado.engine.clock import VirtualClock
from recado.http.wire import body_pace
from recado.http.wire.body_pace import AT_ONCE, BYTES_A_SECOND, BodyPace


@pytest.fixture
async def clock() -> VirtualClock:
    return VirtualClock(datetime(2026, 3, 1, tzinfo=UTC))


async def test_the_largest_body_comes_at_once_and_what_follows_waits_for_the_pace(clock: VirtualClock) -> None:
    pace = BodyPace(clock)
    assert pace.take("a", AT_ONCE) == 0.0
    assert pace.take("a", BYTES_A_SECOND // 2) == pytest.approx(0.5)
    await clock.advance(1)
    assert pace.take("a", BYTES_A_SECOND // 2) == pytest.approx(0.0)
    await clock.advance(3_600)
    assert pace.take("a", AT_ONCE) == 0.0
    assert pace.take("a", 1) > 0.0


async def test_nobody_waits_for_another_caller(clock: VirtualClock) -> None:
    pace = BodyPace(clock)
    assert pace.take("a", 10 * AT_ONCE) > 0.0
    assert pace.take("b", AT_ONCE) == 0.0


async def test_who_is_ahead_is_remembered_however_many_others_come(
    clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(body_pace, "_MOST_CALLERS", 3)
    pace = BodyPace(clock)
    pace.take("a", 2 * AT_ONCE)
    for name in "bcdefg":
        pace.take(name, 1)
        await clock.advance(0.001)
    assert pace.take("a", 1) > 0.9
