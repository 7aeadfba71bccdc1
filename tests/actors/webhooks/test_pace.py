"""How many calls at once an endpoint gets (C23.3.1)."""

from recado.actors.webhooks.webhook_pace import CALLS_OF_A_SUBSCRIPTION, FIRST_CALLS, CallPace


def room(pace: CallPace) -> int:
    """How many calls may begin beside those in flight."""
    begun = 0
    while pace.has_room:
        pace.in_flight.add(f"more {begun}")
        begun += 1
    pace.in_flight -= {f"more {number}" for number in range(begun)}
    return begun


def test_each_success_makes_room_for_one_more_up_to_a_hundred() -> None:
    pace = CallPace()
    assert room(pace) == FIRST_CALLS == 10
    for _ in range(5):
        pace.succeeded()
    assert room(pace) == 15
    for _ in range(200):
        pace.succeeded()
    assert room(pace) == CALLS_OF_A_SUBSCRIPTION == 100


def test_a_failure_halves_the_room_but_one_call_is_always_made() -> None:
    pace = CallPace()
    rooms = []
    for failures in range(6):
        pace.failed(0.0, failures)
        rooms.append(room(pace))
    assert rooms == [5, 2, 1, 1, 1, 1]


def test_several_failures_in_a_row_pause_it_until_the_next_success() -> None:
    pace = CallPace()
    pace.failed(100.0, 3)
    assert pace.pause(100.0) <= 0
    pace.failed(100.0, 8)
    assert 0.4 < pace.pause(100.0) <= 2
    assert pace.pause(103.0) <= 0
    pace.succeeded()
    assert pace.pause(100.0) <= 0
