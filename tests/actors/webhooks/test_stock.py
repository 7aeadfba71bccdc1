"""What a subscription has in memory: named by hints, read, delivered (C23.3)."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from recado.actors.webhooks.webhook_stock import LOW, PIECE, WINDOW, Stock
from recado.storage.webhooks.deliveries import Due


def due(delivery_id: str) -> Due:
    told: Any = None
    return Due(delivery_id, 0, told)


def empty() -> Stock:
    """One that has looked and found nothing."""
    stock = Stock()
    assert stock.next_look() == PIECE
    stock.add(stock.was_read([]))
    return stock


def test_what_is_named_is_read_by_its_ids_and_once() -> None:
    stock = empty()
    stock.named(["a", "b"])
    assert stock.next_named() == ["a", "b"]
    stock.named(["c"])
    assert stock.next_named() == []  # one reading at a time
    stock.add(stock.was_read([due("a"), due("b")]))
    assert [each.id for each in stock.ready] == ["a", "b"]
    assert stock.next_named() == ["c"]
    assert stock.next_look() == 0


def test_what_a_look_has_read_is_not_read_by_its_id_again() -> None:
    """It may be settled before that second reading ends, and would be delivered twice."""
    stock = Stock()
    stock.next_look()
    stock.look = False
    stock.named(["a", "b"])
    stock.add(stock.was_read([due("a")]))
    assert stock.next_named() == ["b"]


def test_beyond_the_window_names_are_forgotten_and_looked_for() -> None:
    stock = empty()
    stock.named(map(str, range(WINDOW)))
    assert stock.next_look() == 0
    stock.named(["one more"])
    assert stock.next_named() == []
    assert stock.next_look() == PIECE


def test_a_look_waits_until_few_are_left() -> None:
    stock = empty()
    stock.add([due(str(number)) for number in range(LOW)])
    stock.look = True
    assert stock.next_look() == 0
    stock.ready.popleft()
    assert stock.next_look() == PIECE
    assert stock.next_look() == 0


def test_what_is_forgotten_is_looked_for_and_what_is_under_way_stays_in_hand() -> None:
    stock = empty()
    stock.add([due("a"), due("b")])
    stock.ready.popleft()
    stock.forget_ready()
    assert (stock.in_hand, list(stock.ready), stock.look) == ({"a"}, [], True)
    stock.look = False
    stock.named(["c"])
    stock.forget_ready()
    assert stock.look


@given(st.lists(st.lists(st.integers(0, 2 * WINDOW), max_size=WINDOW), max_size=8))
def test_memory_is_bounded_and_nothing_is_lost(hints: list[list[int]]) -> None:
    """Whatever is hinted at is named, or looked for."""
    stock = empty()
    hinted: set[str] = set()
    for hint in hints:
        stock.named(map(str, hint))
        hinted.update(map(str, hint))
    named: list[str] = []
    while piece := stock.next_named():
        assert len(piece) <= PIECE
        named += piece
        stock.add(stock.was_read([]))
    assert len(named) <= WINDOW
    assert stock.look or hinted == set(named)
