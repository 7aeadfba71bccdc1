"""docs/operations.md: its log entries and reasons are those of the program."""

import re
from pathlib import Path

from tests.docs.log_entries import logged_entries

from recado.domain.messages.message import WaitReason

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "operations.md").read_text("utf-8")


def first_cells(heading: str) -> list[str]:
    """What stands in code style in the first column of the tables of a chapter."""
    chapter = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.*?) \|", chapter, re.MULTILINE)
    return [word for row in rows for word in re.findall(r"`([^`]+)`", row)]


def test_the_log_entries_are_those_of_the_program() -> None:
    logged, _ = logged_entries()
    entries = first_cells("Logs")
    assert len(entries) > 10
    assert [entry for entry in entries if entry not in logged] == []


def test_the_reasons_to_look_at_are_reasons_of_waits() -> None:
    known = {reason.value for reason in WaitReason} | {"queued"}
    reasons = first_cells("When messages wait")
    assert len(reasons) > 8
    assert set(reasons) <= known
