"""The page of states cannot drift from the tables that it shows."""

import runpy
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_of_states_is_what_the_tables_say() -> None:
    expected = runpy.run_path(str(DOCS / "generate_states.py"))["render"]()
    assert (DOCS / "states.md").read_text(encoding="utf-8") == expected, "run `make docs`"
