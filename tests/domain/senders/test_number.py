"""A number's states, tier and rate (C14.2, C14.5)."""

import pytest

from recado.domain.senders.number import (
    NUMBER_MACHINE,
    TIER_LIMITS,
    MessagingTier,
    NumberEvent,
    NumberStatus,
    QualityRating,
    effective_per_second,
    reported_event,
    what_to_do,
)


@pytest.mark.parametrize(
    ("state", "event", "target"),
    [
        ("pending", "verified", "available"),
        ("pending", "refused", "disconnected"),
        ("available", "connect", "connected"),
        ("disconnected", "connect", "connected"),
        ("connected", "disconnect", "disconnected"),
        ("flagged", "disconnect", "disconnected"),
        ("connected", "lost", "disconnected"),
        ("flagged", "lost", "disconnected"),
        ("connected", "flag", "flagged"),
        ("flagged", "clear", "connected"),
        ("flagged", "restrict", "disconnected"),
    ],
)
def test_a_number_moves_as_the_contract_says(state: str, event: str, target: str) -> None:
    assert NUMBER_MACHINE.move(NumberStatus(state), NumberEvent(event)) is NumberStatus(target)


@pytest.mark.parametrize("status", NumberStatus)
@pytest.mark.parametrize("reported", NumberStatus)
def test_a_reported_status_is_reached_or_ignored(status: NumberStatus, reported: NumberStatus) -> None:
    event = reported_event(status, reported)
    assert event is None or NUMBER_MACHINE.move(status, event) is reported


@pytest.mark.parametrize("env", ["live", "test"])
def test_only_a_number_in_test_is_cleared_in_the_sandbox(env: str) -> None:
    told = what_to_do(NumberStatus.FLAGGED, env, "num_1")
    assert told.startswith("only critical messages and replies leave until the provider clears it; ")
    assert ("POST /v2/sandbox/numbers/num_1" in told) is (env == "test")


def test_no_report_connects_a_number_that_its_owner_disconnected() -> None:
    assert reported_event(NumberStatus.DISCONNECTED, NumberStatus.CONNECTED) is None
    assert reported_event(NumberStatus.AVAILABLE, NumberStatus.CONNECTED) is None


@pytest.mark.parametrize(
    ("quality", "rate"),
    [
        (QualityRating.GREEN, 10.0),
        (QualityRating.UNKNOWN, 10.0),
        (QualityRating.YELLOW, 5.0),
        (QualityRating.RED, 2.5),
    ],
)
def test_low_quality_slows_a_number_down(quality: QualityRating, rate: float) -> None:
    assert effective_per_second(10, quality) == rate


def test_every_tier_has_its_limit() -> None:
    assert [TIER_LIMITS[tier] for tier in MessagingTier] == [250, 1000, 2000, 10_000, 100_000, None]
