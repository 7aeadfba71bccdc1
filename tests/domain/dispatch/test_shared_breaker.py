"""Whose failures open the circuit of a shared gateway, and for whom (C16.3)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.domain.dispatch.breaker import FIRST_PAUSE, IN_A_ROW, BreakerState
from recado.domain.dispatch.shared_breaker import (
    OF_ONE_IN_A_ROW,
    OF_ONE_OF_THE_LAST,
    FailuresInARow,
    OrganizationBreaker,
    SharedBreaker,
)

CLOSED, OPEN, HALF_OPEN = BreakerState.CLOSED, BreakerState.OPEN, BreakerState.HALF_OPEN


class Organizations:
    """Organizations at one gateway, a letter each: `told` is what their calls ended with, one after another.

    `A+`: answered. `A?`: unknown. `A-`: no connection. `A~`: the provider asked to slow down for no time.
    """

    def __init__(self) -> None:
        self.shared = SharedBreaker()
        self.each: dict[str, OrganizationBreaker] = {}

    def of(self, name: str) -> OrganizationBreaker:
        return self.each.setdefault(name, OrganizationBreaker(self.shared, name))

    def told(self, outcomes: str, *, now: float = 0.0) -> "Organizations":
        for name, outcome in outcomes.split():
            breaker = self.of(name)
            breaker.began()
            match outcome:
                case "+":
                    breaker.answered(self.shared.pauses)
                case "?":
                    breaker.unknown(now)
                case "-":
                    breaker.down(now)
                case "~":
                    breaker.slow_down(now, 0.0, self.shared.pauses)
        return self


@pytest.mark.parametrize(
    ("outcomes", "shared", "own"),
    [
        ("A? A? A? A? A?", CLOSED, {"A"}),
        ("A? A? A? A? A? A? A? A? A? A? A? A?", CLOSED, {"A"}),
        ("A? A? A+ A? A?", CLOSED, set()),
        ("A? B+ A? B+ A? B+ A? B+ A? B+", CLOSED, {"A"}),  # the others' answers say nothing of what A sends
        ("A? B? A? B? A?", OPEN, set()),  # as fast as one organization alone had it
        ("A? B? C? D? E?", OPEN, set()),
        ("A? A? A? A? B?", CLOSED, set()),
        ("A? A? A? A? B? B?", OPEN, set()),
        ("A? A? A? A? B+ B? B?", CLOSED, set()),
        ("A- A- A- A- A-", OPEN, set()),  # nobody's doing
        ("A- B- A- B- A-", OPEN, set()),
        ("A? A? A? A- A-", OPEN, set()),
        ("A- A- A+ A- A- A-", CLOSED, set()),
        ("A- A- A- A- B+ A-", CLOSED, set()),
        ("A? A? A? A? A~ A?", CLOSED, set()),
    ],
)
def test_failures_open_the_circuit_of_whose_they_are(outcomes: str, shared: BreakerState, own: set[str]) -> None:
    organizations = Organizations().told(outcomes)
    assert organizations.shared.state is shared
    assert {name for name, breaker in organizations.each.items() if breaker.own.state is OPEN} == own


def test_half_of_the_last_twenty_open_it_for_all_when_four_of_them_are_of_others() -> None:
    organizations = Organizations().told("A? A? A+ " * 4 + "A? A?")
    assert organizations.shared.state is CLOSED
    assert organizations.of("A").own.state is OPEN
    others = 10 - OF_ONE_OF_THE_LAST
    organizations = Organizations().told("A? B+ A? B+ A? B+ A? A+ A? B+ A? B+ " + "B? C+ " * (others - 1))
    assert organizations.shared.state is CLOSED
    assert organizations.told("B?").shared.state is OPEN


@given(st.lists(st.sampled_from(["A?", "A?", "A+", "A~", "B+", "C+"]), max_size=200), st.lists(st.booleans()))
def test_nothing_that_one_organization_sends_holds_another(outcomes: list[str], unrecorded: list[bool]) -> None:
    organizations = Organizations()
    for position, outcome in enumerate(outcomes):
        now = float(position)
        if outcome[0] == "A" and organizations.of("A").own.calls_allowed(now, 0) == 0:
            continue  # it waits for its probe
        organizations.told(outcome, now=now)
        if position < len(unrecorded) and unrecorded[position]:
            organizations.of("A").unrecorded(now)
        assert organizations.shared.state is CLOSED
        assert organizations.of("B").state is CLOSED
        assert organizations.of("B").ready_at() <= now


@given(st.integers(2, 8), st.integers(1, 4))
def test_when_no_call_of_any_of_several_is_answered_it_opens_at_the_fifth_in_turns(count: int, first: int) -> None:
    names = "ABCDEFGH"[:count]
    organizations = Organizations().told(f"{names[first % count]}+")
    for position in range(IN_A_ROW):
        assert organizations.shared.state is CLOSED
        organizations.told(f"{names[position % count]}?")
    assert organizations.shared.state is OPEN
    assert organizations.shared.ready_at() == FIRST_PAUSE


@given(st.lists(st.sampled_from("ABCD"), min_size=1, max_size=60))
def test_what_opens_for_all_comes_at_the_latest_with_two_failures_of_others(failing: list[str]) -> None:
    """However the failures of several lie among each other: what is beyond three of one does not count."""
    organizations = Organizations()
    for position, name in enumerate(failing):
        organizations.told(f"{name}?")
        until_now = failing[: position + 1]
        counted = sum(min(until_now.count(each), OF_ONE_IN_A_ROW) for each in set(until_now))
        assert (organizations.shared.state is OPEN) == (counted >= IN_A_ROW)
        if organizations.shared.state is OPEN:
            break


def opened() -> Organizations:
    """A gateway that was away, and whose next call is the probe."""
    return Organizations().told("A- B- A- B- A-")


def test_the_probe_of_one_whose_messages_get_no_answer_does_not_keep_the_gateway_closed_to_others() -> None:
    organizations = opened()
    for now in (5.0, 5.1, 10.1, 20.1, 40.1):  # again and again, as far as its own circuit lets it
        organizations.told("A?", now=now)
        assert organizations.shared.state is OPEN
        assert organizations.shared.ready_at() == now  # for another one
        assert organizations.of("A").ready_at() > now
    assert organizations.told("B+", now=40.2).shared.state is CLOSED
    assert organizations.of("A").state is OPEN


def test_a_probe_of_another_that_gets_no_answer_either_doubles_the_pause() -> None:
    organizations = opened().told("A? B?", now=5.0)
    assert organizations.shared.ready_at() == 5.0 + 2 * FIRST_PAUSE
    organizations.told("B? C-", now=15.0)
    assert organizations.shared.ready_at() == 15.0 + 4 * FIRST_PAUSE


def test_an_organization_comes_back_by_its_own_probe() -> None:
    organizations = Organizations().told("A? A? A? A? A?")
    own = organizations.of("A").own
    assert (own.ready_at(), own.calls_allowed(4.9, 0), own.calls_allowed(5.0, 0)) == (FIRST_PAUSE, 0, 1)
    organizations.told("A-", now=5.0)
    assert own.ready_at() == 5.0 + 2 * FIRST_PAUSE
    organizations.told("A+", now=15.0)
    assert (own.state, own.clean) == (CLOSED, True)


def test_a_probe_whose_outcome_could_not_be_recorded_ends() -> None:
    organizations = Organizations().told("A? A? A? A? A?")
    breaker = organizations.of("A")
    breaker.began()
    assert breaker.state is HALF_OPEN
    breaker.unrecorded(5.0)
    assert (breaker.own.state, organizations.shared.state) == (OPEN, CLOSED)
    organizations = opened()
    breaker = organizations.of("B")
    breaker.began()
    breaker.unrecorded(5.0)
    assert organizations.shared.state is OPEN


def test_a_probe_that_the_provider_never_saw_leaves_its_place_to_the_next_at_once() -> None:
    organizations = opened()
    breaker = organizations.of("B")
    breaker.began()
    assert organizations.shared.state is HALF_OPEN
    breaker.passed_by()
    assert (organizations.shared.state, organizations.shared.ready_at()) == (OPEN, FIRST_PAUSE)
    assert organizations.shared.calls_allowed(FIRST_PAUSE, 0) == 1
    organizations.told("B+", now=FIRST_PAUSE)
    assert organizations.shared.state is CLOSED


def test_what_began_before_the_circuit_opened_says_nothing_new() -> None:
    organizations = opened()
    for _ in range(9):
        organizations.of("A").unknown(1.0)
        organizations.of("B").answered(0)
    assert organizations.shared.ready_at() == FIRST_PAUSE
    assert organizations.of("A").own.state is CLOSED


def test_failures_of_one_count_up_to_their_part_and_start_over_with_an_answer() -> None:
    failures = FailuresInARow(2)
    for whose in ("A", "A", "A", "B", None, None):
        failures.add(whose)
    assert failures.total == 5
    failures.reset()
    failures.add("A")
    assert failures.total == 1
