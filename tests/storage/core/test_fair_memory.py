"""Memory shared fairly: what does not fit is refused, and takes nothing."""

import pytest

from recado.domain.core.errors import Unavailable
from recado.storage.core.shares.fair_memory import FairMemory


def test_an_owner_has_its_share_and_all_have_no_more_than_there_is() -> None:
    memory = FairMemory(10, each=6)
    with memory.holding("a") as of_a, memory.holding("b") as of_b:
        of_a.take(4)
        with pytest.raises(Unavailable):
            of_a.take(3)
        of_a.take(2)
        with pytest.raises(Unavailable):
            of_b.take(5)
        of_b.take(4)
        assert memory.taken == 10


def test_the_share_is_of_all_that_an_owner_does() -> None:
    memory = FairMemory(100, each=6)
    with memory.holding("a") as first, memory.holding("a") as second:
        first.take(4)
        with pytest.raises(Unavailable):
            second.take(3)


def test_all_is_given_back_also_after_an_error() -> None:
    memory = FairMemory(10, each=6)

    def too_much() -> None:
        with memory.holding("a") as held:
            held.take(6)
            held.take(1)

    with pytest.raises(Unavailable):
        too_much()
    assert memory.taken == 0
    with memory.holding("a") as held:
        held.take(6)
