"""Who has how many of the open files (C31)."""

import pytest

from recado.descriptors import Descriptors


@pytest.mark.parametrize(
    ("limit", "inbound", "outbound", "webhooks"),
    [
        (65_536, 37_280, 8_000, 20_000),
        (32_768, 16_384, 8_000, 8_128),
        (16_384, 8_192, 3_968, 3_968),
        (4_096, 2_048, 896, 896),
        (1_024, 512, 128, 128),
        (256, 128, 16, 16),
    ],
)
def test_clients_never_take_what_the_database_and_calls_need(
    limit: int, inbound: int, outbound: int, webhooks: int
) -> None:
    assert Descriptors.of(limit) == (inbound, outbound, webhooks)
