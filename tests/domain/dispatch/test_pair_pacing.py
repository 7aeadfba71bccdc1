"""One message every six seconds to the same recipient, after a burst of 45 (C14.5, pair)."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from recado.domain.dispatch.pair_pacing import BURST, INTERVAL, PairPacing

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
ANA, BIA = 7, -7


def exhausted() -> PairPacing:
    pairs = PairPacing()
    for _ in range(BURST):
        assert pairs.admits(ANA, NOW)
        pairs.count(ANA, NOW)
    return pairs


def test_a_burst_passes_and_then_one_every_six_seconds() -> None:
    pairs = exhausted()

    assert not pairs.admits(ANA, NOW)
    assert pairs.frees_at(ANA, NOW) == NOW + INTERVAL
    for turn in range(1, 10):
        at = NOW + turn * INTERVAL
        assert not pairs.admits(ANA, at - timedelta(microseconds=1))
        assert pairs.admits(ANA, at)
        pairs.count(ANA, at)


def test_recipients_do_not_wait_for_one_another() -> None:
    pairs = exhausted()

    assert pairs.admits(BIA, NOW)
    assert pairs.frees_at(BIA, NOW) == NOW


def test_a_pair_that_rests_has_its_burst_again() -> None:
    pairs = exhausted()
    later = NOW + BURST * INTERVAL

    for _ in range(BURST):
        assert pairs.admits(ANA, later)
        pairs.count(ANA, later)
    assert not pairs.admits(ANA, later)


def test_what_did_not_leave_is_given_back() -> None:
    pairs = exhausted()

    pairs.take_back(ANA)
    pairs.take_back(BIA)

    assert pairs.admits(ANA, NOW)
    pairs.count(ANA, NOW)
    assert not pairs.admits(ANA, NOW)


def test_what_jumps_the_queue_is_paid_for_by_the_next() -> None:
    pairs = exhausted()

    pairs.count(ANA, NOW)

    assert pairs.frees_at(ANA, NOW) == NOW + 2 * INTERVAL


def test_the_provider_s_word_empties_a_burst() -> None:
    pairs = PairPacing()

    pairs.exhaust(ANA, NOW)
    assert pairs.frees_at(ANA, NOW) == NOW + INTERVAL
    pairs.exhaust(ANA, NOW, timedelta(minutes=1))
    assert pairs.frees_at(ANA, NOW) == NOW + timedelta(minutes=1)
    pairs.exhaust(ANA, NOW)
    assert pairs.frees_at(ANA, NOW) == NOW + timedelta(minutes=1)


def test_who_was_written_to_long_ago_is_forgotten() -> None:
    pairs = PairPacing()

    for recipient in range(100_000):
        pairs.count(recipient, NOW + recipient * timedelta(milliseconds=1))

    assert len(pairs) <= 2 * INTERVAL / timedelta(milliseconds=1) + 1


def test_whose_allowance_is_whole_is_forgotten_and_nobody_else() -> None:
    pairs = exhausted()
    pairs.count(BIA, NOW)

    pairs.forget(NOW + INTERVAL)

    assert len(pairs) == 1
    assert not pairs.admits(ANA, NOW)


@given(st.lists(st.integers(0, 40), max_size=300))
def test_no_stretch_of_time_carries_more_than_the_burst_and_its_share(waits: list[int]) -> None:
    pairs, now, left = PairPacing(), NOW, []
    for wait in waits:
        now += timedelta(seconds=wait / 10)
        free = pairs.frees_at(ANA, now)
        assert pairs.admits(ANA, now) == (free == now)
        if free == now:
            pairs.count(ANA, now)
            left.append(now)
    for first, start in enumerate(left):
        for last in range(first, len(left)):
            assert last - first + 1 <= BURST + (left[last] - start) / INTERVAL
