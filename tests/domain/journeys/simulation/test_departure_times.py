"""When messages would leave: at the pace of their sender, within its day and its tier, out of quiet hours (C9.17.4)."""

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from recado.domain.dispatch.quiet_hours import QuietHours
from recado.domain.journeys.sends import QuietWindow
from recado.domain.journeys.simulation.departure_times import DAY, DepartureTimes, Left, SenderLimits

NOON = datetime(2026, 3, 13, 12, tzinfo=UTC)
SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)
NIGHT = QuietWindow(QuietHours(time(13), time(20)), ZoneInfo("UTC"))


def left(found: list[Left]) -> int:
    return sum(each.messages for each in found if not each.expired)


def expired(found: list[Left]) -> int:
    return sum(each.messages for each in found if each.expired)


def test_without_limits_all_leave_at_once() -> None:
    assert DepartureTimes(SenderLimits()).leave(NOON, 100_000, ttl=DAY) == [Left(NOON, 100_000, expired=False)]


def test_they_leave_at_the_pace_one_lot_behind_the_other() -> None:
    lane = DepartureTimes(SenderLimits(per_second=10))
    first = lane.leave(NOON, 36_000, ttl=DAY)
    assert (left(first), expired(first)) == (36_000, 0)
    assert NOON + HOUR - timedelta(minutes=10) < first[-1].at < NOON + HOUR
    (second,) = lane.leave(NOON + SECOND, 1, ttl=DAY)
    assert second == Left(NOON + HOUR, 1, expired=False)
    (later,) = lane.leave(NOON + 2 * HOUR, 1, ttl=DAY)
    assert later.at == NOON + 2 * HOUR


def test_what_finds_no_time_within_its_life_expires() -> None:
    found = DepartureTimes(SenderLimits(per_second=1)).leave(NOON, 10_000, ttl=HOUR)
    assert 3_600 <= left(found) <= 3_600 + 600
    assert left(found) + expired(found) == 10_000
    assert found[-1] == Left(NOON + HOUR, expired(found), expired=True)
    held = DepartureTimes(SenderLimits(held=True)).leave(NOON, 5, ttl=HOUR)
    assert held == [Left(NOON + HOUR, 5, expired=True)]
    assert left(DepartureTimes(SenderLimits(held=True)).leave(NOON, 5, ttl=HOUR, critical=True)) == 5


def test_quiet_hours_hold_what_obeys_them_and_do_not_count_toward_its_life() -> None:
    lane = DepartureTimes(SenderLimits(per_second=1))
    found = lane.leave(NOON + HOUR, 60, ttl=HOUR, quiet=(NIGHT,))
    assert found[0].at == NOON + 8 * HOUR
    assert (left(found), expired(found)) == (60, 0)


def test_a_day_holds_so_many_with_those_that_left_before() -> None:
    limits = SenderLimits(per_second=1_000, per_day=100, sent=((NOON - 12 * HOUR, 40),))
    found = DepartureTimes(limits).leave(NOON, 150, ttl=2 * DAY)
    assert sum(each.messages for each in found if each.at < NOON + HOUR) == 60
    assert sum(each.messages for each in found if each.at < NOON + DAY) == 100
    assert min(each.at for each in found if each.at > NOON + HOUR) == NOON + 12 * HOUR
    assert (left(found), expired(found)) == (150, 0)


def test_a_tier_counts_each_recipient_once_in_a_day() -> None:
    lane = DepartureTimes(SenderLimits(recipients=250))
    assert left(lane.leave(NOON, 250, ttl=HOUR)) == 250
    assert expired(lane.leave(NOON + HOUR, 10, ttl=HOUR)) == 10
    again = lane.leave(NOON + 2 * HOUR, 250, ttl=HOUR, addressed_at=NOON)
    assert (left(again), expired(again)) == (250, 0)
    # They count from then on.
    assert expired(lane.leave(NOON + DAY, 10, ttl=HOUR)) == 10
    assert left(lane.leave(NOON + DAY + 2 * HOUR, 10, ttl=HOUR)) == 10


def test_many_moments_become_free_together() -> None:
    sent = [(NOON + n * timedelta(milliseconds=1), 1) for n in range(20_000)]
    lane = DepartureTimes(SenderLimits(per_day=20_000, sent=sent))
    assert left(lane.leave(NOON + 2 * DAY, 20_000, ttl=HOUR)) == 20_000


@given(
    st.lists(st.tuples(st.integers(0, 4_000), st.integers(1, 5_000)), min_size=1, max_size=8),
    st.sampled_from([0.25, 1.0, 80.0, 1_000.0]),
    st.sampled_from([None, 100, 3_000]),
    st.sampled_from([None, 250, 1_000]),
)
@settings(max_examples=examples(200))
def test_nothing_is_lost_and_no_limit_is_broken(
    lots: list[tuple[int, int]], per_second: float, per_day: int | None, recipients: int | None
) -> None:
    lane = DepartureTimes(SenderLimits(per_second=per_second, per_day=per_day, recipients=recipients))
    gone: list[Left] = []
    for minute, count in sorted(lots):
        now = NOON + timedelta(minutes=minute)
        found = lane.leave(now, count, ttl=DAY)
        assert left(found) + expired(found) == count
        assert all(now <= each.at for each in found)
        gone += [each for each in found if not each.expired]
    assert [each.at for each in gone] == sorted(each.at for each in gone)
    for place, first in enumerate(gone):
        after = [each for each in gone[place:] if each.at < first.at + DAY]
        within = sum(each.messages for each in after)
        assert within <= min(per_day or within, recipients or within)
        if len(after) > 1:  # a lot takes as long as its messages do
            least = timedelta(seconds=(within - after[-1].messages) / per_second)
            assert after[-1].at - first.at >= least - SECOND / 100
