"""Waits between tries (C15.4, C14.5.4)."""

import pytest

from recado.domain.dispatch.retry import MAX_ATTEMPTS, backoff, retry_delay


def test_a_message_is_tried_five_times_with_growing_waits() -> None:
    waits = [retry_delay(attempts) for attempts in range(1, MAX_ATTEMPTS + 1)]
    assert waits == [5, 30, 120, 600, None]


@pytest.mark.parametrize(("n", "seconds"), [(1, 5), (2, 10), (3, 20), (6, 160), (7, 300), (10_000, 300)])
def test_a_backoff_doubles_up_to_its_ceiling(n: int, seconds: float) -> None:
    assert backoff(n, first=5.0, ceiling=300.0) == seconds
