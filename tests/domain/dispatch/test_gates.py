"""The gates of C14.5: each holds what it should, in the order in which a wait is explained."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.domain.channels.chatapp import GATES
from recado.domain.dispatch.gates import (
    FOREVER,
    Asked,
    Fail,
    Hold,
    SenderState,
    expires_at,
)
from recado.domain.dispatch.quiet_hours import QuietHours
from recado.domain.messages.message import BULK, CRITICAL, NORMAL, FailureCode, WaitReason
from recado.domain.senders.number import NumberStatus, QualityRating
from recado.domain.templates.template import TemplateStatus

NOON = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)
NIGHT = QuietHours(time(22, 0), time(8, 0))


@dataclass(frozen=True)
class Template:
    status: TemplateStatus


APPROVED = Template(TemplateStatus.APPROVED)


def standing(
    status: NumberStatus = NumberStatus.CONNECTED,
    quality: QualityRating = QualityRating.GREEN,
    *,
    paused: datetime | None = None,
    suspended: datetime | None = None,
    held_ms: int = 0,
    quiet: QuietHours | None = None,
) -> SenderState:
    return SenderState(status, quality, paused, suspended is not None, suspended, held_ms, quiet, ZoneInfo("UTC"))


def gate(
    at: SenderState,
    now: datetime = NOON,
    *,
    klass: int = NORMAL,
    replies: bool = False,
    quiet: bool = False,
    force: bool = False,
    template: Template | None = APPROVED,
) -> Hold | Fail | None:
    return GATES.message_gate(at, now, Asked(klass, replies, quiet, template), force=force)


def test_a_connected_number_holds_nothing() -> None:
    assert GATES.sender_hold(standing(), NOON) is None
    assert [GATES.class_hold(standing(), klass, NOON) for klass in (CRITICAL, NORMAL, BULK)] == [None, None, None]
    assert gate(standing()) is None


@pytest.mark.parametrize("status", [NumberStatus.PENDING, NumberStatus.AVAILABLE, NumberStatus.DISCONNECTED])
def test_a_number_out_of_service_holds_everything_until_it_changes(status: NumberStatus) -> None:
    assert GATES.sender_hold(standing(status), NOON) == Hold(WaitReason.NUMBER_STATE, FOREVER)


def test_the_operator_comes_before_the_suspension_and_both_before_the_state() -> None:
    out = NumberStatus.DISCONNECTED
    both = GATES.sender_hold(standing(out, paused=NOON, suspended=NOON), NOON)
    suspended = GATES.sender_hold(standing(out, suspended=NOON), NOON)
    assert both is not None
    assert both.reason is WaitReason.OPERATOR_PAUSED
    assert suspended is not None
    assert suspended.reason is WaitReason.ORGANIZATION_SUSPENDED


def test_a_flagged_number_sends_critical_messages_and_replies_only() -> None:
    flagged = standing(NumberStatus.FLAGGED)
    assert gate(flagged, klass=CRITICAL) is None
    assert gate(flagged, replies=True, template=None) is None
    assert gate(flagged) == Hold(WaitReason.NUMBER_STATE)
    assert GATES.class_hold(flagged, BULK, NOON) == Hold(WaitReason.NUMBER_STATE)


def test_low_quality_stops_bulk_and_nothing_else() -> None:
    red = standing(quality=QualityRating.RED)
    assert GATES.class_hold(red, BULK, NOON) == Hold(WaitReason.QUALITY)
    assert GATES.class_hold(red, NORMAL, NOON) is None
    assert GATES.class_hold(standing(quality=QualityRating.YELLOW), BULK, NOON) is None


def test_quiet_hours_hold_bulk_and_what_obeys_them_until_they_end_but_no_forced_message() -> None:
    midnight = NOON.replace(hour=23)
    quiet = standing(quiet=NIGHT)
    morning = Hold(WaitReason.QUIET_HOURS, NOON.replace(day=11, hour=8))
    assert GATES.class_hold(quiet, BULK, midnight) == morning
    assert gate(quiet, midnight, quiet=True) == morning
    assert gate(quiet, midnight, quiet=True, force=True) is None
    assert gate(quiet, midnight) is None
    assert GATES.class_hold(quiet, BULK, NOON) is None


@pytest.mark.parametrize(
    ("status", "verdict"),
    [
        (TemplateStatus.APPROVED, None),
        (TemplateStatus.PAUSED, Hold(WaitReason.TEMPLATE_STATE)),
        (TemplateStatus.DRAFT, Hold(WaitReason.TEMPLATE_STATE)),
        (TemplateStatus.SUBMITTED, Hold(WaitReason.TEMPLATE_STATE)),
        (TemplateStatus.PENDING, Hold(WaitReason.TEMPLATE_STATE)),
    ],
)
def test_a_template_must_be_approved(status: TemplateStatus, verdict: Hold | None) -> None:
    assert gate(standing(), template=Template(status)) == verdict


@pytest.mark.parametrize("template", [None, Template(TemplateStatus.REJECTED)])
def test_a_message_whose_template_is_gone_fails(template: Template | None) -> None:
    verdict = gate(standing(), template=template)
    assert isinstance(verdict, Fail)
    assert verdict.code is FailureCode.TEMPLATE_UNAVAILABLE


def test_a_forced_message_meets_the_gates_of_its_class_that_force_does_not_pass() -> None:
    red = standing(quality=QualityRating.RED, quiet=NIGHT)
    assert gate(red, NOON.replace(hour=23), klass=BULK, force=True) == Hold(WaitReason.QUALITY)
    assert gate(red, klass=BULK) is None  # its class is held, and is not asked for each message


def test_of_several_gates_the_first_of_the_table_is_named() -> None:
    at = standing(NumberStatus.DISCONNECTED, QualityRating.RED, quiet=NIGHT)
    midnight, asked = (
        NOON.replace(hour=23),
        Asked(BULK, False, True, Template(TemplateStatus.PAUSED), True),
    )
    named = []
    for closed in ("owner", "quiet", "template", "state", "quality"):
        hold = GATES.first_hold(at, midnight, asked, force=closed != "quiet" and closed != "owner")
        assert hold is not None
        named.append(hold.reason)
        if closed == "owner":
            asked = replace(asked, owner_holds=False)
        if closed == "template":
            asked = replace(asked, template=APPROVED)
        if closed == "state":
            at = replace(at, status=NumberStatus.CONNECTED)
    assert named == ["owner_paused", "quiet_hours", "template_state", "number_state", "quality"]


def test_what_is_no_gate_of_a_channel_holds_before_all_that_are() -> None:
    places = [GATES.place_of(gate.reason) for gate in GATES.gates]
    assert GATES.place_of(WaitReason.RETRY) < min(places)


def test_a_message_that_ends_is_held_by_no_other_gate_of_its_own() -> None:
    gone = Asked(NORMAL, needs_window=False, obeys_quiet_hours=False, template=None)
    assert GATES.first_hold(standing(NumberStatus.FLAGGED), NOON, gone, force=False) is None
    out = GATES.first_hold(standing(NumberStatus.DISCONNECTED), NOON, gone, force=False)
    assert out == Hold(WaitReason.NUMBER_STATE)


def test_what_a_row_is_held_for_is_let_go_by_something() -> None:
    assert set(GATES.held_by_sender) == {"quiet_hours", "number_state", "quality", "tier_limit"}
    assert set(GATES.held_without_moment) == {"owner_paused", "template_state", "number_state", "quality"}
    assert set(GATES.passed_by_force) == {"scheduled", "quiet_hours", "rate"}
    assert all(each.release for each in GATES.gates)


def expiry(at: SenderState, now: datetime, *, held_base_ms: int = 0, quiet: bool = False) -> datetime:
    return expires_at(at, now, due_at=NOON, ttl=timedelta(hours=1), held_base_ms=held_base_ms, obeys_quiet_hours=quiet)


def test_the_time_to_live_runs_from_the_due_time() -> None:
    assert expiry(standing(), NOON + timedelta(minutes=30)) == NOON + timedelta(hours=1)


def test_time_held_since_the_message_was_accepted_does_not_count() -> None:
    paused = standing(paused=NOON + timedelta(minutes=10), held_ms=60_000)
    now = NOON + timedelta(minutes=30)
    assert expiry(paused, now, held_base_ms=60_000) == NOON + timedelta(hours=1, minutes=20)


def test_quiet_hours_do_not_count_for_messages_that_obey_them() -> None:
    at = standing(quiet=QuietHours(time(12, 15), time(12, 45)))
    now = NOON + timedelta(hours=2)
    assert expiry(at, now, quiet=True) == NOON + timedelta(minutes=90)
    assert expiry(at, now) == NOON + timedelta(minutes=60)


@given(
    past=st.integers(0, 10**9), base=st.integers(0, 10**9), minutes=st.integers(0, 5_000), pause=st.integers(0, 5_000)
)
def test_holding_only_ever_prolongs_a_life(past: int, base: int, minutes: int, pause: int) -> None:
    now = NOON + timedelta(minutes=minutes)
    at = standing(paused=NOON + timedelta(minutes=pause), held_ms=past)
    assert expiry(at, now, held_base_ms=base) >= NOON + timedelta(hours=1)
