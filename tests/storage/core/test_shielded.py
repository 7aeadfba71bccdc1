"""Work that is not broken off, however often its caller is cancelled."""

import asyncio

import pytest

from recado.storage.core.shielded import to_its_end


@pytest.mark.parametrize("times", [1, 2, 3])
async def test_the_work_ends_however_often_its_caller_is_cancelled(times: int) -> None:
    begun, leave, hurried, ended = asyncio.Event(), asyncio.Event(), asyncio.Semaphore(0), []

    async def work() -> None:
        begun.set()
        await leave.wait()
        ended.append(True)

    caller = asyncio.create_task(to_its_end(work(), hurried.release))
    await begun.wait()
    caller.cancel()
    await hurried.acquire()
    for _ in range(times - 1):
        caller.cancel()
        for _ in range(3):  # turns of the loop, in which it is told
            turn = asyncio.get_running_loop().create_future()
            asyncio.get_running_loop().call_soon(turn.set_result, None)
            await turn
        assert not caller.done()
    leave.set()
    await asyncio.wait([caller])
    assert caller.cancelled()
    assert ended == [True]
