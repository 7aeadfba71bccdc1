"""Files are closed by threads: a large one without a name would hold the event loop meanwhile (C31)."""

import asyncio
import threading
from collections.abc import Iterator
from io import BytesIO, FileIO
from pathlib import Path
from typing import Any

import pytest

from recado.storage.core.shares.fair_threads import OF_ONE, FairThreads


class Watched(FileIO):
    """Knows who closed it."""

    by: threading.Thread | None = None

    def close(self) -> None:
        if self.by is None:
            self.by = threading.current_thread()
        super().close()


@pytest.fixture
async def threads() -> Any:
    threads = FairThreads("tested")
    await threads.start()
    yield threads
    await threads.stop()


async def test_a_file_is_closed_in_a_thread(threads: FairThreads, tmp_path: Path) -> None:
    file: Any = Watched(tmp_path / "file", "w")
    await threads.close("org_1", file)
    assert file.closed
    assert file.by not in {None, threading.main_thread()}


async def test_a_file_is_closed_also_when_the_threads_have_ended(tmp_path: Path) -> None:
    file: Any = Watched(tmp_path / "file", "w")
    await FairThreads("tested").close("org_1", file)
    assert file.closed


async def test_a_system_that_gives_no_thread_for_a_while_costs_no_place(
    threads: FairThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", refused)
        for _ in range(OF_ONE):
            with pytest.raises(RuntimeError):
                await threads.run("org_1", int)
    async with asyncio.timeout(60):
        assert await threads.run("org_1", int, "7") == 7


async def test_what_is_in_memory_is_closed_at_once(threads: FairThreads) -> None:
    file = BytesIO(b"few")
    closing = threads.close("org_1", file)
    with pytest.raises(StopIteration):
        closing.send(None)
    assert file.closed


async def test_work_that_raises_what_no_future_takes_fails_and_its_place_is_free(threads: FairThreads) -> None:
    nothing: Iterator[int] = iter(())
    async with asyncio.timeout(60):
        for _ in range(OF_ONE + 1):
            with pytest.raises(RuntimeError) as failed:
                await threads.run("org_1", next, nothing)
            assert isinstance(failed.value.__cause__, StopIteration)
