"""Named events of the runtime that tests wait for, so that no test sleeps. In production nothing listens (`SILENT`)."""

import asyncio
from collections import deque
from typing import Final, Protocol

_KEPT = 10_000


class Emitter(Protocol):
    """Where the runtime and its users announce what just happened."""

    def emit(self, name: str, subject: str = "") -> None:
        """Announce event `name` about `subject` (a path or a service's name, never message content)."""


class _Silent:
    __slots__ = ()

    def emit(self, name: str, subject: str = "") -> None:
        """Nobody listens."""


SILENT: Final[Emitter] = _Silent()


class Signals:
    """Remembers events until a test has waited for them, so that an event cannot slip by before the wait begins."""

    def __init__(self) -> None:
        self._seen: deque[tuple[str, str]] = deque(maxlen=_KEPT)
        self._waiting: list[tuple[str, str | None, asyncio.Future[str]]] = []

    def emit(self, name: str, subject: str = "") -> None:
        """Wake the first waiter that expects this event, else keep it for a later one."""
        for index, (wanted, about, future) in enumerate(self._waiting):
            if wanted == name and about in (None, subject) and not future.done():
                del self._waiting[index]
                future.set_result(subject)
                return
        self._seen.append((name, subject))

    async def wait(self, name: str, subject: str | None = None, *, limit: float = 10.0) -> str:
        """Return the subject of the oldest event `name` not yet waited for; TimeoutError after `limit` real seconds."""
        for index, (seen, about) in enumerate(self._seen):
            if seen == name and subject in (None, about):
                del self._seen[index]
                return about
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        entry = (name, subject, future)
        self._waiting.append(entry)
        try:
            async with asyncio.timeout(limit):
                return await future
        finally:
            if entry in self._waiting:
                self._waiting.remove(entry)
