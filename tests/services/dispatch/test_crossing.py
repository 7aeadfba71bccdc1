"""Rows that cross between processes are the rows that were packed."""

from dataclasses import fields
from datetime import UTC, datetime, timedelta, timezone

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.services.dispatch.crossing import packed, unpacked, unpacked_rows
from recado.services.dispatch.row import Row

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
WHOLE = st.integers(-(2**63), 2**63 - 1)
MOMENT = st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=-3))]))
DETAILS = st.dictionaries(TEXT, st.none() | st.booleans() | WHOLE | TEXT | st.lists(TEXT, max_size=3), max_size=4)
BY_TYPE = {
    str: TEXT, int: WHOLE, bool: st.booleans(), datetime: MOMENT, str | None: st.none() | TEXT,
    int | None: st.none() | WHOLE, datetime | None: st.none() | MOMENT,
}  # fmt: skip
VALUES = {each.name: BY_TYPE.get(each.type, st.none() | DETAILS) for each in fields(Row)}
ROWS = st.builds(Row, **VALUES)


def values_of(row: Row) -> dict[str, object]:
    return {each.name: getattr(row, each.name) for each in fields(Row)}


@given(st.lists(ROWS, max_size=3))
def test_a_row_that_crosses_is_the_same(rows: list[Row]) -> None:
    crossed = unpacked_rows(orjson.loads(orjson.dumps([packed(each) for each in rows])))
    assert [values_of(each) for each in crossed] == [values_of(each) for each in rows]


def test_every_moment_of_a_row_comes_back_as_one() -> None:
    """A new field of this type must be one of those that are read back."""
    moments = [name for name, strategy in VALUES.items() if strategy in (BY_TYPE[datetime], BY_TYPE[datetime | None])]
    assert len(moments) >= 4
    now = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
    row = Row(**{name: now if name in moments else None for name in VALUES})
    crossed = unpacked(orjson.loads(orjson.dumps(packed(row))))
    assert {name: getattr(crossed, name) for name in moments} == dict.fromkeys(moments, now)


@pytest.mark.parametrize("values", [[], [None] * 3, ["x"] * len(fields(Row)), [None] * (len(fields(Row)) + 1)])
def test_what_is_no_row_is_refused(values: list[object]) -> None:
    with pytest.raises((TypeError, ValueError, IndexError)):
        unpacked(values)
