"""Distinct recipients of a rolling day against a tier (C14.5, tier)."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from recado.domain.dispatch.tier_usage import DAY, TierUsage

NOW = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)


def test_a_recipient_already_counted_passes_and_another_waits() -> None:
    tier = TierUsage(2)
    for recipient in (1, 2):
        assert tier.admits(recipient, NOW)
        tier.count(recipient, NOW)
    assert tier.admits(1, NOW)
    assert not tier.admits(3, NOW)


def test_a_place_is_free_again_a_day_after_the_last_message_to_its_recipient() -> None:
    tier = TierUsage(1, [(1, NOW - timedelta(hours=1))])
    assert tier.frees_at(NOW) == NOW + timedelta(hours=23)
    assert not tier.admits(2, NOW)
    assert tier.admits(2, tier.frees_at(NOW))


def test_a_later_message_to_the_same_recipient_keeps_its_place() -> None:
    tier = TierUsage(1, [(1, NOW - timedelta(hours=23))])
    tier.count(1, NOW)
    assert not tier.admits(2, NOW + timedelta(hours=2))
    assert tier.used(NOW + timedelta(hours=2)) == 1


@given(st.lists(st.tuples(st.integers(0, 20_000), st.integers(0, 8)), max_size=80), st.integers(1, 5))
def test_no_rolling_day_ever_holds_more_recipients_than_the_tier(steps: list[tuple[int, int]], limit: int) -> None:
    tier, now = TierUsage(limit), NOW
    sent: list[tuple[datetime, int]] = []
    for seconds, recipient in steps:
        now += timedelta(seconds=seconds)
        if tier.admits(recipient, now):
            tier.count(recipient, now)
            sent.append((now, recipient))
        assert len({who for at, who in sent if at > now - DAY}) <= limit
