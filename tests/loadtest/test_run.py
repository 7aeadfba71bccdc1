"""What the load test does when it is told to stop before it sends."""

import asyncio
import os
import signal

import pytest

from recado.loadtest.run import Interrupts


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_during_the_preparation_ends_the_command_so_that_it_can_put_back(number: signal.Signals) -> None:
    put_back = asyncio.Event()

    async def command() -> None:
        interrupts = Interrupts()
        try:
            os.kill(os.getpid(), number)
            await asyncio.get_running_loop().create_future()
        finally:
            assert interrupts.count == 1
            put_back.set()

    with pytest.raises(asyncio.CancelledError):
        await asyncio.create_task(command())
    assert put_back.is_set()
    asyncio.get_running_loop().remove_signal_handler(number)
