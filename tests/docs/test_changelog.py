"""The changelog has the parts of Keep a Changelog, and says nothing twice."""

import re
from collections import Counter
from pathlib import Path

CHANGELOG = (Path(__file__).parents[2] / "CHANGELOG.md").read_text()


def test_what_is_unreleased_stands_under_what_it_is_to_a_user() -> None:
    unreleased = CHANGELOG.partition("\n## [Unreleased]\n")[2].partition("\n## ")[0]
    parts = re.findall(r"^### (.+)\n\n- ", unreleased, re.MULTILINE)
    assert parts == ["Added", "Changed", "Fixed"]


def test_no_entry_stands_there_twice() -> None:
    beginnings = Counter(line[:80] for line in CHANGELOG.splitlines() if line.startswith("- "))
    assert [line for line, times in beginnings.items() if times > 1] == []
