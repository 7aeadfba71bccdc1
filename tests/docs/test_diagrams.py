"""The page of states cannot drift from the tables that it shows."""

import runpy
from pathlib import Path

from tests.channels.example.policy import PAGES

DOCS = Path(__file__).parents[2] / "docs"


def test_each_channel_has_its_section_by_its_policy() -> None:
    title, text, machine = runpy.run_path(str(DOCS / "generate_states.py"))["of_channel"](PAGES)
    assert (title, machine) == ("Page", PAGES.machine)
    assert text == (
        "`queued` has a row in the dispatch table; every other state is settled. "
        "In the generic view `undelivered` shows as `failed`."
    )


def test_the_page_of_states_is_what_the_tables_say() -> None:
    expected = runpy.run_path(str(DOCS / "generate_states.py"))["render"]()
    assert (DOCS / "states.md").read_text(encoding="utf-8") == expected, "run `make docs`"
