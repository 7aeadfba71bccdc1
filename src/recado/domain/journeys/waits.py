"""When the wait of a step ends: after some minutes, or when the local clock shows an hour (C9.4.1, C9.9)."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from recado.domain.journeys.steps import WaitForStep, WaitUntilStep

LONGEST_WAIT: Final = timedelta(days=90)
HURRIED_WAIT: Final = timedelta(seconds=1)
"""How long a wait lasts in a test that leaves waits out."""

_MINUTE: Final = timedelta(minutes=1)
_HOUR: Final = timedelta(hours=1)
_DAY: Final = timedelta(days=1)


def wait_end(step: WaitForStep | WaitUntilStep, zone: ZoneInfo, arrived: datetime, *, hurried: bool) -> datetime:
    """When (UTC) the wait of an execution ends that came to the step at `arrived`; that moment: it does not wait.

    `hurried`: in a test that leaves waits out.
    """
    match step:
        case WaitForStep():
            end = arrived + timedelta(minutes=step.minutes)
        case WaitUntilStep():
            end = _next_minute(step, zone, arrived)
    return min(end, arrived + (HURRIED_WAIT if hurried else LONGEST_WAIT))


def _next_minute(step: WaitUntilStep, zone: ZoneInfo, arrived: datetime) -> datetime:
    """The first matching minute that is not over at `arrived`: its begin, or `arrived` within it."""
    # A minute of the day before may have been moved into this one; each weekday comes again within a week.
    day = arrived.astimezone(zone).date() - _DAY
    while True:
        if not step.weekdays or day.isoweekday() in step.weekdays:
            begin = local_moment(day, step.hour, zone)
            if arrived < begin + _MINUTE:
                return max(begin, arrived)
        day += _DAY


def local_moment(day: date, hour: time, zone: ZoneInfo) -> datetime:
    """When (UTC) the clock of the zone shows this hour on this day.

    A time that comes twice counts the first time. One that the clock jumps over is taken an hour later; so is that one,
    where the jump is longer.
    """
    local = datetime.combine(day, hour)
    while True:
        moment = local.replace(tzinfo=zone).astimezone(UTC)
        if moment.astimezone(zone).replace(tzinfo=None) == local:
            return moment
        local += _HOUR
