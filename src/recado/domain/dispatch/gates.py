"""The gates that a queued message passes before it leaves, as pure rules in the order of C14.5.

A gate that stops everything of a number or of a class is asked once; a gate of the message's own is asked for each row.
The same rules move the messages and explain to a caller why one waits (C14.6).
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from recado.domain.dispatch.quiet_hours import QuietHours, quiet_overlap, quiet_until
from recado.domain.messages.message import BULK, FailureCode, WaitReason
from recado.domain.senders.number import NumberStatus, QualityRating
from recado.domain.templates.template import TemplateCategory, TemplateStatus

FOREVER = datetime.max.replace(tzinfo=UTC)  # until something changes: nobody knows when


@dataclass(frozen=True, slots=True)
class Hold:
    """The message waits. `until`: when it is worth looking again, `FOREVER` until something changes."""

    reason: WaitReason
    until: datetime = FOREVER


@dataclass(frozen=True, slots=True)
class Fail:
    """The message can leave no more."""

    code: FailureCode
    text: str


@dataclass(frozen=True, slots=True)
class Standing:
    """What the gates know of a number and its organization. `held_ms`: past time on hold of both together."""

    status: NumberStatus
    quality: QualityRating
    operator_paused_at: datetime | None
    suspended: bool
    suspended_at: datetime | None
    held_ms: int
    quiet: QuietHours | None
    zone: ZoneInfo

    def held_total_ms(self, now: datetime) -> int:
        """Time that queued messages stood still through no fault of theirs, up to now, in milliseconds."""
        running = timedelta()
        for since in (self.operator_paused_at, self.suspended_at):
            if since is not None and since < now:
                running += now - since
        return self.held_ms + int(running.total_seconds() * 1000)


@dataclass(frozen=True, slots=True)
class TemplateFacts:
    """What the gates know of a template; a deleted one has no facts."""

    status: TemplateStatus
    category: TemplateCategory


_NOT_SENDING = frozenset({NumberStatus.PENDING, NumberStatus.AVAILABLE, NumberStatus.DISCONNECTED})
_TEMPLATE_GONE = frozenset({TemplateStatus.REJECTED, TemplateStatus.DISABLED})
TEMPLATE_WAITS = frozenset(TemplateStatus) - _TEMPLATE_GONE - {TemplateStatus.APPROVED}
"""States of a template in which its messages wait."""


def number_hold(standing: Standing) -> Hold | None:
    """What holds every message of the number: the operator, a suspension, the number's state."""
    if standing.operator_paused_at is not None:
        return Hold(WaitReason.OPERATOR_PAUSED)
    if standing.suspended:
        return Hold(WaitReason.ORGANIZATION_SUSPENDED)
    if standing.status in _NOT_SENDING:
        return Hold(WaitReason.NUMBER_STATE)
    return None


def class_hold(standing: Standing, klass: int, now: datetime) -> Hold | None:
    """What holds a whole class of the number: quiet hours, a flag and low quality stop `bulk`."""
    if klass != BULK:
        return None
    quiet = quiet_now(standing, now)
    if quiet is not None:
        return Hold(WaitReason.QUIET_HOURS, quiet)
    if standing.status is NumberStatus.FLAGGED:
        return Hold(WaitReason.NUMBER_STATE)
    if standing.quality is QualityRating.RED:
        return Hold(WaitReason.QUALITY)
    return None


def message_gate(
    standing: Standing,
    now: datetime,
    *,
    klass: int,
    free_form: bool,
    force: bool,
    template: TemplateFacts | None,
) -> Hold | Fail | None:
    """What holds or ends this message alone. None: it may leave as far as its own gates go.

    `template` is None for a free-form message, and for a template that was deleted.
    """
    if not force and template is not None and template.category is TemplateCategory.MARKETING:
        quiet = quiet_now(standing, now)
        if quiet is not None:
            return Hold(WaitReason.QUIET_HOURS, quiet)
    if not free_form:
        if template is None or template.status in _TEMPLATE_GONE:
            return Fail(FailureCode.TEMPLATE_UNAVAILABLE, "the template was rejected, disabled or deleted")
        if template.status is not TemplateStatus.APPROVED:
            return Hold(WaitReason.TEMPLATE_STATE)
    if standing.status is NumberStatus.FLAGGED and klass != 0 and not free_form:
        return Hold(WaitReason.NUMBER_STATE)
    if force and klass == BULK and standing.quality is QualityRating.RED:
        return Hold(WaitReason.QUALITY)
    return None


def quiet_now(standing: Standing, now: datetime) -> datetime | None:
    """The end of the quiet hours that last now; None when it is not quiet."""
    if standing.quiet is None:
        return None
    return quiet_until(standing.quiet, standing.zone, now)


def expires_at(
    standing: Standing,
    now: datetime,
    *,
    due_at: datetime,
    ttl: timedelta,
    held_base_ms: int,
    obeys_quiet_hours: bool,
) -> datetime:
    """When the time to live runs out, the time held and the quiet hours so far not counted (C14.5, TTL)."""
    held = timedelta(milliseconds=max(0, standing.held_total_ms(now) - held_base_ms))
    quiet = timedelta()
    if obeys_quiet_hours and standing.quiet is not None and due_at < now:
        quiet = quiet_overlap(standing.quiet, standing.zone, due_at, now)
    return due_at + ttl + held + quiet
