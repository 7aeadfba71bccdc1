"""C14.5, per second: no sliding second is ever too full, nothing is lost to late wake-ups, and debts are paid."""

import math
import random
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.domain.dispatch.pacing import Pacer

gaps = st.one_of(
    st.just(0.0),
    st.floats(0, 0.003),
    st.floats(0, 0.2),
    st.floats(0, 3),
    st.sampled_from([0.001, 0.01, 0.1, 0.25, 0.5, 0.999, 1.0, 1.001]),
)
starts = st.sampled_from([0.0, 0.3, 17.25, 4096.1, 1_234_567.891, 987_654_321.123])


def fullest_second(departures: list[Fraction]) -> int:
    """The most departures in any [t, t + 1), in exact arithmetic."""
    fullest = first = 0
    for last, departure in enumerate(departures):
        while departures[first] <= departure - 1:
            first += 1
        fullest = max(fullest, last - first + 1)
    return fullest


def attempt(pacer: Pacer, now: float, *, wait: bool) -> float | None:
    """Send one message if it may leave at `now`, or as soon as it may; answers the departure."""
    ready = pacer.ready_at(now)
    if ready > now and not wait:
        return None
    pacer.take(ready)
    return ready


@given(
    rate=st.integers(1, 40),
    start=starts,
    steps=st.lists(st.tuples(gaps, st.booleans(), st.integers(1, 60), st.booleans()), max_size=60),
)
def test_no_sliding_second_carries_more_unforced_departures_than_the_rate(
    rate: int, start: float, steps: list[tuple[float, bool, int, bool]]
) -> None:
    pacer = Pacer(rate, start=start)
    now, unforced = start, []
    for gap, forced, burst, wait in steps:
        now += gap
        for _ in range(burst if not forced else min(burst, 5)):
            if forced:
                pacer.take(now, forced=True)
            elif (left := attempt(pacer, now, wait=wait)) is not None:
                now = left
                unforced.append(left)

    assert fullest_second([Fraction(at) for at in unforced]) <= rate
    # An observer sees milliseconds, cut off.
    assert fullest_second([Fraction(math.floor(Fraction(at) * 1000), 1000) for at in unforced]) <= rate


@given(rate=st.integers(1, 30), start=starts, steps=st.lists(st.tuples(gaps, st.booleans()), max_size=150))
def test_an_unforced_departure_finds_room_among_all_of_its_last_second(
    rate: int, start: float, steps: list[tuple[float, bool]]
) -> None:
    pacer = Pacer(rate, start=start)
    now, departures = start, []
    for gap, forced in steps:
        now += gap
        if forced:
            pacer.take(now, forced=True)
            departures.append(Fraction(now))
        elif attempt(pacer, now, wait=False) is not None:
            departures.append(Fraction(now))
            assert sum(at > departures[-1] - 1 for at in departures) <= rate


@pytest.mark.parametrize("rate", [1, 2, 7, 20, 80, 333, 1000, 40.0, 0.25, 1.5, 62.5])
@pytest.mark.parametrize("lateness", [(0.0, 0.0), (0.001, 0.003)])
def test_a_saturated_number_loses_less_than_a_hundredth_to_late_wake_ups(
    rate: float, lateness: tuple[float, float]
) -> None:
    rng = random.Random(7)
    pacer = Pacer(rate, start=5000.0)
    seconds = max(60.0, 200 / rate)
    now, sent, departures = 5000.0, 0, []
    while True:
        now = pacer.ready_at(now) + rng.uniform(*lateness)
        if now >= 5000.0 + seconds:
            break
        while pacer.ready_at(now) <= now:  # a wake-up takes all that may leave
            pacer.take(now)
            departures.append(now)
            sent += 1
    assert 0.99 * rate * seconds - 1 <= sent <= rate * seconds + 1 + 0.05 * rate
    assert fullest_second([Fraction(at) for at in departures]) <= math.ceil(rate)


