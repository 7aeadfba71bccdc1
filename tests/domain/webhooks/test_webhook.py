"""A subscription's health and the moments of its retries (C23.2, C23.3.3)."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.domain.core.machine import IllegalMove
from recado.domain.webhooks.webhook import (
    LONGEST_BACKOFF,
    SUBSCRIPTION_MACHINE,
    SubscriptionEvent,
    SubscriptionHealth,
    SubscriptionStatus,
    failure_pause,
    retry_delay,
)

AT = datetime(2026, 11, 20, 12, tzinfo=UTC)
S, E = SubscriptionStatus, SubscriptionEvent


def failing(seconds: float = 60) -> SubscriptionHealth:
    """Ten failures, the last one so long after the first."""
    health = SubscriptionHealth(S.ACTIVE)
    for number in range(10):
        health = health.failed(AT + timedelta(seconds=seconds * number / 9))
    return health


def test_the_default_delays_are_those_of_the_contract() -> None:
    delays = [retry_delay(attempts, 30, 0.5) for attempts in range(1, 8)]
    assert delays == [30, 120, 480, 1_920, 7_680, LONGEST_BACKOFF, LONGEST_BACKOFF]


@given(st.integers(1, 15), st.integers(1, 3_600), st.floats(0, 1, exclude_max=True), st.none() | st.floats(0, 10**9))
def test_a_delay_is_spread_by_a_tenth_and_never_shorter_than_was_asked(
    attempts: int, backoff: int, chance: float, asked: float | None
) -> None:
    delay = retry_delay(attempts, backoff, chance, asked)
    pause = min(backoff * 4 ** (attempts - 1), LONGEST_BACKOFF)
    least = max(0.9 * pause, min(asked or 0.0, LONGEST_BACKOFF))
    assert least * 0.999999 <= delay <= max(1.1 * pause, min(asked or 0.0, LONGEST_BACKOFF)) * 1.000001


def test_ten_failures_over_a_minute_make_it_failing_and_plan_a_probe() -> None:
    health = failing()
    assert (health.status, health.consecutive_failures) == (S.FAILING, 10)
    assert health.probe_at == AT + timedelta(seconds=120)


def test_ten_failures_within_a_minute_do_not() -> None:
    health = failing(59)
    assert health.status is S.ACTIVE
    assert health.failed(AT + timedelta(seconds=60)).status is S.FAILING


def test_probes_come_less_and_less_often_and_only_probes_move_the_next_one() -> None:
    health = failing()
    pauses = []
    for _ in range(6):
        assert health.probe_at is not None
        before, now = health.probe_at, health.probe_at
        assert health.failed(now).probe_at == before
        health = health.failed(now, probe=True)
        assert health.probe_at is not None
        pauses.append((health.probe_at - now).total_seconds())
    assert pauses == [120, 240, 480, 900, 900, 900]


def test_any_success_heals() -> None:
    health = failing().succeeded(AT + timedelta(hours=1))
    assert (health.status, health.consecutive_failures, health.probe_at) == (S.ACTIVE, 0, None)
    assert health.last_success_at == AT + timedelta(hours=1)
    once = SubscriptionHealth(S.ACTIVE).failed(AT).succeeded(AT)
    assert (once.consecutive_failures, once.first_failure_at) == (0, None)


def test_after_72_hours_of_failing_it_is_revoked() -> None:
    health = failing()
    assert health.failing_since is not None
    end = health.failing_since + timedelta(hours=72)
    assert health.aged(end - timedelta(seconds=1)) is health
    assert health.aged(end).status is S.REVOKED
    assert health.failed(end, probe=True).status is S.REVOKED


@pytest.mark.parametrize(("status", "after"), [(S.ACTIVE, S.REVOKED), (S.FAILING, S.REVOKED), (S.PAUSED, S.PAUSED)])
def test_an_answer_410_ends_what_is_in_service(status: S, after: S) -> None:
    assert SubscriptionHealth(status).failed(AT, gone=True).status is after


def test_what_is_revoked_can_be_resumed_with_a_clean_record_but_not_paused() -> None:
    revoked = failing().failed(AT, gone=True)
    assert revoked.moved(E.RESUME) == SubscriptionHealth(S.ACTIVE, last_failure_at=AT)
    with pytest.raises(IllegalMove):
        revoked.moved(E.PAUSE)


def test_the_failures_of_what_is_paused_or_deleted_are_still_told_until_it_is_resumed() -> None:
    for event in (E.PAUSE, E.DELETE):
        stopped = failing().moved(event)
        assert (stopped.consecutive_failures, stopped.first_failure_at) == (10, AT)
        assert (stopped.failing_since, stopped.probe_at, stopped.probe_seconds) == (None, None, 0)
    assert failing().moved(E.PAUSE).moved(E.RESUME).consecutive_failures == 0


def test_every_state_can_be_deleted() -> None:
    assert SUBSCRIPTION_MACHINE.sources(E.DELETE) == set(SubscriptionStatus)


def test_failures_in_a_row_slow_an_endpoint_down_but_not_past_the_minute_that_makes_it_failing() -> None:
    assert [failure_pause(failures) for failures in (0, 3, 4, 8, 23, 500)] == pytest.approx([0, 0, 0.1, 0.5, 2.0, 2.0])
    assert sum(failure_pause(failures) for failures in range(40)) < 60
