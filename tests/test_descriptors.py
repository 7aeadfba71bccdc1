"""Who has how many of the open files (C31)."""

import pytest

from recado.descriptors import Descriptors


@pytest.mark.parametrize(
    ("limit", "inbound", "outbound"),
    [(65_536, 57_344, 3_968), (16_384, 8_192, 3_968), (4_096, 2_048, 896), (1_024, 512, 128), (256, 128, 16)],
)
def test_clients_never_take_what_the_database_and_calls_need(limit: int, inbound: int, outbound: int) -> None:
    assert Descriptors.of(limit) == (inbound, outbound)
