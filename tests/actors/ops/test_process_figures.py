"""Figures of several processes, shown as one (C34.1)."""

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime

import orjson
import pytest

from recado.actors.ops.process_figures import BatchFigures, ProcessFigures
from recado.engine.clock import VirtualClock
from recado.storage.core.connections.batch import Batcher

NOW = datetime(2026, 3, 10, tzinfo=UTC)


async def commit(rows: Sequence[int]) -> list[int]:
    return list(rows)


@pytest.fixture
async def batcher() -> AsyncIterator[Batcher[int, int]]:
    found: Batcher[int, int] = Batcher("a batch of this test", commit, clock=VirtualClock(NOW))
    await found.start()
    yield found
    await found.stop()


def test_what_two_processes_have_in_memory_is_counted_together() -> None:
    here = ProcessFigures({("chatapp", "live"): (2.5, 3, 1)}, Counter(accepted=4), {"Lane": (10, 7, 5)})
    there = ProcessFigures(
        {("chatapp", "live"): (1.0, 2, 0), ("chatapp", "test"): (1.0, 0, 0)},
        Counter(accepted=1, departures=2),
        {"Lane": (5, 9, 9), "Other": (1, 0, 0)},
    )
    here.add(ProcessFigures.said_by(orjson.loads(orjson.dumps(there.said))))
    assert here.accounts == {("chatapp", "live"): (3.5, 5, 1), ("chatapp", "test"): (1.0, 0, 0)}
    assert here.waiting == {"accepted": 5, "departures": 2}
    assert here.actors == {"Lane": (15, 16, 9), "Other": (1, 0, 0)}


async def test_each_commit_of_another_process_is_counted_once(batcher: Batcher[int, int]) -> None:
    def rows(figures: BatchFigures) -> int:
        return {name: rows for name, rows, _, _ in figures.all()}.get(batcher.name, 0)

    there, here = BatchFigures(), BatchFigures()
    await batcher.put(1)
    lost = there.taken()
    there.add(lost)  # nobody took them
    await batcher.put(2)
    batcher_of_here = rows(here)  # the same batch: in a test both are this process
    for taken in (there.taken(), there.taken()):
        here.add(orjson.loads(orjson.dumps(taken)))
    assert rows(here) - batcher_of_here == 2
    await batcher.put(3)
    here.add(there.taken())
    assert rows(here) - batcher_of_here == 4  # its own third row beside those of there
