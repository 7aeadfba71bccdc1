"""What a call to another server comes to, and how long it asks us to wait."""

from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

MAX_RETRY_AFTER = 21_600.0  # seconds; a typing error at the provider must not stop a number for years
MIN_RETRY_AFTER = 1.0  # seconds; a fraction that is rounded down to 0 must not let a number go on at full pace


@dataclass(frozen=True, slots=True)
class Answer:
    """It answered. `retry_after`: the one header that matters; `complete`: the body arrived whole and not too long."""

    status: int
    retry_after: str | None
    body: bytes
    complete: bool

    @property
    def ok(self) -> bool:
        """Whether it is a 2xx."""
        return 200 <= self.status < 300


@dataclass(frozen=True, slots=True)
class NotSent:
    """Not one byte of the request left: no connection was had."""


@dataclass(frozen=True, slots=True)
class Lost:
    """A connection was had and no answer came: the request may have been processed."""


def retry_after(value: str | None, now: datetime) -> float | None:
    """Seconds of a Retry-After header, which holds seconds or an HTTP date; None when absent or unreadable."""
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit() and len(text) <= 12:
        return _bounded(float(text))
    try:
        date = parsedate_to_datetime(text)
        if date.tzinfo is None:  # "-0000": UTC by its grammar
            date = date.replace(tzinfo=UTC)
        return _bounded((date - now).total_seconds())
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def _bounded(seconds: float) -> float:
    return min(max(seconds, MIN_RETRY_AFTER), MAX_RETRY_AFTER)
