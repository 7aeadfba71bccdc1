"""docs/errors.md: its table has every status that a problem can have."""

import re
from pathlib import Path

from recado.domain.core.errors import CODES

PAGE = (Path(__file__).parents[2] / "docs" / "errors.md").read_text("utf-8")


def test_the_table_has_every_status_of_a_problem() -> None:
    rows = re.findall(r"^\| (\d{3}[\d, ]*) \|", PAGE, re.MULTILINE)
    assert {int(status) for row in rows for status in row.split(", ")} == {entry.status for entry in CODES.values()}
