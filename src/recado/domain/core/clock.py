"""The one source of time: everything that waits or stamps takes a `Clock`, so that a test runs 90 days in an instant.

Only the protocol lives here; the system's and the virtual clock are in `recado.engine.clock`.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Protocol


class TimerHandle(Protocol):
    """A timer that has been set and may be called off."""

    def cancel(self) -> None:
        """Call the timer off; does nothing once it has fired or was cancelled."""


class Clock(Protocol):
    """Wall-clock time, monotonic time and waiting."""

    def now(self) -> datetime:
        """The present instant, aware, in UTC; never earlier than before."""

    @property
    def set_by(self) -> timedelta:
        """How far what the machine shows lies ahead of `now()`: zero, unless somebody set it."""

    def monotonic(self) -> float:
        """Seconds from an arbitrary origin; never goes back. Differences only are meaningful."""

    async def sleep(self, seconds: float) -> None:
        """Wait for `seconds`; zero or less only lets others run."""

    def call_at(self, when: float, callback: Callable[[], object]) -> TimerHandle:
        """Call `callback` on the event loop at `when` (monotonic seconds); at once when that has passed."""
