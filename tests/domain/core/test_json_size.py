"""How long JSON is in the database (C31)."""

from decimal import Decimal
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.domain.core.json_size import stored_size


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_counts_as_all_its_digits(number: float) -> None:
    written = len(f"{Decimal(orjson.dumps(number).decode()):f}")
    assert written <= stored_size(number) <= written + 22


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ([1e308, 1e308], 2 * (6 + 308) + 3),
        ({"a": 1e-300}, 6 + 300 + 6),
        ("9e308 and more", 16),
        ({"id": "1e308"}, 14),
    ],
)
def test_texts_count_as_they_are_written(value: Any, size: int) -> None:
    assert stored_size(value) == size


async def test_the_database_writes_no_more_than_is_counted(database: Any) -> None:
    value = {"a": [1e308, -2.5e-300, 1e16, 0.1, 5], "b": {"c": 1.7976931348623157e308}}
    written = await database.fetchval("select $1::jsonb::text", value)
    assert len(written.replace(" ", "")) <= stored_size(value)
