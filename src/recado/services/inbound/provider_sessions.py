"""What providers say on connections that we hold: stored as callbacks are, and worked off among them (C29.1, C29.5)."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final

import structlog

from recado.channels.core.adapters import SessionSource
from recado.domain.core.clock import Clock

log = structlog.get_logger()

PAUSE: Final = 1.0  # seconds until a source that failed is listened to again

Take = Callable[[str, str, bytes, Mapping[str, str]], Awaitable[None]]
"""Stores what came of a channel from an adapter, with the headers that it is read with: `Callbacks.take`."""


class ProviderSessions:
    """Listens to each source for as long as the service runs."""

    def __init__(self, sources: Sequence[tuple[str, SessionSource]], *, take: Take, clock: Clock) -> None:
        """`sources`: each with its channel."""
        self._sources = sources
        self._take = take
        self._clock = clock
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        if not self._tasks:
            loop = asyncio.get_running_loop()
            self._tasks = [
                loop.create_task(self._listen(channel, source), name=f"session {channel} {source.name}")
                for channel, source in self._sources
            ]

    async def stop(self) -> None:
        """What is not stored by now the provider brings again."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _listen(self, channel: str, source: SessionSource) -> None:
        while True:
            try:
                await source.run(partial(self._store, channel, source.name))
            except Exception as error:  # noqa: BLE001 - nobody else would listen to it again
                log.error("provider_session_failed", channel=channel, adapter=source.name, error=type(error).__name__)
            await self._clock.sleep(PAUSE)

    async def _store(self, channel: str, adapter: str, body: bytes) -> None:
        await self._take(channel, adapter, body, {})
