"""What a provider's answers and reports make of a number (C14.2, C14.3)."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.channels.core.events import NumberNews as Report
from recado.channels.core.provider import NumberHealth
from recado.domain.senders.number import MessagingTier, NumberStatus, QualityRating
from recado.services.senders.number_refresh import ASK_AGAIN, with_health, with_refusal, with_report
from recado.storage.senders.numbers import REFRESH_EVERY, Number

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
NUMBER = Number(
    organization_id="org_1",
    id="num_" + "0" * 21,
    env="live",
    phone_number_id="pn",
    business_account_id="ba",
    display_phone="+5511987651234",
    quality_rating=QualityRating.YELLOW,
    messaging_tier=MessagingTier.TIER_1K,
    verified_name="Loja",
    name_status="approved",
    profile={"about": "Hi"},
    updated_at=NOW - timedelta(days=1),
)


def at(status: str) -> Number:
    return replace(NUMBER, status=NumberStatus(status))


def test_what_the_provider_does_not_say_stands() -> None:
    number = at("connected")
    asked = with_health(number, NumberHealth(verified=True), NOW)
    assert asked == replace(number, last_provider_sync_at=NOW, verify_at=NOW + REFRESH_EVERY)


@pytest.mark.parametrize(
    ("before", "health", "after"),
    [
        ("pending", {"verified": True}, "available"),
        ("pending", {"verified": True, "status": "connected"}, "available"),
        ("pending", {"verified": False}, "pending"),
        ("pending", {"verified": False, "status": "disconnected"}, "disconnected"),
        ("available", {"verified": True, "status": "connected"}, "available"),
        ("connected", {"verified": True, "status": "available"}, "connected"),
        ("connected", {"verified": True, "status": "flagged"}, "flagged"),
        ("connected", {"verified": True, "status": "disconnected"}, "disconnected"),
        ("flagged", {"verified": True, "status": "connected"}, "connected"),
        ("flagged", {"verified": True, "status": "disconnected"}, "disconnected"),
        ("disconnected", {"verified": True, "status": "connected"}, "disconnected"),
    ],
)
def test_the_answer_moves_the_number_as_its_states_allow(before: str, health: Any, after: str) -> None:
    assert with_health(at(before), NumberHealth(**health), NOW).status == after


def test_a_number_that_stays_pending_is_looked_at_again_soon() -> None:
    assert with_health(at("pending"), NumberHealth(verified=False), NOW).verify_at == NOW + ASK_AGAIN


def test_a_refusal_moves_pending_numbers_only() -> None:
    assert with_refusal(at("pending")).status == "disconnected"
    assert with_refusal(at("connected")).status == "connected"


def test_a_removal_marks_and_moves_nothing() -> None:
    marked = with_report(at("connected"), Report("pn", NOW, partner_removed="PARTNER_REMOVED"), NOW)
    assert (marked.status, marked.partner_removed_at, marked.partner_removed_reason) == (
        "connected", NOW, "PARTNER_REMOVED",
    )  # fmt: skip
    later = with_report(marked, Report("pn", NOW, quality="red", tier="tier_250", name_status="expired"), NOW)
    assert later.partner_removed_reason == "PARTNER_REMOVED"
    assert (later.quality_rating, later.messaging_tier, later.name_status) == ("red", "tier_250", "expired")


@pytest.mark.parametrize(("age", "counts"), [(0, True), (60, True), (61, False), (86_400, False)])
def test_a_report_that_comes_after_newer_word_of_the_provider_changes_nothing(age: int, counts: bool) -> None:
    told = replace(at("connected"), last_provider_sync_at=NOW)
    news = Report("pn", NOW - timedelta(seconds=age), "disconnected", quality="red", partner_removed="PARTNER_REMOVED")
    after = with_report(told, news, NOW + timedelta(minutes=5))
    assert (after.status == "disconnected", after.partner_removed_at is not None) == (counts, counts)
    assert counts or after == told


@given(
    st.sampled_from(list(NumberStatus)),
    st.one_of(st.none(), st.sampled_from(["available", "connected", "flagged", "disconnected"])),
)
def test_no_report_puts_a_number_into_service_that_its_owner_took_out(before: NumberStatus, reported: Any) -> None:
    after = with_report(at(before), Report("pn", NOW, status=reported), NOW)
    if before not in (NumberStatus.CONNECTED, NumberStatus.FLAGGED):
        assert after.status not in (NumberStatus.CONNECTED, NumberStatus.FLAGGED)
    again = with_report(after, Report("pn", NOW, status=reported), NOW)
    assert again == after
