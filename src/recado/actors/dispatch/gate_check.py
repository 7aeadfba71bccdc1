"""What the gates of a message's own say of a row that is about to be claimed (C14.5)."""

from datetime import datetime, timedelta

from recado.actors.dispatch.sender_view import SenderView
from recado.domain.channels.policies import POLICIES
from recado.domain.dispatch.gates import Asked, Fail, Hold, expires_at
from recado.domain.dispatch.retry import REPEAT_WITHIN
from recado.domain.messages.message import FailureCode, WaitReason
from recado.services.dispatch.records import Records
from recado.services.dispatch.row import Row
from recado.services.dispatch.withdrawing import REFUSED
from recado.storage.dispatch.dispatch import OPTED_OUT, WINDOW_CLOSED
from recado.storage.templates.templates import Template

EXPIRED = Fail(FailureCode.EXPIRED, "its time to live ran out")
FAILED_BY_THE_CLAIM: dict[str | None, Fail] = {
    WINDOW_CLOSED: Fail(FailureCode.WINDOW_CLOSED, "the window of 24 hours closed before it could leave"),
    OPTED_OUT: REFUSED,
}


def check_gates(
    row: Row, template: Template | None, view: SenderView, records: Records, now: datetime
) -> Hold | Fail | None:
    """None: it may be claimed, and its recipient's place in the tier is kept for it.

    `TIER_LIMIT`: it may be claimed if its recipient's window is open; nobody but the table knows that.
    """
    verdict = _own_gates(row, template, view, records, now)
    if verdict is not None:
        return verdict
    if view.pairs is not None:
        free_at = view.pairs.frees_at(row.recipient_hash, now)
        if free_at > now:
            return Hold(WaitReason.PAIR_LIMIT, free_at)
        view.pairs.count(row.recipient_hash, now)
    tier = None if row.needs_window else view.tier
    if tier is not None:
        if not tier.admits(row.recipient_hash, now):
            return Hold(WaitReason.TIER_LIMIT, tier.frees_at(now))
        tier.reserve(row.recipient_hash)
    return None


def may_still_leave(row: Row, template: Template | None, view: SenderView, records: Records, now: datetime) -> bool:
    """Whether a row that passed its gates before its claim would pass them now. Counts nothing."""
    if not row.force and view.gates.class_hold(view.state, row.klass, now) is not None:
        return False
    return _own_gates(row, template, view, records, now) is None


def _own_gates(
    row: Row, template: Template | None, view: SenderView, records: Records, now: datetime
) -> Hold | Fail | None:
    if _expired(row, view, records, now):
        return EXPIRED
    if row.repeat_of is not None and not _may_repeat(row.repeat_of, view, now):
        unanswered = POLICIES[row.channel].unanswered
        return Fail(unanswered.code, "the provider may not know it any more", unanswered.certain)
    if (withdrawn := records.withdrawing.gate(row)) is not None:
        return withdrawn
    asked = Asked(row.klass, row.needs_window, row.obeys_quiet_hours, template, records.owners.holds(row.owner))
    return view.gates.message_gate(view.state, now, asked, force=row.force)


def _may_repeat(repeat_of: datetime, view: SenderView, now: datetime) -> bool:
    """Whether the provider still knows what it was given then; the adapter may be another one by now (C29.2)."""
    provider = view.gateway.current.provider
    bears = provider is not None and provider.idempotent
    return bears and now - repeat_of < timedelta(seconds=REPEAT_WITHIN)


def _expired(row: Row, view: SenderView, records: Records, now: datetime) -> bool:
    """Counted exactly only when the time to live may have run out."""
    if now < row.expires_at:
        return False
    return now >= expires_at(
        view.state,
        now,
        due_at=row.due_at,
        ttl=timedelta(milliseconds=row.ttl_ms + records.owners.held_ms(row.owner, row.due_at, now)),
        held_base_ms=row.held_base_ms,
        obeys_quiet_hours=row.obeys_quiet_hours,
    )
