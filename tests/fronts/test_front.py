"""A front that is to send and to end at once: it never runs that far, so all around it is made here."""

import asyncio
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from recado.engine.clock import SystemClock
from recado.fronts import frames
from recado.fronts.front import Front

JOIN = [2, datetime(2026, 3, 10, tzinfo=UTC).isoformat()]


class Around:
    """What a front prepares to send with: a database that does not answer, and the owner, who hears it."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.given_up = False
        self.heard: list[str] = []
        self.front = Front(None, SystemClock(), SystemClock.elapsed)  # type: ignore[arg-type]
        made: Any = SimpleNamespace(
            system=SimpleNamespace(own=lambda *_: None),
            begun=SimpleNamespace(open_beside=lambda *_: None),
            installation=SimpleNamespace(database=self),
        )
        itself: Any = self
        self.front._made, self.front._link = made, itself

    async def execute(self, *_: object) -> None:
        self.asked.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.given_up = True
            raise

    def give(self, kind: str, _: object = None) -> bool:
        self.heard.append(kind)
        return True


@pytest.mark.parametrize("how", [frames.DRAIN, frames.LEAVE])
async def test_one_that_ends_while_it_prepares_to_send_does_not_begin_to(how: str) -> None:
    around = Around()
    around.front._join(JOIN)
    async with asyncio.timeout(60):
        await around.asked.wait()
        if how == frames.DRAIN:
            around.front._drain(None)
        await around.front._stop_sending()
    assert around.given_up
    assert around.heard == []


async def test_one_that_ends_already_does_not_prepare_to_send() -> None:
    around = Around()
    around.front._drain(None)
    running = asyncio.all_tasks()
    around.front._join(JOIN)
    assert asyncio.all_tasks() == running
