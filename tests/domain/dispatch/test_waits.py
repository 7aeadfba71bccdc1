"""How long a message waited, and for what (C34.4)."""

from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from recado.domain.dispatch.waits import REMEMBERED, Closings, Held, sum_up, sum_up_one
from recado.domain.messages.message import WaitReason

T0 = datetime(2026, 3, 2, 12, tzinfo=UTC)
PAUSED, DOWN, RATE, RETRY = WaitReason.OPERATOR_PAUSED, WaitReason.NO_CONNECTION, WaitReason.RATE, WaitReason.RETRY


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def test_what_nothing_held_waited_for_its_turn() -> None:
    assert sum_up(at(0), at(5), []) == sum_up_one(at(0), at(5), None) == {RATE: 5_000}


def test_a_wait_of_less_than_a_second_is_not_told() -> None:
    assert sum_up(at(0), at(10), [[(at(1), at(1.9), PAUSED), (at(2), at(10), DOWN)]]) == {
        DOWN: 8_000,
        RATE: 1_100,
    }


def test_waits_are_summed_by_reason() -> None:
    closings = Closings()
    for begin, reason in ((1, PAUSED), (3, None), (4, DOWN), (6, PAUSED), (8, None)):
        closings.note(reason, at(begin))

    assert sum_up(at(0), at(10), [closings.until(at(10))]) == {PAUSED: 4_000, DOWN: 2_000, RATE: 4_000}


def test_what_was_closed_before_the_message_was_due_counts_from_then_and_what_is_closed_still_until_it_left() -> None:
    closings = Closings()
    closings.note(PAUSED, at(10), since=at(0))

    assert sum_up(at(4), at(12), [closings.until(at(12))]) == {PAUSED: 8_000}


def test_time_that_two_hold_is_the_first_ones() -> None:
    layers = [[(at(2), at(6), PAUSED)], [(at(0), at(3), RETRY), (at(5), at(9), RETRY)]]

    assert sum_up(at(0), at(10), layers) == {PAUSED: 4_000, RETRY: 5_000, RATE: 1_000}


def test_a_call_is_no_wait() -> None:
    assert sum_up(at(0), at(10), [[(at(1), at(5), None), (at(5), at(10), RETRY)]]) == {RETRY: 5_000, RATE: 1_000}


def test_the_last_closings_are_remembered() -> None:
    closings = Closings()
    for turn in range(REMEMBERED + 6):
        closings.note(DOWN, at(2 * turn))
        closings.note(None, at(2 * turn + 1))

    assert len(list(closings.until(at(1_000)))) == REMEMBERED


@settings(max_examples=examples(500))
@given(
    st.lists(st.tuples(st.integers(0, 9), st.sampled_from([PAUSED, DOWN, RATE, None])), max_size=REMEMBERED + 9),
    st.integers(-9, 9),
)
def test_one_layer_is_summed_up_alike_without_a_look_at_each_closing(
    drawn: list[tuple[int, WaitReason | None]], due: int
) -> None:
    closings, now = Closings(), 0
    for seconds, reason in drawn:
        now += seconds
        closings.note(reason, at(now))
        told = sum_up_one(at(due), at(now + 3), closings)
        assert told is None or told == sum_up(at(due), at(now + 3), [closings.until(at(now + 3))])
    if due <= 0:
        assert sum_up_one(at(due), at(now + 3), closings) is not None


@settings(max_examples=examples(500))
@given(
    st.lists(
        st.lists(st.tuples(st.integers(-20, 60), st.integers(1, 30), st.sampled_from([PAUSED, DOWN, RETRY, None]))),
        max_size=3,
    ),
    st.integers(0, 50),
)
def test_the_waits_are_never_longer_than_the_time(
    drawn: list[list[tuple[int, int, WaitReason | None]]], end: int
) -> None:
    layers: list[list[Held]] = []
    for times in drawn:
        layer: list[Held] = []
        for begin, length, reason in sorted(times, key=lambda each: each[0]):
            if not layer or at(begin) >= layer[-1][1]:
                layer.append((at(begin), at(begin + length), reason))
        layers.append(layer)

    waited = sum_up(at(0), at(end), layers)

    times = [(begin, until) for layer in layers for begin, until, _ in layer]
    unheld = sum(1 for second in range(end) if not any(begin <= at(second) < until for begin, until in times))
    assert sum(waited.values()) <= end * 1_000
    assert waited.get(RATE, 0) == unheld * 1_000
