"""Signals: an event is seen once, whether it came before or after the wait began."""

import asyncio

import pytest

from recado.engine.signals import Signals


async def test_an_event_before_the_wait_is_seen_once():
    signals = Signals()
    signals.emit("ran", "a")
    assert await signals.wait("ran") == "a"
    with pytest.raises(TimeoutError):
        await signals.wait("ran", limit=0.01)


async def test_an_event_after_the_wait_began_is_seen():
    signals = Signals()
    waiting = asyncio.create_task(signals.wait("ran", "b"))
    await asyncio.sleep(0)
    signals.emit("ran", "a")
    signals.emit("ran", "b")
    assert await waiting == "b"
    assert await signals.wait("ran") == "a"


async def test_a_wait_that_gave_up_takes_no_later_event():
    signals = Signals()
    with pytest.raises(TimeoutError):
        await signals.wait("ran", limit=0.01)
    signals.emit("ran", "late")
    assert await signals.wait("ran") == "late"
