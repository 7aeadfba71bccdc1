"""C14.5.1: turns by weight, and no class passed over longer than its share allows."""

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.domain.core.fairness import SmoothRoundRobin

WEIGHTS = (16, 4, 1)
some_classes = st.sets(st.integers(0, 2), min_size=1)


def test_turns_follow_the_weights_and_come_without_runs() -> None:
    turns = SmoothRoundRobin(WEIGHTS)
    picks = [turns.pick((0, 1, 2)) for _ in range(21 * 50)]
    assert Counter(picks) == {0: 16 * 50, 1: 4 * 50, 2: 50}
    normal = [index for index, pick in enumerate(picks) if pick == 1]
    assert {later - earlier for earlier, later in pairwise(normal)} <= {4, 5, 6}


@given(st.lists(some_classes, max_size=200))
def test_a_turn_goes_to_a_class_that_has_something_to_send(waiting: list[set[int]]) -> None:
    turns = SmoothRoundRobin(WEIGHTS)
    for nonempty in waiting:
        assert turns.pick(nonempty) in nonempty


def longest_passing_over(turns: SmoothRoundRobin, waiting: list[set[int]]) -> int:
    """The most turns in a row that `bulk` had something to send and others went; turns without it do not count."""
    longest = passed_over = 0
    for nonempty in waiting:
        if turns.pick(nonempty) == 2:
            passed_over = 0
        elif 2 in nonempty:
            passed_over += 1
            longest = max(longest, passed_over)
    return longest


@given(st.lists(st.sampled_from([{0, 2}, {0, 1, 2}, {1, 2}, {2}, {0}, {0, 1}]), max_size=300))
def test_bulk_that_waits_gets_one_of_every_21_turns_whatever_the_others_do(waiting: list[set[int]]) -> None:
    assert longest_passing_over(SmoothRoundRobin(WEIGHTS), waiting) <= 20


def test_of_two_classes_that_waited_their_share_the_lighter_one_goes_first() -> None:
    # A history after which `normal` and `bulk` come due with the same turn.
    letters = {"a": {0, 1, 2}, "b": {0, 1}, "c": {0, 2}}
    history = "aaccaaacabaccabbbabbbbabbbabbbbabbbbabbbbabbbbabbbbc"
    assert longest_passing_over(SmoothRoundRobin(WEIGHTS), [letters[letter] for letter in history]) <= 20


def test_bulk_is_not_postponed_by_classes_that_come_and_go() -> None:
    turns = SmoothRoundRobin(WEIGHTS)
    picks = [turns.pick({0, 2} if index % 3 else {1, 2}) for index in range(2100)]
    bulk = [index for index, pick in enumerate(picks) if pick == 2]
    assert max(later - earlier for earlier, later in pairwise(bulk)) <= 21


@given(st.lists(some_classes, max_size=100))
def test_the_weights_hold_again_after_any_history(history: list[set[int]]) -> None:
    turns = SmoothRoundRobin(WEIGHTS)
    for nonempty in history:
        turns.pick(nonempty)
    counts = Counter(turns.pick({0, 1, 2}) for _ in range(210))
    assert abs(counts[0] - 160) <= 4
    assert abs(counts[1] - 40) <= 4
    assert abs(counts[2] - 10) <= 2


def test_without_anything_to_send_nobody_has_a_turn() -> None:
    with pytest.raises(ValueError, match="no class"):
        SmoothRoundRobin(WEIGHTS).pick(())
