"""What a subscription has in memory: named by hints, read, delivered (C23.3)."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from recado.actors.webhooks.webhook_window import LOW, PIECE, WINDOW, DeliveryWindow
from recado.storage.webhooks.deliveries import Due


def due(delivery_id: str) -> Due:
    told: Any = None
    return Due(delivery_id, 0, told)


def empty() -> DeliveryWindow:
    """One that has looked and found nothing."""
    window = DeliveryWindow()
    assert window.next_look() == PIECE
    window.add(window.was_read([]))
    return window


def test_what_is_named_is_read_by_its_ids_and_once() -> None:
    window = empty()
    window.named(["a", "b"])
    assert window.next_named() == ["a", "b"]
    window.named(["c"])
    assert window.next_named() == []  # one reading at a time
    window.add(window.was_read([due("a"), due("b")]))
    assert [each.id for each in window.ready] == ["a", "b"]
    assert window.next_named() == ["c"]
    assert window.next_look() == 0


def test_what_a_look_has_read_is_not_read_by_its_id_again() -> None:
    """It may be settled before that second reading ends, and would be delivered twice."""
    window = DeliveryWindow()
    window.next_look()
    window.look = False
    window.named(["a", "b"])
    window.add(window.was_read([due("a")]))
    assert window.next_named() == ["b"]


def test_beyond_the_window_names_are_forgotten_and_looked_for() -> None:
    window = empty()
    window.named(map(str, range(WINDOW)))
    assert window.next_look() == 0
    window.named(["one more"])
    assert window.next_named() == []
    assert window.next_look() == PIECE


def test_a_look_waits_until_few_are_left() -> None:
    window = empty()
    window.add([due(str(number)) for number in range(LOW)])
    window.look = True
    assert window.next_look() == 0
    window.ready.popleft()
    assert window.next_look() == PIECE
    assert window.next_look() == 0


def test_what_is_forgotten_is_looked_for_and_what_is_under_way_stays_in_hand() -> None:
    window = empty()
    window.add([due("a"), due("b")])
    window.ready.popleft()
    window.forget_ready()
    assert (window.in_hand, list(window.ready), window.look) == ({"a"}, [], True)
    window.look = False
    window.named(["c"])
    window.forget_ready()
    assert window.look


@given(st.lists(st.lists(st.integers(0, 2 * WINDOW), max_size=WINDOW), max_size=8))
def test_memory_is_bounded_and_nothing_is_lost(hints: list[list[int]]) -> None:
    """Whatever is hinted at is named, or looked for."""
    window = empty()
    hinted: set[str] = set()
    for hint in hints:
        window.named(map(str, hint))
        hinted.update(map(str, hint))
    named: list[str] = []
    while piece := window.next_named():
        assert len(piece) <= PIECE
        named += piece
        window.add(window.was_read([]))
    assert len(named) <= WINDOW
    assert window.look or hinted == set(named)
