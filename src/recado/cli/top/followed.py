"""The stream of the service, followed: after its end or an outage it is asked for again, from where it was."""

import asyncio
import time
from collections.abc import Callable
from typing import Any, Final

import aiohttp
import orjson

from recado.cli.api_calls import NO_ANSWER, CallRefused, accept
from recado.cli.errors import CommandError
from recado.cli.top.server_events import ServerEvents
from recado.cli.unreachable import unreachable

QUIET: Final = 20.0  # seconds without a word, of a stream that says one every 15 at least
AWAY: Final = 5.0  # seconds without a connection that are nothing to tell: the service ends each after some minutes
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 15.0  # seconds
_LATER: Final = frozenset({429, 502, 503, 504})
_TIMES: Final = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=2 * QUIET)

Told = Callable[[str, Any], None]
"""Called with the kind of an event and what it says; for the kind `""` there is no news but a change of the stream."""


class FollowedStream:
    """`heard_at`: when the service last said anything, by the monotonic clock. `missing`: why it says nothing now."""

    def __init__(
        self, session: aiohttp.ClientSession, url: str, told: Told, *, now: Callable[[], float] = time.monotonic
    ) -> None:
        self.heard_at: float | None = None
        self.missing: str | None = None
        self._session = session
        self._url = url
        self._told = told
        self._now = now
        self._last_id: str | None = None

    def silent(self) -> float | None:
        """For how many seconds what is shown may be out of date; None while it is not."""
        if self.heard_at is None:
            return None
        silent = self._now() - self.heard_at
        return silent if silent > (QUIET if self.missing is None else AWAY) else None

    async def follow(self) -> None:
        """Follow it until cancelled.

        Raises CommandError where the service cannot be reached at all, and at any time where it refuses this key.
        """
        pause = _FIRST_PAUSE
        while True:
            began = self._now()
            try:
                wait = await self._listen()
                self.missing = "the connection has ended"
            except CallRefused as refused:
                if self.heard_at is None or refused.status not in _LATER:
                    raise
                self.missing, wait = str(refused), refused.retry_after
            except NO_ANSWER as error:
                missing = unreachable(self._url, error)
                if self.heard_at is None:
                    raise missing from error
                self.missing, wait = str(missing), None
            self._told("", None)
            if self._now() - began > _LONGEST_PAUSE:
                pause = _FIRST_PAUSE
            await asyncio.sleep(max(pause, wait or 0.0))
            pause = min(_LONGEST_PAUSE, 2 * pause)

    async def _listen(self) -> float | None:
        """Read it to its end; the seconds after which the service wants to be asked again."""
        events = ServerEvents(self._last_id)
        headers = {} if self._last_id is None else {"Last-Event-ID": self._last_id}
        async with self._session.get(self._url, headers=headers, timeout=_TIMES) as answer:
            await accept(answer)
            if answer.content_type != "text/event-stream":
                raise CommandError(f"{self._url} answers with {answer.content_type}: is --url the address of Recado?")
            async for piece in answer.content.iter_any():
                self.heard_at, self.missing = self._now(), None
                for kind, data in events.feed(piece):
                    self._told(kind, orjson.loads(data))
                self._last_id = events.last_id
        return events.retry
