"""How long what is stored is kept (C32)."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.domain.core.retention import months_before


@pytest.mark.parametrize(
    ("at", "months", "before"),
    [
        (datetime(2026, 11, 20, 12, tzinfo=UTC), 24, datetime(2024, 11, 20, 12, tzinfo=UTC)),
        (datetime(2026, 3, 31, tzinfo=UTC), 1, datetime(2026, 2, 28, tzinfo=UTC)),
        (datetime(2024, 2, 29, tzinfo=UTC), 12, datetime(2023, 2, 28, tzinfo=UTC)),
        (datetime(2026, 1, 1, tzinfo=UTC), 1, datetime(2025, 12, 1, tzinfo=UTC)),
    ],
)
def test_months_are_those_of_the_calendar(at: datetime, months: int, before: datetime) -> None:
    assert months_before(at, months) == before


@given(st.datetimes(datetime(1990, 1, 1), datetime(2200, 1, 1)), st.integers(0, 60), st.integers(0, 60))
def test_more_months_are_never_later(at: datetime, fewer: int, more: int) -> None:
    assert months_before(at, fewer + more) <= months_before(at, fewer) <= at
