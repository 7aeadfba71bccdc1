"""What docs/sms-texts.md shows is so."""

import re
from pathlib import Path

import pytest

from recado.domain.core.errors import CODES
from recado.domain.links.text_links import parted, short_link
from recado.domain.messages.gsm_alphabet import BASIC, EXTENSION, encoded, transliterated
from recado.domain.messages.sms_text import MOST_CHARACTERS, MOST_SEGMENTS, measure

PAGE = (Path(__file__).parents[2] / "docs" / "sms-texts.md").read_text("utf-8")
PART = re.compile(r"(?:(\d+) × )?`([^`]+)`")


def table(heading: str) -> list[list[str]]:
    """The cells of a section's table, without its head."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("|")]
    assert len(rows) > 5
    return rows[2:]


def text_of(cell: str) -> str:
    return "".join(text * int(times or 1) for times, text in PART.findall(cell))


@pytest.mark.parametrize("row", table("Examples"), ids=lambda row: row[0])
def test_the_examples_are_measured_so(row: list[str]) -> None:
    cell, encoding, *numbers = row
    found = measure(text_of(cell))
    assert [found.encoding, found.length, found.segments, found.characters_left] == [encoding, *map(int, numbers)]


@pytest.mark.parametrize(("written", "sent"), table("Transliteration"))
def test_the_transliterations_are_made_so(written: str, sent: str) -> None:
    assert f"`{measure(written.strip('`'), transliterate=True).text}`" == sent


@pytest.mark.parametrize(("text", "address"), table("Links"))
def test_the_addresses_are_found_so(text: str, address: str) -> None:
    assert [f"`{link}`" for link in parted(text.strip("`"))[1::2]] == [address]


def test_the_accents_of_the_page_are_those_of_the_alphabet() -> None:
    [listed] = re.findall(r"of the letters with accents, only <code>(.*?)</code>", PAGE)
    assert set(listed.split()) == {each for each in BASIC if each.isalpha() and not each.isascii()} - set("ΔΦΓΛΩΠΨΣΘΞ")
    outside, inside = re.findall(r"So of Portuguese (.*?) are not, while (.*?) are\.", PAGE, re.DOTALL)[0]
    assert [text for text in re.findall(r"`(.)`", outside) if encoded(text) is not None] == []
    assert [text for text in re.findall(r"`(.)`", inside) if encoded(text) is None] == []
    [two] = re.findall(r"Takes two \| <code>(.*?)</code>, form feed", PAGE)
    assert {*two.replace("&#124;", "|").split(), "\f"} == set(EXTENSION)


def test_the_numbers_of_the_page_are_those_of_the_program() -> None:
    assert f"**GSM-7** has {len(BASIC + EXTENSION)} characters" in PAGE
    assert f"A text has at most {MOST_SEGMENTS}: 1,530 characters in\nGSM-7, 670 in UCS-2" in PAGE
    assert f"more than {MOST_CHARACTERS:,} characters" in PAGE
    assert f"that is {len(short_link('https://go.example'))} characters" in PAGE
    assert measure("…" * 70, transliterate=True).segments == 1
    assert measure(transliterated("…" * 70)).segments == 2
    assert "TEXT_TOO_LONG" in CODES
