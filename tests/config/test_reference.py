"""docs/configuration.md tells of every setting as it is."""

from pathlib import Path

import pytest

from recado.config.reference import settings_table, with_tables
from recado.config.settings import Settings

DOCUMENT = Path(__file__).parents[2] / "docs" / "configuration.md"


def test_the_document_holds_the_settings_and_limits_as_they_are() -> None:
    text = DOCUMENT.read_text("utf-8")

    assert text == with_tables(text), "run `make docs`"


def test_every_setting_has_its_row() -> None:
    rows = settings_table().splitlines()[2:]

    assert [row.split("`")[1] for row in rows] == [f"RECADO_{name.upper()}" for name in Settings.model_fields]


def test_a_document_without_the_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="marks"):
        with_tables("# Configuration")
