"""Placement: the same for all who know the same hosts, even, and nothing moves that need not."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from recado.domain.dispatch.placement import SHARDS, Placement, shard_of
from recado.domain.senders.sender import SenderKey

names = st.text("abcdefgh0123456789.-", min_size=1, max_size=12)
clusters = st.lists(names, min_size=1, max_size=12, unique=True)


def test_the_shard_of_a_sender_stays_what_it_is() -> None:
    """Rows would be looked for where they are not: these numbers never change."""
    organization, number = "org_0VcAmOQGa4NZByAfi26XY", "num_0VcAmOQGa4NZByAfi26XY"
    assert shard_of(SenderKey(organization, "test", "chatapp", number)) == 71
    assert shard_of(SenderKey(organization, "live", "chatapp", number)) == 184
    assert Placement(["a", "b", "c"], 8).host_of == ["c", "a", "b", "c", "b", "c", "c", "b"]


def test_senders_are_spread_evenly_over_shards() -> None:
    counted = Counter(shard_of(SenderKey("org_1", "live", "sms", f"route_{number}")) for number in range(100 * SHARDS))
    assert len(counted) == SHARDS
    assert max(counted.values()) < 150
    assert min(counted.values()) > 60


@pytest.mark.parametrize("hosts", [2, 5, 20])
def test_shards_are_spread_evenly_over_hosts(hosts: int) -> None:
    """Of a host's share, with 400 shards each, a quarter more or less is five deviations."""
    placed = Counter(Placement([f"host-{number}" for number in range(hosts)], 400 * hosts).host_of)
    assert len(placed) == hosts
    assert all(300 < count < 500 for count in placed.values())


@given(clusters, st.randoms(use_true_random=False))
@settings(max_examples=examples(100))
def test_the_order_in_which_hosts_came_makes_no_difference(hosts: list[str], random: Random) -> None:
    placement = Placement(shards=32)
    for host in random.sample(hosts, len(hosts)):
        placement.join(host)
    assert placement.host_of == Placement(hosts, 32).host_of
    assert placement.hosts == frozenset(hosts)


@given(clusters, names)
@settings(max_examples=examples(100))
def test_a_host_that_comes_takes_and_gives_back_what_it_had_and_nothing_else_moves(hosts: list[str], new: str) -> None:
    hosts = [host for host in hosts if host != new]
    placement = Placement(hosts, 64)
    before = list(placement.host_of)
    moved = placement.join(new)
    assert placement.host_of == [new if shard in moved else before[shard] for shard in range(64)]
    assert placement.host_of == Placement([*hosts, new], 64).host_of
    assert placement.leave(new) == moved
    assert placement.host_of == before


def test_who_is_known_comes_once_and_who_is_unknown_cannot_go() -> None:
    placement = Placement(["a"], 4)
    assert placement.join("a") == []
    assert placement.leave("b") == []
    assert placement.leave("a") == [0, 1, 2, 3]
    assert placement.host_of == [None] * 4
