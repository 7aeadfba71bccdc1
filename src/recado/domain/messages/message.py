"""A message's life: its states and priorities, why it waits and why it failed (C14.5, C15.4).

Which states a message of a channel knows, and what moves it, is the table of the channel's policy (`channels/`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final


class GenericStatus(StrEnum):
    """The states of the generic record, which callers see of messages of any channel (C15.1)."""

    QUEUED = "queued"
    SENDING = "sending"
    SENT = "sent"
    DELIVERED = "delivered"
    READ = "read"
    FAILED = "failed"
    ARCHIVED = "archived"


class MessageStatus(StrEnum):
    """The states of messages. Which of them a channel knows is its machine's to say, and how they show its policy's."""

    QUEUED = "queued"  # accepted and durable; its sender's lane takes it, or TTL, opt-out and withdrawal end it
    SENDING = (
        "sending"  # claimed; the provider's answer moves it on, the rescuer after a crash, the end of a day at last
    )
    SENT = "sent"  # the provider has it; reports move it
    DELIVERED = "delivered"  # on the recipient's device, or received by us; a report or an opening session moves it
    READ = "read"
    FAILED = "failed"  # nothing more happens by itself, but for a late report of an unknown outcome
    ARCHIVED = "archived"
    UNDELIVERED = "undelivered"  # the provider took it, and it was not brought to the recipient
    BOUNCED = "bounced"  # the recipient's server gave it back
    COMPLAINED = "complained"  # the recipient called it unwanted


REACHED_AT: Final[Mapping[MessageStatus, str]] = {
    MessageStatus.SENT: "sent_at",
    MessageStatus.DELIVERED: "delivered_at",
    MessageStatus.READ: "read_at",
    MessageStatus.FAILED: "failed_at",
    MessageStatus.ARCHIVED: "archived_at",
    MessageStatus.UNDELIVERED: "failed_at",
    MessageStatus.BOUNCED: "failed_at",
    MessageStatus.COMPLAINED: "delivered_at",
}
"""The column that says when a message came to a state. States that show as the same one share it, as indexes do."""


ARRIVED: Final = frozenset(state for state, at in REACHED_AT.items() if at in ("delivered_at", "read_at"))
"""The states in which the recipient has it."""
FAILURES: Final = frozenset(state for state, at in REACHED_AT.items() if at == "failed_at")
"""The states in which it did not get there, or may not have."""


class Priority(StrEnum):
    """What a caller asks for; its class in the queue follows from it."""

    CRITICAL = "critical"
    NORMAL = "normal"
    BULK = "bulk"


CLASSES: Final = (Priority.CRITICAL, Priority.NORMAL, Priority.BULK)
"""The priorities in the order of their class: the class is the index."""

CLASS_OF: Final[dict[Priority, int]] = {Priority.CRITICAL: 0, Priority.NORMAL: 1, Priority.BULK: 2}
CRITICAL: Final = 0
NORMAL: Final = 1
BULK: Final = 2


class MessageEvent(StrEnum):
    """What happens to a message. The comments name who says so."""

    CLAIM = "claim"  # the lane, in the commit before the provider call
    ACCEPTED = "accepted"  # the provider's answer
    RETURN_TO_QUEUE = (
        "return_to_queue"  # transient refusal, "slow down", no connection; the rescuer, for a call never begun
    )
    REFUSED = "refused"  # permanent refusal, or the fifth transient one
    UNANSWERED = (
        "unanswered"  # the call may have been processed; the message stays and waits for a report, or its repeat
    )
    REPEAT = "repeat"  # the lane: an unanswered message, to an adapter that declares itself idempotent
    OUTCOME_UNKNOWN = "outcome_unknown"  # 24 h after an unanswered call without a report
    EXPIRED = "expired"  # its time to live ran out
    WINDOW_CLOSED = "window_closed"  # found closed at dispatch
    TEMPLATE_UNAVAILABLE = "template_unavailable"  # its template was rejected, disabled or deleted
    OPTED_OUT = "opted_out"
    SET_ASIDE = "set_aside"  # its actor failed three times with it in hand
    WITHDRAWN = "withdrawn"  # archived while queued, its batch cancelled, its contact deleted or opted out
    ARCHIVE = "archive"
    REPORT_SENT = "report_sent"  # any report on a message whose send is not settled: the provider has it
    REPORT_DELIVERED = "report_delivered"
    REPORT_READ = "report_read"
    REPORT_FAILED = "report_failed"
    REPORT_BOUNCED = "report_bounced"  # the recipient's server gave it back
    REPORT_COMPLAINED = "report_complained"  # the recipient called it unwanted, and so has it
    # Reports that revive what failed by unknown outcome. Legal only where the cause is not `certain`: the table cannot
    # see that, so anyone who records one of these adds the condition to the guard.
    LATE_SENT = "late_sent"
    LATE_DELIVERED = "late_delivered"
    LATE_READ = "late_read"
    LATE_COMPLAINED = "late_complained"
    OPENED = "opened"  # a session reads an inbound message
    REVOKED = "revoked"  # its provider took it back, undelivered: it goes on by another way
    OVERDUE = "overdue"  # what was due after it had left did not come in time


class Report(StrEnum):
    """What a provider reports about a message that it took."""

    SENT = "sent"
    DELIVERED = "delivered"
    READ = "read"
    FAILED = "failed"
    BOUNCED = "bounced"
    COMPLAINED = "complained"


class FailureCode(StrEnum):
    """Why a message failed, or was withdrawn (C15.4)."""

    RECIPIENT_UNREACHABLE = "recipient_unreachable"
    WINDOW_CLOSED = "window_closed"
    TEMPLATE_UNAVAILABLE = "template_unavailable"
    TEMPLATE_VARS = "template_vars"
    MEDIA_INVALID = "media_invalid"
    POLICY_BLOCKED = "policy_blocked"
    OPTED_OUT = "opted_out"
    NUMBER_UNAVAILABLE = "number_unavailable"
    RATE_LIMITED = "rate_limited"
    PROVIDER_ERROR = "provider_error"
    OUTCOME_UNKNOWN = "outcome_unknown"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"


def last_error(code: str, text: str) -> str:
    """`lastError` as callers see it: `<code>: <text>`. No rule reads it."""
    return f"{code}: {text}"


def code_in(error: str | None) -> str | None:
    """The code of a `lastError`; None where it holds none: it may also name the message that took the place of this."""
    code, colon, _ = (error or "").partition(": ")
    return code if colon and " " not in code else None


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a message failed or was withdrawn. `code`: of `FailureCode`, or of its channel; `text`: for callers.

    `certain` False: it may have arrived all the same, and a report that still comes in is believed.
    """

    code: str
    text: str
    certain: bool = True

    @property
    def last_error(self) -> str:
        """What callers see of it."""
        return last_error(self.code, self.text)


class WaitReason(StrEnum):
    """Why a message has not left yet (C14.6): the first gate that holds it."""

    SCHEDULED = "scheduled"
    QUIET_HOURS = "quiet_hours"
    RATE = "rate"
    PAIR_LIMIT = "pair_limit"
    DAILY_LIMIT = "daily_limit"
    TIER_LIMIT = "tier_limit"
    NUMBER_PAUSED = "number_paused"
    NUMBER_STATE = "number_state"
    TEMPLATE_STATE = "template_state"
    OPERATOR_PAUSED = "operator_paused"
    ORGANIZATION_SUSPENDED = "organization_suspended"
    QUALITY = "quality"
    OWNER_PAUSED = "owner_paused"
    NO_CONNECTION = "no_connection"
    RETRY = "retry"
    BEHIND = "behind"
    UNCERTAIN = "uncertain"


UNCERTAIN_AFTER: Final = timedelta(hours=24)
"""How long an unanswered send waits for a report before it fails as `outcome_unknown`."""

MIN_TTL: Final = timedelta(seconds=60)
MAX_TTL: Final = timedelta(seconds=2_592_000)
