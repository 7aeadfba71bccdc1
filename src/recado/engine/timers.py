"""Messages that an actor sends to itself later; they end with the incarnation that set them."""

from typing import Any

from recado.domain.core.clock import Clock, TimerHandle
from recado.engine.mailbox import Envelope, Mailbox


class Timer:
    """One message to oneself at a later time."""

    __slots__ = ("_handle", "_mailbox", "_message", "_pending")

    def __init__(self, pending: "Timers", mailbox: Mailbox, clock: Clock, seconds: float, message: Any) -> None:
        self._pending = pending
        self._mailbox = mailbox
        self._message = message
        self._handle: TimerHandle = clock.call_at(clock.monotonic() + seconds, self._fire)

    def cancel(self) -> None:
        """Call it off; does nothing once it has fired or was cancelled."""
        self._handle.cancel()
        self._pending.discard(self)

    def _fire(self) -> None:
        self._pending.discard(self)
        self._mailbox.put_urgent(Envelope(self._message))


class Timers:
    """The pending timers of one incarnation; takes no memory to speak of while there are none."""

    __slots__ = ("_pending",)

    def __init__(self) -> None:
        self._pending: set[Timer] | None = None

    def __bool__(self) -> bool:
        return bool(self._pending)

    def add(self, mailbox: Mailbox, clock: Clock, seconds: float, message: Any) -> Timer:
        """Put `message` into the mailbox after `seconds`, unless the incarnation ends before."""
        timer = Timer(self, mailbox, clock, seconds, message)
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
