"""The numbers of `recado top`: what changes is put in place, sorted and filtered (C34.1)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.top.states import due, number

from recado.cli.top.live_numbers import ORDERS, LiveNumbers, arranged, row_of
from recado.domain.ops.trouble import Trouble

BY = {order.name: order for order in ORDERS}


def ids(states: list[dict[str, Any]]) -> list[str]:
    return [state["numberId"] for state in states]


looks = st.lists(
    st.tuples(st.dictionaries(st.integers(0, 8), st.integers(0, 50)), st.sets(st.integers(0, 8)), st.booleans())
)


@given(looks=looks)
def test_changes_leave_what_was_told_last_of_each(looks: list[tuple[dict[int, int], set[int], bool]]) -> None:
    numbers, model = LiveNumbers(), dict[int, int]()
    for items, gone, whole in looks:
        states = [number(serial, queue=due(count)) for serial, count in items.items()]
        numbers.change(states, [number(serial)["numberId"] for serial in gone], whole=whole)
        model = {**({} if whole else model), **items}
        for serial in gone:
            model.pop(serial, None)
        shown = numbers.shown(BY["queue"])
        assert [(row.due, row.id) for row in shown] == sorted(
            ((count, number(serial)["numberId"]) for serial, count in model.items()),
            key=lambda each: (-each[0], each[1]),
        )


@pytest.mark.parametrize(
    ("order", "first"),
    [
        ("trouble", number(3, breaker="open")),
        ("queue", number(3, queue=due(2))),
        ("age", number(3, oldestAgeSeconds=9)),
        ("sent", number(3, rate={"perSecond": 80.0, "tokens": 0, "sentLastSecond": 1, "sentLastMinute": 1})),
        ("errors", number(3, errorRate5m=0.05)),
        ("number", number(0)),
    ],
)
def test_each_order_has_its_first(order: str, first: dict[str, Any]) -> None:
    rows = [row_of(state) for state in (number(1), number(2), first, number(4))]
    usual = [row.id for row in arranged(rows, BY[order])]
    assert usual[0] == first["numberId"]
    assert arranged(rows, BY[order], reverse=True)[-1].id == first["numberId"]
    assert set(usual) == {row.id for row in rows}


def test_the_most_troubled_come_first_as_the_service_has_them() -> None:
    states = [
        number(1, queue=due(500)),
        number(2, queue=due(1), holding={"reason": "no_connection"}),
        number(3, queue=due(1), holding={"reason": "operator_paused"}),
        number(4, errorRate5m=0.2),
    ]
    rows = arranged(map(row_of, states), BY["trouble"])
    assert [row.trouble for row in rows] == [Trouble.DOWN, Trouble.HELD, Trouble.DOUBTED, Trouble.NONE]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("", {1, 2, 3}),
        ("PAUSED", {2}),
        ("0003", {3}),
        ("circuit", {3}),
        ("closed", set()),
        ("131026", {1}),
        ("test operator", {2}),
        ("live", set()),
    ],
)
def test_a_filter_finds_what_has_all_of_its_words(words: str, found: set[int]) -> None:
    states = [
        number(1, lastErrors={"131026": 4}),
        number(2, holding={"reason": "operator_paused"}),
        number(3, breaker="half_open"),
    ]
    rows = arranged(map(row_of, states), BY["number"], words=words)
    assert [row.id for row in rows] == [number(serial)["numberId"] for serial in sorted(found)]


def test_a_number_that_the_stream_does_not_tell_of_is_as_the_list_had_it() -> None:
    numbers = LiveNumbers()
    numbers.change([number(1, inFlight=1)], whole=True)
    numbers.take_list([number(1, inFlight=7), number(2, inFlight=7)])
    first, second = numbers.shown(BY["number"])
    assert (first.state["inFlight"], second.state["inFlight"]) == (1, 7)
    assert (numbers.is_live(first.id), numbers.is_live(second.id), numbers.live, len(numbers)) == (True, False, 1, 2)
    numbers.put(number(2, inFlight=3))
    assert [row.state["inFlight"] for row in numbers.shown(BY["number"])] == [1, 3]
    numbers.take_list(())
    assert [row.id for row in numbers.shown(BY["number"])] == [first.id]


def test_what_a_newer_service_says_is_no_trouble() -> None:
    row = row_of(number(1, status="dreaming", breaker="ajar", qualityRating="blue", holding={"reason": "whim"}))
    assert (row.trouble, row.held_by) == (Trouble.NONE, "whim")
