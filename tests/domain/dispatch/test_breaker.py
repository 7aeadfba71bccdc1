"""Slow-downs and the circuit of a number (C14.5.4, C29.2)."""

from hypothesis import given
from hypothesis import strategies as st

from recado.domain.dispatch.breaker import (
    FIRST_PAUSE,
    IN_A_ROW,
    LAST_CALLS,
    LONGEST_PAUSE,
    UNKNOWN_OF_THEM,
    Breaker,
    BreakerState,
)


def opened(at: float = 0.0) -> Breaker:
    breaker = Breaker()
    for _ in range(IN_A_ROW):
        breaker.down(at)
    return breaker


def test_a_closed_breaker_lets_everything_pass() -> None:
    assert Breaker().calls_allowed(0.0, 1_999) is None


def test_a_slow_down_pauses_for_as_long_as_the_provider_says() -> None:
    breaker = Breaker()
    breaker.slow_down(10.0, 2.5, breaker.pauses)
    assert breaker.ready_at() == 12.5
    assert breaker.calls_allowed(12.4, 0) == 0
    assert breaker.calls_allowed(12.5, 0) is None


def test_unasked_pauses_double_up_to_five_minutes_and_start_over_after_an_answer() -> None:
    breaker, now, pauses = Breaker(), 0.0, []
    for _ in range(8):
        breaker.slow_down(now, None, breaker.pauses)
        pauses.append(breaker.ready_at() - now)
        now = breaker.ready_at()
    assert pauses == [5.0, 10.0, 20.0, 40.0, 80.0, 160.0, LONGEST_PAUSE, LONGEST_PAUSE]
    breaker.answered(breaker.pauses)
    breaker.slow_down(now, None, breaker.pauses)
    assert breaker.ready_at() - now == FIRST_PAUSE


def test_slow_downs_of_calls_that_were_under_way_already_do_not_lengthen_the_pause() -> None:
    breaker = Breaker()
    for _ in range(50):
        breaker.slow_down(0.0, None, 0)
    assert breaker.ready_at() == FIRST_PAUSE


def test_pauses_that_the_provider_names_double_nothing() -> None:
    breaker = Breaker()
    for _ in range(8):
        breaker.slow_down(0.0, 1.0, 0)
    breaker.slow_down(1.0, None, breaker.pauses)
    assert breaker.ready_at() == 1.0 + FIRST_PAUSE
    breaker.slow_down(breaker.ready_at(), 2.0, breaker.pauses)
    now = breaker.ready_at()
    breaker.slow_down(now, None, breaker.pauses)
    assert breaker.ready_at() == now + 2 * FIRST_PAUSE


def test_an_answer_of_a_call_that_began_before_the_pause_does_not_start_the_doubling_over() -> None:
    breaker, now = Breaker(), 0.0
    for pause in (5.0, 10.0, 20.0):
        begun = breaker.pauses
        breaker.slow_down(now, None, begun)
        breaker.answered(begun)
        assert breaker.ready_at() == now + pause
        assert not breaker.untroubled
        now = breaker.ready_at()
    breaker.answered(breaker.pauses)
    assert breaker.untroubled


def test_a_slow_down_that_comes_after_the_pause_pauses_again_and_doubles_only_when_its_call_began_after_it() -> None:
    breaker = Breaker()
    breaker.slow_down(0.0, None, 0)
    breaker.slow_down(6.0, None, 0)
    assert breaker.ready_at() == 6.0 + FIRST_PAUSE
    breaker.slow_down(12.0, None, breaker.pauses)
    assert breaker.ready_at() == 12.0 + 2 * FIRST_PAUSE


@given(st.lists(st.tuples(st.sampled_from(["answered", "asked", "unasked"]), st.booleans()), max_size=40))
def test_a_pause_is_at_most_as_long_as_doubling_once_for_each_pause_makes_it(told: list[tuple[str, bool]]) -> None:
    """Every round: calls that are under way when the pause is over, and those that began after it."""
    breaker, now, longest = Breaker(), 0.0, FIRST_PAUSE
    for outcome, late in told:
        begun = breaker.pauses - 1 if late else breaker.pauses
        if outcome == "answered":
            breaker.answered(begun)
            longest = longest if late else FIRST_PAUSE
            continue
        breaker.slow_down(now, 1.0 if outcome == "asked" else None, begun)
        assert breaker.ready_at() - now <= longest
        if outcome == "unasked":
            longest = min(longest * 2, LONGEST_PAUSE)
        now = breaker.ready_at()


