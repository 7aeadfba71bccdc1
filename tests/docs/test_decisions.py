"""docs/decisions: the list has each decision, with its title and its status."""

import re
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs" / "decisions"


def test_the_list_has_each_decision_with_its_title_and_status() -> None:
    rows = []
    for page in sorted(FOLDER.glob("0*.md")):
        title, _, status = page.read_text("utf-8").splitlines()[:3]
        number, _, name = title.removeprefix("# ").partition(": ")
        said = re.split(r"[;.] ", status.removeprefix("Status: "))[0].removesuffix(".")
        rows.append(f"| [{number}]({page.name}) | {name} | {said} |")
    assert len(rows) > 90
    listed = [line for line in (FOLDER / "README.md").read_text("utf-8").splitlines() if line.startswith("| [")]
    assert listed == rows