def test_a_late_wake_up_catches_up_by_a_fifth_of_a_second_of_rate_only() -> None:
    pacer = Pacer(1000.0, start=0.0)
    sent = 0
    while pacer.ready_at(10.0) <= 10.0:
        pacer.take(10.0)
        sent += 1
    assert sent == 201


def test_the_bucket_starts_empty() -> None:
    pacer = Pacer(10.0, start=100.0)
    assert pacer.tokens(100.0) == pytest.approx(0)
    assert pacer.ready_at(100.0) == pytest.approx(100.1)


def test_a_pacer_without_a_start_starts_empty_when_it_is_first_asked() -> None:
    pacer = Pacer(10.0)
    assert pacer.ready_at(55.0) == pytest.approx(55.1)
    assert pacer.ready_at(60.0) == 60.0


def test_a_message_that_is_not_ready_cannot_leave_and_leaves_no_trace() -> None:
    pacer = Pacer(2.0, start=0.0)
    pacer.take(1.0)
    before = (pacer.ready_at(1.0), pacer.tokens(1.0), pacer.sent_within(1.0, 1.0))
    with pytest.raises(ValueError, match="no message may leave yet"):
        pacer.take(1.0 + 0.01)
    assert (pacer.ready_at(1.0), pacer.tokens(1.0), pacer.sent_within(1.0, 1.0)) == before


def test_a_message_cannot_leave_into_a_full_second_although_the_bucket_holds_a_token() -> None:
    pacer = Pacer(1000.0, limit=1, start=0.0)
    pacer.take(5.0)
    assert pacer.tokens(5.5) > 1
    with pytest.raises(ValueError, match="no message may leave yet"):
        pacer.take(5.5)
    pacer.take(6.0)


def test_a_departure_exactly_one_second_ago_is_old_enough() -> None:
    pacer = Pacer(1.0, start=0.0)
    pacer.take(8.0)
    assert pacer.ready_at(8.5) == 9.0
    pacer.take(9.0)


@given(departure=st.floats(0.0001, 1e9))
def test_one_second_later_is_never_a_rounded_second(departure: float) -> None:
    pacer = Pacer(1.0, start=0.0)
    pacer.take(departure, forced=True)
    pacer.set_rate(1000.0, limit=1)  # so that only the ring holds the next one
    pacer_ready = pacer.ready_at(departure)
    assert Fraction(pacer_ready) >= Fraction(departure) + 1
    assert pacer_ready <= math.nextafter(departure + 1.0, math.inf)


def test_a_fraction_of_a_message_a_second_keeps_its_distance() -> None:
    pacer = Pacer(0.25, start=0.0)
    now, departures = 0.0, []
    for _ in range(5):
        now = pacer.ready_at(now)
        pacer.take(now)
        departures.append(now)
        now += 0.01
    assert departures == pytest.approx([4, 8, 12, 16, 20])


@given(rate=st.sampled_from([0.5, 1.0, 3.0, 20.0, 80.0, 250.0]), forced=st.integers(1, 40))
def test_the_messages_after_forced_ones_pay_them_back(rate: float, forced: int) -> None:
    def tenth_departure(debts: int) -> float:
        pacer = Pacer(rate, limit=1000, start=0.0)
        now = pacer.ready_at(0.0)
        for _ in range(debts):
            pacer.take(now, forced=True)
        for _ in range(10):
            now = pacer.ready_at(now)
            pacer.take(now)
        return now

    owed = min(forced, 1 + max(1.0, rate))  # one token was there; the debt has a floor of one second's worth
    assert tenth_departure(forced) - tenth_departure(0) == pytest.approx(owed / rate, abs=1e-6)


