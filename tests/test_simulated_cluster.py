"""The simulated cluster keeps the pace, and shows it where a rule is left out."""

import pytest
from bench.cluster_model import Rules
from bench.simulate_cluster import SETTLED, WITHOUT, cluster, main, scenarios, shards_for, simulate

SIZE = ("--hosts", "12", "--senders", "2000", "--shards", "64")


def test_no_two_owners_overlap_whatever_becomes_of_hosts_and_database(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(SIZE) == 0
    printed = capsys.readouterr().out
    assert printed.count("yes") == len(scenarios(12))
    assert "64 shards on 12 hosts: 12 hosts have any" in printed


@pytest.mark.parametrize(
    ("rule", "shown_by"),
    [
        ("wait", "a host comes"),
        ("deadline", "a host does not reach the database"),
        ("offset", "clocks ±50 ms apart: 6 stop; one ±80 ms comes"),
    ],
)
def test_a_rule_that_is_left_out_is_found_out(rule: str, shown_by: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SIZE, "--without", rule, "--only", shown_by]) == 1
    assert shown_by in capsys.readouterr().out.splitlines()[-1]


def test_all_rules_that_can_be_left_out_are_tried_here() -> None:
    assert set(WITHOUT) == {"wait", "deadline", "offset"}


def test_a_scenario_that_there_is_not_is_refused() -> None:
    with pytest.raises(SystemExit):
        main([*SIZE, "--only", "nobody knows it"])


async def test_a_killed_host_leaves_its_shards_alone_and_its_senders_pause_for_its_lease_and_a_second() -> None:
    made = cluster(12, 2_000, 64, seed=3)
    killed = next(each for each in scenarios(12) if each.name == "a host is killed")
    found = await simulate(made, killed, Rules())
    again = await simulate(made, killed, Rules())
    assert found.seen == again.seen
    (killed_one,) = {made.placement.host_of[shard] for shard in found.seen.paused}
    assert found.seen.moved == len(found.seen.paused) == made.placement.host_of.count(killed_one)
    assert 5.0 < found.seen.longest < 7.2 < SETTLED
    assert found.usual == pytest.approx(12.0, abs=0.5)


def test_shards_that_spread_evenly_grow_with_hosts() -> None:
    assert [shards_for(hosts) for hosts in (4, 100, 1_000)] == [64, 4_096, 65_536]
