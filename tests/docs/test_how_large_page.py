"""docs/how-large.md: what it calculates follows from what it measured."""

import re
from math import log10
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "how-large.md").read_text("utf-8")
PLAIN, WITH_ALL = "two workers", "– two workers"


def cells(first: str) -> list[str]:
    """The row of a table that begins with this cell."""
    (row,) = re.findall(rf"^\| {re.escape(first)} \| (.*) \|$", PAGE, re.MULTILINE)
    return [cell.strip() for cell in row.split("|")]


def parts(row: str) -> tuple[int, int, int]:
    """µs of a message: owner, fronts, PostgreSQL."""
    owner, fronts, database, *_ = map(int, cells(row)[:3])
    return owner, fronts, database


def three_digits(value: float) -> str:
    return f"{round(value, 2 - int(log10(value))):,.0f}"


@pytest.mark.parametrize(("row", "column", "bytes_each"), [(PLAIN, 0, 2_050), (WITH_ALL, 1, 4_350)])
def test_the_core_that_sends_is_full_at_what_it_takes(row: str, column: int, bytes_each: int) -> None:
    owner, fronts, database = parts(row)
    pace = 1e6 / owner
    assert cells("at most, whatever the machine")[column] == f"{three_digits(pace)} /s"
    busy = f"1 + {pace * fronts / 1e6:.1f} + {pace * database / 1e6:.1f} cores"
    assert cells("then busy: owner, fronts, PostgreSQL")[column] == busy
    assert cells("log written")[column] == f"{pace * bytes_each / 1e6:.0f} MB/s"


@pytest.mark.parametrize(
    ("row", "first", "cores", "bytes_each"),
    [
        (PLAIN, "8", 8, 2_050),
        (PLAIN, "16", 16, 2_050),
        (PLAIN, "64", 64, 2_050),
        (WITH_ALL, "8, with a wallet and a subscription", 8, 4_350),
        (WITH_ALL, "16, likewise", 16, 4_350),
        (WITH_ALL, "64, likewise", 64, 4_350),
    ],
)
def test_what_all_cores_would_carry_is_what_they_have_by_what_a_message_takes(
    row: str, first: str, cores: int, bytes_each: int
) -> None:
    today, spread, of_database, log = cells(first)
    pace = cores * 1e6 / sum(parts(row))
    assert today.startswith(f"{three_digits(1e6 / parts(row)[0])} /s")
    assert spread == f"{three_digits(pace)} /s"
    busy = pace * parts(row)[2] / 1e6
    assert of_database == (f"{busy:.1f}" if busy < 10 else f"{busy:.0f}")
    assert log == f"{pace * bytes_each / 1e6:.0f} MB/s"
