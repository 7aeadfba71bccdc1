"""An error in a loop of another thread that nobody awaited fails a test, and tells no frame."""

import asyncio
from collections.abc import Coroutine
from threading import Thread
from typing import Any

import pytest
from tests.loop_errors import LoopErrors


def run(*works: Coroutine[Any, Any, None]) -> LoopErrors:
    """Let these run in a loop of a thread of its own, where nobody waits for them."""
    errors = LoopErrors()

    async def all_of_them() -> None:
        loop = asyncio.get_running_loop()
        errors.watch(loop)
        await asyncio.wait([loop.create_task(work) for work in works])

    thread = Thread(target=asyncio.run, args=[all_of_them()])
    thread.start()
    thread.join(30)
    return errors


async def fail() -> None:
    raise ValueError("what nobody awaited")


async def fail_in_a_circle() -> None:
    """Only the collector finds the task, after the loop's end."""
    circle: list[object] = [asyncio.current_task()]
    circle.append(circle)
    await fail()


async def fail_in_a_callback() -> None:
    asyncio.get_running_loop().call_soon(lambda: [][0])
    await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("work", "told"),
    [
        (fail, "Task exception was never retrieved, exception ValueError, future Task of fail"),
        (fail_in_a_circle, "future Task of fail_in_a_circle"),
        (fail_in_a_callback, "exception IndexError, handle Handle"),
    ],
)
def test_what_nobody_awaited_is_told_at_the_end(work: Any, told: str) -> None:
    errors = run(work())
    with pytest.raises(AssertionError, match=told):
        errors.check()


def test_what_ends_well_is_no_failure() -> None:
    run(asyncio.sleep(0)).check()
