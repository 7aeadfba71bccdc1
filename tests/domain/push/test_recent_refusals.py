"""Refusals of the last minutes: remembered while there is room, forgotten with a moment that says so."""

import math

from recado.domain.push.recent_refusals import RecentRefusals


def refusals(most: int = 100, of_organization: int = 20) -> RecentRefusals:
    return RecentRefusals(seconds=60.0, most=most, most_of_organization=of_organization)


def test_a_refusal_is_known_to_whoever_looked_before_it_and_to_nobody_else() -> None:
    known = refusals()
    known.add("org_1", ["dev_1"], 10.0)
    assert known.since("org_1", ["dev_2", "dev_1"], 10.0)
    assert not known.since("org_1", ["dev_1"], 10.1)
    assert not known.since("org_1", ["dev_2"], 0.0)
    assert not known.since("org_2", ["dev_1"], 0.0)


def test_the_last_refusal_of_a_device_counts_and_takes_no_more_room() -> None:
    known = refusals()
    for now in range(1_000):
        known.add("org_1", ["dev_1"], float(now) / 1_000)
    assert len(known) == 1
    assert known.since("org_1", ["dev_1"], 0.999)


def test_of_an_organization_no_more_than_its_share_is_remembered_and_what_is_forgotten_is_told() -> None:
    known = refusals(of_organization=20)
    known.add("org_2", ["dev_0"], 0.0)
    for now in range(95):
        known.add("org_1", [now], float(now))
        assert len(known) <= 21
        asked_at = [at for at in range(now + 1) if at > known.forgotten("org_1")]
        assert len(asked_at) >= 10 or now < 20
        assert all(known.since("org_1", [at], float(at)) for at in asked_at)
    assert known.forgotten("org_1") >= 70.0
    assert known.since("org_2", ["dev_0"], 0.0)
    assert known.forgotten("org_2") == -math.inf


def test_beyond_the_bound_in_all_whoever_has_most_forgets() -> None:
    known = refusals(most=100, of_organization=80)
    known.add("org_1", range(70), 1.0)
    for n in range(10):
        known.add(f"small_{n}", range(5), 2.0 + n)
        assert len(known) <= 100
    assert known.forgotten("org_1") >= 1.0
    assert all(known.forgotten(f"small_{n}") == -math.inf for n in range(10))
    assert all(known.since(f"small_{n}", [place], 2.0) for n in range(10) for place in range(5))


def test_more_at_once_than_is_remembered_is_as_good_as_all_of_an_organization_looked_at_again() -> None:
    known = refusals(of_organization=20)
    known.add("org_1", range(1_000), 5.0)
    assert len(known) <= 20
    assert known.forgotten("org_1") == 5.0


def test_after_its_time_a_refusal_goes_and_so_does_its_organization() -> None:
    known = refusals()
    known.add("org_1", ["dev_1"], 0.0)
    known.add("org_2", ["dev_2"], 100.0)
    known.tidy(119.0)
    assert len(known) == 2
    known.tidy(121.0)
    assert len(known) == 1
    known.add("org_2", ["dev_3"], 161.0)
    known.add("org_2", ["dev_4"], 222.0)
    assert not known.since("org_2", ["dev_2"], 0.0)
    assert known.since("org_2", ["dev_3"], 161.0)
    assert known.forgotten("org_2") == 161.0
