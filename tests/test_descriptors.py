"""Who has how many of the open files (C31)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.descriptors import LARGEST_RESERVE, Descriptors


@pytest.mark.parametrize(
    ("limit", "inbound", "arriving", "outbound", "push", "webhooks"),
    [
        (65_536, 29_120, 4_160, 8_000, 4_000, 20_000),
        (32_768, 14_336, 2_048, 8_000, 2_016, 6_112),
        (16_384, 7_168, 1_024, 3_968, 992, 2_976),
        (4_096, 1_792, 256, 896, 224, 672),
        (1_024, 448, 64, 128, 32, 96),
        (256, 112, 16, 16, 16, 16),
        (64, 24, 8, 16, 16, 16),
        (16, 4, 4, 16, 16, 16),
    ],
)
def test_clients_never_take_what_the_database_and_calls_need(
    limit: int, inbound: int, arriving: int, outbound: int, push: int, webhooks: int
) -> None:
    assert Descriptors.of(limit) == (inbound, arriving, outbound, push, webhooks)


@given(st.integers(4, 200_000))
def test_connections_that_are_not_ready_yet_are_among_those_of_clients(limit: int) -> None:
    shares = Descriptors.of(limit)
    assert shares.inbound + shares.arriving == limit - min(limit // 2, LARGEST_RESERVE)
    assert shares.inbound
    assert shares.arriving
