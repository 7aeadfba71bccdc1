"""Leases: whoever holds one stops before it ends; whoever follows opens when no sliding second can overflow."""

import math
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from recado.domain.dispatch.leases import (
    MARGIN,
    MOST_OFFSET,
    RENEWED_EVERY,
    TOLERANCE,
    TTL,
    WINDOW,
    Lease,
    LeaseVerdict,
    closed_at,
    endless,
    look,
    may_send,
    offset_of,
    opens_in,
)

seconds = st.floats(0.0, 20.0, allow_nan=False)


@pytest.mark.parametrize(
    ("left", "renewed", "dead", "take_over", "follows"),
    [
        (4.0, False, False, False, LeaseVerdict.WAIT),
        (4.0, True, False, False, LeaseVerdict.REFUSE),
        (0.0, False, False, False, LeaseVerdict.TAKE),
        (-30.0, True, False, False, LeaseVerdict.TAKE),
        (4.0, True, True, False, LeaseVerdict.TAKE),
        (4.0, True, False, True, LeaseVerdict.TAKE),
    ],
)
def test_what_follows_of_the_lease_of_another(
    left: float, renewed: bool, dead: bool, take_over: bool, follows: LeaseVerdict
) -> None:
    assert look(left=left, renewed=renewed, dead=dead, take_over=take_over) is follows


def test_a_lease_holds_from_its_first_renewal_and_one_beside_which_there_is_no_other_always() -> None:
    now = [100.0]
    lease = Lease(lambda: now[0])
    assert not lease.holds()
    lease.renewed(lease.asked())
    assert lease.holds()
    now[0] += TTL - MARGIN
    assert not lease.holds()
    lease.renewed(lease.asked())
    lease.lost()
    assert not lease.holds()
    assert endless().holds()


def test_an_answer_that_comes_late_shortens_no_lease() -> None:
    lease = Lease(lambda: 6.0)
    lease.renewed(5.0)
    lease.renewed(1.0)
    assert lease.holds()


@pytest.mark.parametrize(
    ("free_at", "dead_at", "closed"), [(None, None, 9.0), (None, 5.0, 5.0), (None, 12.0, 9.0), (4.0, 5.0, 4.0)]
)
def test_when_an_owner_begins_no_call_any_more(free_at: float | None, dead_at: float | None, closed: float) -> None:
    assert closed_at(9.0, free_at=free_at, dead_at=dead_at) == closed


def test_a_clock_that_is_too_far_apart_sends_nothing() -> None:
    assert may_send(MOST_OFFSET)
    assert not may_send(MOST_OFFSET + 0.001)


def test_where_nobody_was_before_nobody_waits() -> None:
    assert opens_in(None, 0.04) == 0.0
    assert opens_in(-10.0, 0.0) < 0.0


@given(
    st.floats(-100.0, 100.0),
    st.lists(st.tuples(seconds, st.floats(0.0, 3.0), st.floats(0.0, 1.0)), min_size=1, max_size=5),
)
@settings(max_examples=examples(300))
def test_clocks_are_said_to_be_apart_by_no_more_than_they_are(
    offset: float, asked: list[tuple[float, float, float]]
) -> None:
    """However slow the answers are; and by exactly that where one takes no time."""
    readings = [(at, at + takes * share + offset, at + takes) for at, takes, share in asked]
    assert offset_of(readings) <= abs(offset) + 1e-9
    assert offset_of([*readings, (7.0, 7.0 + offset, 7.0)]) == pytest.approx(abs(offset))


@dataclass
class World:
    """A number of `limit` a second, its database, and an owner with renewals that are slow, lost or not sent at all.

    Real time is the database's; a machine's own clock gains up to `drift` of it.
    """

    limit: int
    drift: float
    departures: list[float] = field(default_factory=list)

    def runs(self, since: float, opens_at: float, turns: list[tuple[float, float, bool]], until: float) -> float:
        """One owner's life from its first renewal at `since`: as fast as it may until `until`; when its lease ends.

        `turns`: after how long the next renewal is sent, how long it takes, and whether its answer comes.
        """
        now = [since]
        lease = Lease(lambda: now[0] * (1 - self.drift))
        lease.renewed(lease.asked())
        ends, at = since + TTL, since
        looks: list[tuple[float, float]] = []  # renewals: when the answer comes, and what was asked
        for pause, takes, answered in turns:
            at += pause
            if at >= ends or at >= until:
                break  # it was taken, or would be: a renewal of a dead epoch renews nothing
            reaches = at + takes / 2
            if reaches >= ends:
                break
            ends = reaches + TTL
            if answered:
                looks.append((at + takes, at * (1 - self.drift)))
            at += takes
        moments = sorted([(max(opens_at, since) + n / self.limit, None) for n in range(self.limit * 60)] + looks,
                         key=lambda each: each[0])  # fmt: skip
        for moment, asked_at in moments:
            now[0] = moment
            if moment >= until:
                break
            if asked_at is not None:
                lease.renewed(asked_at)
            elif lease.holds():
                self.departures.append(moment)
        return ends


turns = st.lists(st.tuples(st.floats(RENEWED_EVERY, 8.0), st.floats(0.0, 3.0), st.booleans()), max_size=12)


@given(
    st.integers(1, 30),
    st.floats(0.0, 0.001),
    turns,
    turns,
    st.one_of(st.none(), st.floats(1.0, 30.0)),
    st.floats(0.0, 10.0),
)
@settings(max_examples=examples(300), deadline=None)
def test_no_sliding_second_carries_more_than_the_pace_whatever_becomes_of_renewals(
    limit: int, drift: float, before: list[tuple[float, float, bool]], after: list[tuple[float, float, bool]],
    dies_at: float | None, late: float,
) -> None:  # fmt: skip
    """`dies_at`: of the first owner, None: it only stands still, or is cut off. `late`: how late the next one comes."""
    world = World(limit, drift)
    ends = world.runs(0.0, 0.0, before, math.inf if dies_at is None else dies_at)
    dead = dies_at is not None and dies_at < ends
    free_at = dies_at if dead and dies_at is not None else ends
    taken_at = free_at + late
    busy_for = free_at - taken_at
    last = max(world.departures, default=0.0)
    assert last <= free_at
    world.runs(taken_at, taken_at + opens_in(busy_for, 0.0) * (1 - drift), after, taken_at + 20.0)
    ordered = sorted(world.departures)
    assert all(b - a >= WINDOW - 1e-9 for a, b in zip(ordered, ordered[limit:], strict=False))
    opened = [each for each in ordered if each > last]
    assert all(each >= free_at + WINDOW + TOLERANCE - 0.02 for each in opened)