def test_five_failures_to_connect_in_a_row_open_the_circuit() -> None:
    breaker = Breaker()
    for _ in range(IN_A_ROW - 1):
        breaker.down(0.0)
    assert breaker.state is BreakerState.CLOSED
    breaker.answered(breaker.pauses)
    breaker.down(0.0)
    assert breaker.state is BreakerState.CLOSED
    assert opened().state is BreakerState.OPEN


def test_an_open_circuit_lets_one_probe_pass_after_its_pause() -> None:
    breaker = opened(at=100.0)
    assert breaker.calls_allowed(104.9, 0) == 0
    assert breaker.calls_allowed(105.0, 0) == 1
    breaker.began()
    assert breaker.state is BreakerState.HALF_OPEN
    assert breaker.calls_allowed(105.0, 1) == 0


def test_a_probe_that_connects_closes_the_circuit_and_one_that_does_not_doubles_its_pause() -> None:
    breaker = opened(at=0.0)
    breaker.began()
    breaker.down(5.0)
    assert breaker.state is BreakerState.OPEN
    assert breaker.ready_at() == 15.0
    breaker.began()
    breaker.answered(breaker.pauses)
    assert breaker.calls_allowed(15.0, 100) is None


def test_failures_of_calls_that_began_before_the_circuit_opened_do_not_prolong_it() -> None:
    breaker = opened(at=0.0)
    for _ in range(100):
        breaker.down(1.0)
    assert breaker.ready_at() == FIRST_PAUSE


def test_five_unknown_outcomes_in_a_row_open_the_circuit_as_failures_to_connect_do() -> None:
    breaker = Breaker()
    for _ in range(IN_A_ROW - 1):
        breaker.unknown(0.0)
    assert breaker.state is BreakerState.CLOSED
    breaker.unknown(1.0)
    assert breaker.state is BreakerState.OPEN
    assert breaker.ready_at() == 1.0 + FIRST_PAUSE


def test_a_probe_of_unknown_outcome_opens_the_circuit_for_twice_as_long() -> None:
    breaker = opened(at=0.0)
    breaker.began()
    breaker.unknown(5.0)
    assert breaker.state is BreakerState.OPEN
    assert breaker.ready_at() == 5.0 + 2 * FIRST_PAUSE


def test_an_answer_of_a_call_that_began_before_does_not_close_the_circuit() -> None:
    breaker = opened(at=0.0)
    breaker.answered(breaker.pauses)
    breaker.slow_down(0.0, 1.0, breaker.pauses)
    assert breaker.state is BreakerState.OPEN
    assert breaker.calls_allowed(4.9, 0) == 0


OUTCOMES = st.lists(st.sampled_from(["answered", "slow", "down", "unknown"]), max_size=80)


def told(breaker: Breaker, outcome: str) -> None:
    match outcome:
        case "answered":
            breaker.answered(breaker.pauses)
        case "slow":
            breaker.slow_down(0.0, 0.0, breaker.pauses)
        case "down":
            breaker.down(0.0)
        case "unknown":
            breaker.unknown(0.0)


@given(OUTCOMES)
def test_a_circuit_opens_at_five_failures_in_a_row_or_ten_unknown_of_twenty_and_at_nothing_else(
    outcomes: list[str],
) -> None:
    breaker = Breaker()
    for count, outcome in enumerate(outcomes, start=1):
        told(breaker, outcome)
        in_a_row = outcomes[max(0, count - IN_A_ROW) : count]
        row_fails = len(in_a_row) == IN_A_ROW and set(in_a_row) <= {"down", "unknown"}
        unknown = outcomes[max(0, count - LAST_CALLS) : count].count("unknown")
        opens = row_fails or unknown >= UNKNOWN_OF_THEM
        assert (breaker.state is BreakerState.OPEN) == opens
        if opens:
            return


@given(OUTCOMES, OUTCOMES)
def test_whatever_comes_back_late_an_open_circuit_begins_no_call_before_its_time_and_then_one(
    before: list[str], late: list[str]
) -> None:
    breaker = Breaker()
    for outcome in [*before, *["unknown"] * IN_A_ROW]:
        told(breaker, outcome)
    assert breaker.calls_allowed(FIRST_PAUSE - 0.1, 0) == 0
    for outcome in late:
        told(breaker, outcome)
    assert breaker.calls_allowed(FIRST_PAUSE - 0.1, 0) == 0
    assert breaker.calls_allowed(FIRST_PAUSE, 0) == 1
    breaker.began()
    assert breaker.calls_allowed(FIRST_PAUSE, 1) == 0
    breaker.answered(breaker.pauses)
    assert breaker.calls_allowed(FIRST_PAUSE, 1_999) is None
    for _ in range(IN_A_ROW - 1):  # what came before the circuit closed counts no more
        breaker.unknown(FIRST_PAUSE)
    assert breaker.state is BreakerState.CLOSED
