"""Callbacks that could not be processed while the database answered: tried again apart from the others (C29.5).

Each is cut into smaller parts until what fails stands alone; so it holds up neither the callbacks behind it nor the
rest of its own body. What is postponed is still open in the table: a restart forgets nothing but the pauses.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import structlog

from recado.channels.core.events import CallbackEvent
from recado.domain.channels.source import Source
from recado.domain.core.clock import Clock
from recado.domain.core.errors import Unavailable
from recado.domain.dispatch.retry import backoff
from recado.engine.periodic import Periodic
from recado.storage.core.connections.failures import worth_repeating
from recado.storage.core.connections.postgres import Database
from recado.storage.messages import receipts

log = structlog.get_logger()

ENV: Final = "live"  # the sandbox sends no callbacks
LOOK_EVERY = 1.0  # seconds
FIRST_PAUSE, LONGEST_PAUSE = 5.0, 300.0  # seconds between tries of one callback
CUT_IN: Final = 8
MOST_UNREAD: Final = 10
"""Failures after which a callback that cannot be read in time is set aside."""
MOST: Final = 100
"""Callbacks that may be postponed at once: when more fail it is not they that are at fault."""


Read = Callable[[Mapping[str, Any]], Awaitable[tuple[Sequence[CallbackEvent], str | None]]]
"""The events of a callback, and what was wrong with the rest of it."""


@dataclass(slots=True)
class _Postponed:
    """`due`: monotonic; `parts`: of its events, by their places, those that are not applied yet; None: all.

    `unread`: times in succession that it could not be read.
    """

    due: float
    failures: int = 0
    unread: int = 0
    parts: deque[range] | None = None
    set_aside: int = 0  # events that no other try would repair
    failure: str | None = None  # the kind of their error

    def give_up(self, error: Exception) -> None:
        self.set_aside += 1
        self.failure = type(error).__name__


class PostponedCallbacks:
    """Works them off one after another, each after its pause."""

    def __init__(
        self,
        db: Database,
        *,
        clock: Clock,
        read: Read,
        apply: Callable[[Source, Sequence[CallbackEvent]], Awaitable[None]],
        answers: Callable[[], Awaitable[None]],
    ) -> None:
        """`apply`: some events of one callback, in a transaction.

        `answers` raises while the database is away, or does not write.
        """
        self._db = db
        self._clock = clock
        self._read = read
        self._apply = apply
        self._answers = answers
        self._stopping = False
        self._postponed: dict[int, _Postponed] = {}
        self._worker = Periodic("postponed callbacks", LOOK_EVERY, self.work, clock)

    async def start(self) -> None:
        self._stopping = False
        await self._worker.start()

    async def stop(self) -> None:
        """The part under way ends."""
        self._stopping = True
        await self._worker.stop()
        self._postponed.clear()

    @property
    def count(self) -> int:
        """How many stand aside now."""
        return len(self._postponed)

    @property
    def ids(self) -> list[int]:
        """Of the callbacks that are postponed now."""
        return list(self._postponed)

    def take(self, callback_id: int, error: Exception) -> None:
        """Postpone a callback that failed by itself. Raises the error again when too many are postponed already."""
        if len(self._postponed) >= MOST:
            raise error
        self._postponed[callback_id] = held = _Postponed(self._clock.monotonic())
        if worth_repeating(error):
            self._pause(callback_id, held, error)
        self._worker.hint()

    async def work(self) -> None:
        """Try those whose pause is over."""
        now = self._clock.monotonic()
        for callback_id in [each for each, held in self._postponed.items() if held.due <= now]:
            if not self._stopping:
                await self._try(callback_id, self._postponed[callback_id])

    async def _try(self, callback_id: int, held: _Postponed) -> None:
        row = await receipts.open_callback(self._db, callback_id)
        if row is None or await self._through(row, held):
            del self._postponed[callback_id]

    async def _through(self, row: Mapping[str, Any], held: _Postponed) -> bool:
        """Apply what is left of a callback; False when it has to wait once more."""
        try:
            events, unread = await self._read(row)
        except Unavailable as error:  # of what reads it, which may be busy
            held.unread += 1
            if held.unread < MOST_UNREAD:
                self._pause(row["id"], held, error)
                return False
            events, unread = [], None
            held.give_up(error)
        except Exception as error:  # noqa: BLE001 - it is this callback's alone
            events, unread = [], None
            held.give_up(error)
        else:
            held.unread = 0
        if held.parts is None:
            held.parts = deque(_cut(range(len(events))))
        while held.parts:
            if self._stopping:
                return False
            part = held.parts[0]
            try:
                await self._apply(source_of(row), events[part.start : part.stop])
            except Exception as error:  # noqa: BLE001 - it is this part's alone
                repeat = worth_repeating(error)
                if repeat:
                    await self._answers()  # else the part is not to blame, and stays as it is
                held.parts.popleft()
                if repeat:  # the other parts come first
                    held.parts.extend(_cut(part))
                    self._pause(row["id"], held, error)
                    return False
                if len(part) > 1:
                    held.parts.extendleft(reversed(_cut(part)))
                else:
                    held.give_up(error)
            else:
                held.parts.popleft()
        await receipts.callbacks_processed(self._db, [(row["id"], held.failure or unread)], self._clock.now())
        if held.set_aside:
            log.error("callback_set_aside", callback=row["id"], error=held.failure, events=held.set_aside)
        else:
            log.info("callback_worked_off", callback=row["id"], failures=held.failures)
        return True

    def _pause(self, callback_id: int, held: _Postponed, error: Exception) -> None:
        held.failures += 1
        pause = backoff(held.failures, FIRST_PAUSE, LONGEST_PAUSE)
        held.due = self._clock.monotonic() + pause
        log.warning(
            "callback_postponed",
            callback=callback_id,
            error=type(error).__name__,
            failures=held.failures,
            seconds=pause,
            postponed=len(self._postponed),
        )


def _cut(part: range) -> list[range]:
    """A part in up to `CUT_IN` smaller ones, in their order."""
    size = max(1, -(-len(part) // CUT_IN))
    return [range(start, min(start + size, part.stop)) for start in range(part.start, part.stop, size)]


def source_of(row: Mapping[str, Any]) -> Source:
    """Where a stored callback came from."""
    return Source(row["channel"], row["adapter"], ENV)
