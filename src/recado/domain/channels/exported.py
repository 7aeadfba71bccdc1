"""Exports of messages: their columns, the period that one may ask for, and by what channels differ, as data (C18).

A channel that is to be exported is a row of `EXPORTED`: its operation and the command follow from that.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from recado.domain.channels import email, rcs
from recado.domain.channels.chatapp import CHATAPP
from recado.domain.channels.email import EMAIL
from recado.domain.channels.rcs import RCS
from recado.domain.channels.sms import SMS, reason_of
from recado.domain.core.errors import FieldError, field_refused, validation_error
from recado.domain.core.timestamps import to_the_millisecond
from recado.domain.messages.message import MessageStatus, code_in

LONGEST_PERIOD: Final = timedelta(hours=31 * 24)
USUAL_ROWS, MOST_ROWS = 500, 1_000
"""Of a page."""
COLUMNS: Final = (
    "id", "channel", "direction", "to", "status", "campaignId", "contactId", "contactExternalId", "metadata",
    "createdAt", "sentAt", "deliveredAt", "readAt", "failedAt", "reason", "segments", "deliveredVia", "subject",
)  # fmt: skip
"""What a row may show, in this order."""

_MILLISECOND: Final = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """The export of a channel. `scope`: what a caller needs; `what`: what its operation says of itself.

    `reason`: from the code that a message failed with, and its `lastError`; `reasons`: by states that have one each.
    `status`: as its records show a state, by when the message was sent.
    `details`: what a row shows of what the channel alone knows of a message, by the names of callers. `segmented`:
    whether a message left as segments, by that.
    """

    channel: str
    scope: str
    what: str
    reason: Callable[[str | None, str | None], str | None] = lambda code, error: code
    reasons: Mapping[str, str] = field(default_factory=dict)
    status: Callable[[str, datetime | None], str] = lambda status, sent_at: status
    details: tuple[str, ...] = ()
    segmented: Callable[[Mapping[str, Any]], bool] = lambda details: False


EXPORTED: Final = (
    Exported(
        channel=CHATAPP,
        scope="messages:read",
        what="chat-app messages",
        reason=lambda code, error: code or code_in(error),
    ),
    Exported(
        channel=SMS,
        scope="sms:read",
        what="SMS",
        reason=lambda code, error: reason_of(code),
        segmented=lambda details: True,
    ),
    Exported(
        channel=RCS,
        scope="rcs:read",
        what="RCS messages",
        reason=lambda code, error: rcs.reason_of(code),
        status=rcs.status_shown,
        details=("deliveredVia",),
        segmented=lambda details: details.get("deliveredVia") == SMS,
    ),
    Exported(
        channel=EMAIL,
        scope="email:read",
        what="e-mails",
        reason=lambda code, error: email.reason_of(code),
        reasons={MessageStatus.COMPLAINED: email.EmailReason.COMPLAINT},
        details=("subject",),
    ),
)


def period(start: datetime, end: datetime) -> tuple[datetime, datetime]:
    """From inclusive ends to [first, before): both count to the millisecond, as `createdAt` does.

    Raises VALIDATION_ERROR where it ends before it begins, PERIOD_TOO_LONG beyond 31 times 24 hours.
    """
    first, last = to_the_millisecond(start), to_the_millisecond(end)
    if first > last:
        raise validation_error([FieldError("from", "INVALID_PERIOD", "`from` must not be later than `to`.")])
    if last - first > LONGEST_PERIOD:
        raise field_refused("PERIOD_TOO_LONG", "to", f"An export covers at most {LONGEST_PERIOD.days} days.")
    return first, min(last, datetime.max.replace(tzinfo=end.tzinfo) - _MILLISECOND) + _MILLISECOND


def periods(start: datetime, end: datetime) -> Iterator[tuple[datetime, datetime]]:
    """Periods with inclusive ends, each of which one export may ask for: all of [start, end], newest first."""
    start, end = to_the_millisecond(start), to_the_millisecond(end)
    while start <= end:
        first = max(start, end - LONGEST_PERIOD)
        yield first, end
        end = first - _MILLISECOND
