"""A number before its noun, in the singular for one."""

import pytest

from recado.domain.core.counting import counted


@pytest.mark.parametrize(
    ("told", "count", "nouns"),
    [
        ("0 messages", 0, ("message",)),
        ("1 message", 1, ("message",)),
        ("1,200 messages", 1_200, ("message",)),
        ("1 delivery", 1, ("delivery", "deliveries")),
        ("2 deliveries", 2, ("delivery", "deliveries")),
    ],
)
def test_one_is_told_in_the_singular(told: str, count: int, nouns: tuple[str, ...]) -> None:
    assert counted(count, *nouns) == told
