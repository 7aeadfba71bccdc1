"""How many calls at once an endpoint gets (C23.3.1)."""

from recado.actors.webhooks.webhook_concurrency import CALLS_OF_A_SUBSCRIPTION, FIRST_CALLS, ConcurrencyLimit


def room(limit: ConcurrencyLimit) -> int:
    """How many calls may begin beside those in flight."""
    begun = 0
    while limit.has_room:
        limit.in_flight.add(f"more {begun}")
        begun += 1
    limit.in_flight -= {f"more {number}" for number in range(begun)}
    return begun


def test_each_success_makes_room_for_one_more_up_to_a_hundred() -> None:
    limit = ConcurrencyLimit()
    assert room(limit) == FIRST_CALLS == 10
    for _ in range(5):
        limit.succeeded()
    assert room(limit) == 15
    for _ in range(200):
        limit.succeeded()
    assert room(limit) == CALLS_OF_A_SUBSCRIPTION == 100


def test_a_failure_halves_the_room_but_one_call_is_always_made() -> None:
    limit = ConcurrencyLimit()
    rooms = []
    for failures in range(6):
        limit.failed(0.0, failures)
        rooms.append(room(limit))
    assert rooms == [5, 2, 1, 1, 1, 1]


def test_several_failures_in_a_row_pause_it_until_the_next_success() -> None:
    limit = ConcurrencyLimit()
    limit.failed(100.0, 3)
    assert limit.pause(100.0) <= 0
    limit.failed(100.0, 8)
    assert 0.4 < limit.pause(100.0) <= 2
    assert limit.pause(103.0) <= 0
    limit.succeeded()
    assert limit.pause(100.0) <= 0
