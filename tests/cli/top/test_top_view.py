"""What keys do in `recado top`."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.top.states import due, number

from recado.cli.top.live_numbers import LiveNumbers
from recado.cli.top.top_view import LEAVE, NumberMove, TopMode, TopView

KEYS = ["up", "down", "page_up", "page_down", "home", "end", "s", "S", "r", "/", "p", "u", "y", "h", "x", "escape"]


@pytest.fixture
def numbers() -> LiveNumbers:
    known = LiveNumbers()
    known.change([number(serial, queue=due(serial)) for serial in range(20)], whole=True)
    return known


def id_of(serial: int) -> str:
    return str(number(serial)["numberId"])


def press(view: TopView, *keys: str) -> None:
    for key in keys:
        assert view.press(key) is None


def selected(view: TopView) -> str | None:
    return None if view.selected is None else view.selected.id


def test_the_selected_number_stays_selected_wherever_it_moves(numbers: LiveNumbers) -> None:
    view = TopView(numbers)
    press(view, "down", "down")
    assert selected(view) == id_of(17)
    numbers.change([number(17, queue=due(100))])
    assert (selected(view), view.rows[0].id) == (id_of(17), id_of(17))
    numbers.change([], [id_of(17)])
    assert selected(view) == id_of(19)


@given(keys=st.lists(st.sampled_from(KEYS), max_size=60), page=st.integers(1, 30))
def test_whatever_is_pressed_the_selected_number_is_in_view(keys: list[str], page: int) -> None:
    numbers = LiveNumbers()
    numbers.change([number(serial, queue=due(serial)) for serial in range(20)], whole=True)
    view = TopView(numbers)
    for key in keys:
        view.press(key)
        in_view = view.in_view(page)
        assert len(in_view) == min(page, len(view.rows))
        assert (view.selected in in_view) == bool(view.rows)


@pytest.mark.parametrize(("key", "verb"), [("p", "pause"), ("u", "resume")])
def test_a_number_is_moved_after_a_yes_alone(numbers: LiveNumbers, key: str, verb: str) -> None:
    view = TopView(numbers)
    press(view, "down", key)
    numbers.change([number(0, queue=due(500))])  # another one comes first meanwhile
    assert view.press("y") == NumberMove(id_of(18), verb)  # type: ignore[arg-type]
    press(view, key, "enter", "y")
    assert (view.mode, view.question) == (TopMode.LOOKING, None)
    press(view, key, "n")
    assert view.message == "nothing was changed"


def test_where_there_is_no_number_nothing_is_asked() -> None:
    view = TopView(LiveNumbers())
    press(view, "p", "y", "down", "end")
    assert (view.mode, view.selected, view.in_view(5)) == (TopMode.LOOKING, None, ())


def test_a_filter_holds_while_it_is_typed_and_escape_takes_it_back(numbers: LiveNumbers) -> None:
    view = TopView(numbers)
    press(view, "/", *"0012x", "backspace")
    assert ([row.id for row in view.rows], view.words) == ([id_of(12)], "0012")
    press(view, "enter", "/", "q", "backspace", "backspace")
    assert view.words == "001"
    press(view, "escape")
    assert (view.words, view.mode) == ("0012", TopMode.LOOKING)


def test_orders_follow_one_another_and_turn(numbers: LiveNumbers) -> None:
    view = TopView(numbers)
    press(view, "end", "S")
    assert (view.order.name, selected(view)) == ("number", id_of(0))
    press(view, "r")
    assert selected(view) == id_of(19)
    press(view, "s")
    assert (view.order.name, view.reverse) == ("trouble", False)


def test_q_leaves_but_not_while_it_is_typed_or_asked(numbers: LiveNumbers) -> None:
    view = TopView(numbers)
    press(view, "/", "q", "escape", "p", "q", "h", "q")
    assert view.press("q") == LEAVE
