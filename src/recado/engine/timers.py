"""Messages that an actor sends to itself later; they end with the incarnation that set them."""

from typing import TYPE_CHECKING, Any

from recado.domain.core.clock import TimerHandle
from recado.engine.mailbox import Envelope

if TYPE_CHECKING:
    from recado.engine.cell import Cell


class Timer:
    """One message to oneself at a later time."""

    __slots__ = ("_cell", "_handle", "_message")

    def __init__(self, cell: "Cell", seconds: float, message: Any) -> None:
        self._cell = cell
        self._message = message
        clock = cell.runtime.clock
        self._handle: TimerHandle = clock.call_at(clock.monotonic() + seconds, self._fire)

    def cancel(self) -> None:
        """Call it off; does nothing once it has fired or was cancelled."""
        self._handle.cancel()
        self._cell.timers.discard(self)

    def _fire(self) -> None:
        self._cell.timers.discard(self)
        self._cell.mailbox.put_urgent(Envelope(self._message))


class Timers:
    """The pending timers of one incarnation; takes no memory to speak of while there are none."""

    __slots__ = ("_pending",)

    def __init__(self) -> None:
        self._pending: set[Timer] | None = None

    def __bool__(self) -> bool:
        return bool(self._pending)

    def add(self, timer: Timer) -> Timer:
        """Remember a timer, to call it off with the incarnation."""
        if self._pending is None:
            self._pending = set()
        self._pending.add(timer)
        return timer

    def discard(self, timer: Timer) -> None:
        """Forget a timer that fired or was cancelled."""
        if self._pending is not None:
            self._pending.discard(timer)

    def cancel_all(self) -> None:
        """Call all off."""
        pending, self._pending = self._pending, None
        for timer in pending or ():
            timer.cancel()
