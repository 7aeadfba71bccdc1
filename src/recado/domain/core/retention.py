"""How long what is stored is kept (C32)."""

from calendar import monthrange
from datetime import datetime, timedelta
from typing import Final

MESSAGES_MONTHS: Final = 24
CONTENT_MONTHS: Final = 12
"""`payload` and `templateVars` of a message: without them it is told of, but cannot be sent again."""
AUDIT_MONTHS: Final = 60
EVENTS_MONTHS: Final = 24
"""Of customer events, by when they occurred."""
EXECUTIONS_MONTHS: Final = 24
"""Of executions of journeys, from their end."""
CONFIRMED_AFTER: Final = timedelta(days=1)
"""What was stored so long ago, or earlier, speaks for the clock: its own present does not."""
REACHED: Final = timedelta(days=30)
"""Whom a shared sender has sent to: so long an answer from there is the organization's that did (C28.1)."""
WINDOWS: Final = timedelta(hours=25)
"""Rows of which only the last 24 hours count; an hour more, for clocks that differ."""


def months_before(at: datetime, months: int) -> datetime:
    """The same moment so many months ago; the last day of a month that is shorter."""
    year, month = divmod(at.year * 12 + at.month - 1 - months, 12)
    return at.replace(year=year, month=month + 1, day=min(at.day, monthrange(year, month + 1)[1]))
