"""The standing of a wallet (C25.2)."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.domain.billing.wallet import DEPLETED, LOW_BALANCE, WalletStatus, crossing, status_of

OK, LOW, GONE = WalletStatus.OK, WalletStatus.LOW, WalletStatus.DEPLETED
STATES = st.sampled_from(list(WalletStatus))
COINS = st.integers(-1_000, 10_000)
THRESHOLDS = st.integers(0, 5_000)


@pytest.mark.parametrize(
    ("before", "available", "after", "event"),
    [
        (OK, 1_000, OK, None),
        (OK, 999, LOW, LOW_BALANCE),
        (OK, 0, GONE, DEPLETED),
        (LOW, 0, GONE, DEPLETED),
        (LOW, 1_099, LOW, None),
        (LOW, 1_100, OK, None),
        (GONE, -5, GONE, None),
        (GONE, 1, LOW, None),
        (GONE, 1_099, LOW, None),
        (GONE, 1_100, OK, None),
    ],
)
def test_each_move_of_the_table(before: WalletStatus, available: int, after: WalletStatus, event: str | None) -> None:
    assert status_of(before, available, 1_000) is after
    assert crossing(before, after) == event


@given(STATES, st.integers(1, 10_000))
def test_without_a_threshold_nothing_is_ever_low(before: WalletStatus, available: int) -> None:
    assert status_of(before, available, 0) is OK
    assert status_of(before, 0, 0) is GONE


@given(STATES, COINS, THRESHOLDS)
def test_the_same_balance_moves_nothing_a_second_time(before: WalletStatus, available: int, threshold: int) -> None:
    after = status_of(before, available, threshold)
    assert status_of(after, available, threshold) is after
    assert crossing(after, after) is None


@given(st.lists(COINS, min_size=2, max_size=30), THRESHOLDS)
def test_between_two_events_of_a_name_the_wallet_had_recovered(balances: list[int], threshold: int) -> None:
    states = [OK]
    for available in balances:
        states.append(status_of(states[-1], available, threshold))
    told = [(position, crossing(before, after)) for position, (before, after) in enumerate(pairwise(states), 1)]
    for event, recovered in ((LOW_BALANCE, {OK}), (DEPLETED, {OK, LOW})):
        positions = [position for position, name in told if name == event]
        for first, second in pairwise(positions):
            assert recovered & set(states[first:second])
