"""C14.5, per second: a rate that changes bounds what leaves from then on, and forgets neither debts nor departures."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.domain.dispatch.test_pacing import attempt, gaps, starts

from recado.domain.dispatch.pacing import Pacer


@given(
    start=starts,
    stretches=st.lists(st.tuples(st.integers(1, 30), st.integers(1, 40), gaps), min_size=1, max_size=12),
)
def test_a_new_rate_bounds_every_departure_from_then_on_whatever_the_rates_before(
    start: float, stretches: list[tuple[int, int, float]]
) -> None:
    pacer = Pacer(stretches[0][0], start=start)
    now, departures = start, []
    for rate, messages, gap in stretches:
        pacer.set_rate(rate)
        now += gap
        for _ in range(messages):
            left = attempt(pacer, now, wait=True)
            assert left is not None
            now = left
            departures.append(Fraction(now))
            assert sum(at > departures[-1] - 1 for at in departures) <= rate


def test_lowering_the_rate_holds_back_the_next_departure_at_once() -> None:
    pacer = Pacer(1000.0, start=0.0)
    for _ in range(30):
        pacer.take(10.0)
    pacer.set_rate(10.0)
    assert pacer.ready_at(10.0) == 11.0
    pacer.set_rate(0.25)
    assert pacer.ready_at(10.0) == pytest.approx(14.0)


def test_raising_the_rate_shortens_a_wait_that_the_old_rate_imposed() -> None:
    pacer = Pacer(0.25, start=0.0)
    pacer.take(4.0)
    pacer.set_rate(80.0)
    assert pacer.ready_at(4.0) == pytest.approx(4.0125)


def test_raising_the_rate_keeps_a_debt() -> None:
    pacer = Pacer(20.0, start=0.0)
    for _ in range(11):
        pacer.take(10.0, forced=True)
    owed = -pacer.tokens(10.0)
    pacer.set_rate(80.0)
    assert -pacer.tokens(10.0) == pytest.approx(owed)


def test_a_rate_that_falls_and_rises_again_forgets_no_departure() -> None:
    pacer = Pacer(40.0, limit=40, start=0.0)
    now = 10.0
    for _ in range(40):
        now = pacer.ready_at(now)
        pacer.take(now)
    pacer.set_rate(2.0)
    pacer.set_rate(40.0)
    assert pacer.ready_at(now) == 11.0


def test_a_rate_must_be_above_zero() -> None:
    with pytest.raises(ValueError, match="above zero"):
        Pacer(0.0)
