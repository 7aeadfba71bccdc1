"""The address of the simulator that is suppressed without an entry (C10.5)."""

import pytest

from recado.domain.email.suppression import always_suppressed


@pytest.mark.parametrize(
    "address",
    ["suppressionlist@simulator.test", "SuppressionList@Simulator.TEST", "suppressionlist+order-7@simulator.test"],
)
def test_the_address_of_the_simulator_is_suppressed(address: str) -> None:
    assert always_suppressed(address, "simulator.test")


@pytest.mark.parametrize(
    "address",
    [
        "suppressionlist@example.com", "success@simulator.test", "suppressionlists@simulator.test",
        "a+suppressionlist@simulator.test", "suppressionlist@sub.simulator.test", "suppressionlist",
    ],
)  # fmt: skip
def test_others_are_not(address: str) -> None:
    assert not always_suppressed(address, "simulator.test")
