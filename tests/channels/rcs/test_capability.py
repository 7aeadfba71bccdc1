"""Which phones have RCS is known for a day, and of a bounded number of phones (C29.2)."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from recado.channels.rcs.capability import KEPT_FOR, Capabilities

START = datetime(2026, 1, 1, tzinfo=UTC)


@given(
    st.lists(st.tuples(st.integers(0, 9), st.booleans(), st.timedeltas(timedelta(0), timedelta(hours=9))), max_size=60),
    st.integers(1, 5),
)
def test_what_is_known_is_what_was_said_last_within_a_day(said: list[tuple[int, bool, timedelta]], most: int) -> None:
    known, now, told = Capabilities(most), START, dict[str, tuple[bool, datetime]]()
    for number, capable, later in said:
        now += later
        phone = f"+55119876500{number:02d}"
        known.note(phone, capable, now)
        told.pop(phone, None)
        told[phone] = (capable, now)
        assert len(known) <= most
        for each in list(told)[-most:]:
            last, at = told[each]
            assert known.known(each, now) == (last if now - at < KEPT_FOR else None)
    assert known.known("+5511987659999", now) is None
