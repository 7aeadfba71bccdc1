"""How long a message of a journey was held: exactly the part of each pause after it was due (C14.5, TTL)."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from recado.domain.messages.owner_pauses import KEPT, OwnerPauses, with_pause

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def at(minutes: int) -> datetime:
    return NOON + timedelta(minutes=minutes)


def stands(*past: int, paused: int | None = None) -> OwnerPauses:
    """Paused in between these minutes, and since `paused`."""
    return OwnerPauses("org_1", "test", "jrn_1", 1, None if paused is None else at(paused), tuple(map(at, past)))


def held(pauses: OwnerPauses, due: int, now: int) -> int:
    """In minutes."""
    minutes, rest = divmod(pauses.held_ms(at(due), at(now)), 60_000)
    assert rest == 0
    return minutes


def test_a_pause_counts_from_when_the_message_was_due() -> None:
    assert held(stands(10, 20), due=0, now=30) == 10
    assert held(stands(10, 20), due=15, now=30) == 5
    assert held(stands(10, 20), due=20, now=30) == 0
    assert held(stands(paused=10), due=0, now=30) == 20
    assert held(stands(paused=10), due=25, now=30) == 5


def test_pauses_before_the_message_add_nothing_however_many_there_were() -> None:
    assert held(stands(0, 500, 600, 900, 1000, 1010), due=990, now=1100) == 10


def test_each_pause_counts_and_the_one_that_lasts() -> None:
    assert held(stands(10, 20, 30, 35, paused=40), due=0, now=50) == 25


def test_whose_journey_never_stood_still_was_not_held() -> None:
    assert held(stands(), due=0, now=50) == 0


@given(
    st.lists(st.integers(0, 500), max_size=2 * KEPT, unique=True).map(sorted),
    st.integers(0, 500),
    st.integers(0, 500),
    st.booleans(),
)
def test_it_is_the_minutes_in_which_it_waited_and_its_journey_stood_still(
    moments: list[int], due: int, waited: int, still: bool
) -> None:
    past, now = moments[: len(moments) // 2 * 2], due + waited
    since = moments[-1] + 1 if still and moments else None
    spans = [*zip(past[::2], past[1::2], strict=True)] + ([] if since is None else [(since, now)])
    paused = {minute for begin, end in spans for minute in range(begin, end)}
    assert held(stands(*past, paused=since), due, now) == len(paused.intersection(range(due, now)))


def test_only_the_last_pauses_are_kept() -> None:
    past: tuple[datetime, ...] = ()
    for n in range(KEPT + 3):
        past = with_pause(past, at(10 * n), at(10 * n + 5))
    assert (len(past), past[0], past[-1]) == (2 * KEPT, at(30), at(10 * (KEPT + 2) + 5))
