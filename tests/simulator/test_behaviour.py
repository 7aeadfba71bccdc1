"""What the simulated provider draws: repeatable, in the shares asked for."""

from collections import Counter
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.simulator.behaviour import REFUSALS, Behaviour, Given, Plan, RequestShares


def plans(
    shares: RequestShares, count: int = 1, *, seed: int = 1, latency: float = 0.0, receipts: float = 0.2
) -> list[Plan]:
    behaviour = Behaviour(shares, seed=seed, latency=latency, receipt_delay=receipts)
    return [behaviour.plan() for _ in range(count)]


MIXED = RequestShares(slow_down=0.2, refuse=0.1, lost=0.1, error=0.1, duplicate=0.3, early=0.3, shuffle=0.3, silent=0.1)


def test_the_same_seed_draws_the_same_plans_and_another_seed_others() -> None:
    assert plans(MIXED, 200, latency=0.1) == plans(MIXED, 200, latency=0.1)
    assert plans(MIXED, 200, latency=0.1) != plans(MIXED, 200, latency=0.1, seed=2)


def test_requests_meet_their_fates_in_the_shares_asked_for() -> None:
    fates = Counter(plan.given for plan in plans(MIXED, 10_000))

    assert fates[Given.SLOW_DOWN] == pytest.approx(2_000, rel=0.1)
    for given_fate in (Given.REFUSED, Given.LOST, Given.FAILED):
        assert fates[given_fate] == pytest.approx(1_000, rel=0.15)
    assert fates[Given.ACCEPTED] == pytest.approx(5_000, rel=0.1)


def test_by_default_everything_is_accepted_at_once_then_delivered_then_read() -> None:
    (plan,) = plans(RequestShares())

    assert (plan.given, plan.latency, plan.early, plan.referenced) == (Given.ACCEPTED, 0.0, False, True)
    assert [receipt.status for receipt in plan.receipts] == ["delivered", "read"]
    assert plan.receipts[0].delay < plan.receipts[1].delay


@given(st.integers(), st.sampled_from(["slow_down", "refuse", "lost", "error"]))
def test_only_processed_messages_have_receipts(seed: int, fate: str) -> None:
    (plan,) = plans(RequestShares(**{fate: 1.0}), seed=seed)

    assert bool(plan.receipts) is plan.given.processed is (fate in ("lost", "error"))
    assert plan.referenced, "a message whose answer is lost can be settled only by its reference"


@pytest.mark.parametrize(
    ("shares", "statuses"),
    [
        (RequestShares(shuffle=1), ["read", "delivered"]),
        (RequestShares(duplicate=1), ["delivered", "delivered", "read", "read"]),
        (RequestShares(undelivered=1), ["failed"]),
        (RequestShares(silent=1), []),
    ],
)
def test_receipts_come_as_asked_for(shares: RequestShares, statuses: list[str]) -> None:
    for plan in plans(shares, 20):
        assert [receipt.status for receipt in plan.receipts] == statuses


def test_slow_downs_and_refusals_use_both_of_their_statuses_and_known_codes() -> None:
    assert {plan.status for plan in plans(RequestShares(slow_down=1), 50)} == {429, 503}
    refusals = plans(RequestShares(refuse=1), 100)
    assert {plan.status for plan in refusals} == {400, 422}
    assert {plan.code for plan in refusals} == set(REFUSALS)
    assert {plan.hang for plan in plans(RequestShares(lost=1), 50)} == {True, False}


def test_latencies_spread_around_their_median() -> None:
    latencies = sorted(plan.latency for plan in plans(RequestShares(), 2_001, latency=0.1))

    assert latencies[1_000] == pytest.approx(0.1, rel=0.1)
    assert 0 < latencies[0] < 0.05
    assert 0.2 < latencies[-1] <= 1.0


@pytest.mark.parametrize("name", [field.name for field in fields(RequestShares)])
@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan")])
def test_a_share_beyond_its_bounds_is_refused(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=name):
        RequestShares(**{name: value})


def test_fates_that_sum_to_more_than_all_requests_are_refused() -> None:
    with pytest.raises(ValueError, match="sum"):
        RequestShares(slow_down=0.5, lost=0.6)
