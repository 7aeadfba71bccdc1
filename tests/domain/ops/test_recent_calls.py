"""The last calls of a connection: a ring, its success rate and its percentiles (C34.1)."""

from recado.domain.ops.recent_calls import KEPT, LONGEST, MOST_JOINED, RecentCalls


def calls(*milliseconds: int, ok: bool = True) -> RecentCalls:
    made = RecentCalls()
    for each in milliseconds:
        made.add(each, ok=ok)
    return made


def test_without_calls_nothing_is_told() -> None:
    assert RecentCalls().success_rate() is None
    assert RecentCalls().percentiles(0.5, 0.95) == [None, None]


def test_the_oldest_calls_are_forgotten() -> None:
    seen = calls(*[10_000] * KEPT, *range(KEPT))
    assert len(seen) == KEPT
    assert seen.percentiles(0.0, 0.5, 1.0) == [0, KEPT // 2, KEPT - 1]


def test_failed_calls_count_in_the_rate_and_with_their_time() -> None:
    seen = calls(10, 20, 30)
    seen.add(1_000, ok=False)
    assert seen.success_rate() == 0.75
    assert seen.percentiles(0.95) == [1_000]


def test_times_out_of_range_are_bent_to_it() -> None:
    assert calls(-5, LONGEST + 7).percentiles(0.0, 1.0) == [0, LONGEST]


def test_several_connections_are_looked_at_as_one_up_to_a_bound() -> None:
    joined = RecentCalls.joined([calls(1, 2), calls(3, ok=False)])
    assert (len(joined), joined.success_rate()) == (3, 2 / 3)
    many = RecentCalls.joined(calls(*range(KEPT)) for _ in range(1_000))
    assert MOST_JOINED <= len(many) < MOST_JOINED + KEPT
