"""An adapter in front of a provider that misbehaves."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from tests.channels.conformance.tried import Tried

from recado.engine.clock import VirtualClock

Start = Callable[..., Awaitable[Any]]


@pytest.fixture
async def started(clock: VirtualClock) -> AsyncIterator[Start]:
    """Make and start the adapter for a base address."""
    adapters: list[Any] = []

    async def start(tried: Tried, url: str, timeout: float = 5.0) -> Any:
        adapter = tried.make(url, clock, timeout)
        await adapter.start()
        adapters.append(adapter)
        return adapter

    yield start
    for adapter in adapters:
        await adapter.stop()