def test_a_debt_has_a_floor_of_one_second_of_rate() -> None:
    pacer = Pacer(80.0, start=0.0)
    for _ in range(1000):
        pacer.take(50.0, forced=True)
    assert pacer.tokens(50.0) == pytest.approx(-80)
    assert pacer.tokens(51.0) == pytest.approx(0)
    assert pacer.ready_at(50.0) == pytest.approx(51.0125)


def test_a_forced_message_leaves_although_the_last_second_is_full() -> None:
    pacer = Pacer(1.0, start=0.0)
    pacer.take(5.0)
    pacer.take(5.1, forced=True)
    assert pacer.ready_at(5.2) == pytest.approx(7.0)  # the ring alone would allow 6.1


@given(
    gaps=st.lists(st.sampled_from([0.0, 0.001, 0.0125, 0.1, 0.5, 1.0, 3.0]), max_size=120),
    rates=st.lists(st.sampled_from([2, 10, 40, 80]), min_size=1, max_size=4),
)
def test_a_ring_that_grows_when_needed_decides_as_one_that_was_large_from_the_start(
    gaps: list[float], rates: list[int]
) -> None:
    grown, large = Pacer(rates[0], start=0.0), Pacer(rates[0], limit=200, start=0.0)
    for _ in range(200):
        large.take(0.0, forced=True)  # a departure long ago in each place of its ring
    for pacer in (grown, large):
        pacer.set_rate(1_000_000.0, limit=rates[0])  # the bucket never decides, the ring always does
    now, change = 1_000.0, max(1, len(gaps) // len(rates))
    for position, gap in enumerate(gaps):
        now += gap
        rate = rates[position // change % len(rates)]
        for pacer in (grown, large):
            pacer.set_rate(1_000_000.0, limit=rate)
        assert grown.ready_at(now) == large.ready_at(now)
        if grown.ready_at(now) <= now:
            grown.take(now)
            large.take(now)
        assert grown.sent_within(now, 1.0) == large.sent_within(now, 1.0)


def test_a_guard_lengthens_the_second_of_the_ring() -> None:
    pacer = Pacer(1.0, start=0.0, guard=0.002)
    pacer.take(5.0)
    assert pacer.ready_at(5.0) == pytest.approx(6.002)


def test_departures_are_counted_for_the_last_second_and_the_last_minute() -> None:
    pacer = Pacer(10.0, start=0.0)
    now = 0.0
    for _ in range(900):
        now = pacer.ready_at(now)
        pacer.take(now)
    assert now == pytest.approx(90.0)
    assert 9 <= pacer.sent_within(now, 1.0) <= 10
    assert 590 <= pacer.sent_within(now, 60.0) <= 601
    assert pacer.sent_within(now + 30.0, 1.0) == 0
    assert 290 <= pacer.sent_within(now + 30.0, 60.0) <= 310
    assert pacer.sent_within(now + 500.0, 60.0) == 0


@given(
    rate=st.sampled_from([0.25, 1.0, 3.0, 80.0]),
    pauses=st.lists(st.floats(0.0, 20.0), min_size=1, max_size=30),
    forced=st.booleans(),
    looks=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=10),
)
def test_what_is_shown_stays_the_same_as_long_as_is_said(
    rate: float, pauses: list[float], forced: bool, looks: list[float]
) -> None:
    pacer, now = Pacer(rate, start=100.0), 101.0
    for pause in pauses:
        now = now + pause if forced else pacer.ready_at(now + pause)
        pacer.take(now, forced=forced)

    def shown(at: float) -> tuple[float, int, int]:
        return round(pacer.tokens(at), 2), pacer.sent_within(at, 1.0), pacer.sent_within(at, 60.0)

    assert pacer.steady_until(now) == now
    while (until := pacer.steady_until(now)) != math.inf:
        before = shown(now)
        for look in sorted(looks):
            if (at := now + look * (until - now)) < until:
                assert shown(at) == before
        now = max(until, now + 0.05)
    assert shown(now + 1_000) == shown(now) == (shown(now)[0], 0, 0)
