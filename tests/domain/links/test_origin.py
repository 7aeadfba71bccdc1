"""Codes of links, and what a text and an address tell of where somebody came from (C27)."""

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.domain.links.codes import is_link_code, link_code, origin_code
from recado.domain.links.origin import LONGEST_LABEL, MOST_CODES, Fonte, codes_in, labels_of, opening_text, origin


@given(st.integers())
def test_codes_have_their_forms(seed: int) -> None:
    chance = random.Random(seed).randbytes
    assert is_link_code(link_code(chance))
    assert re.fullmatch("[A-HJ-NP-Z2-9]{6}", origin_code(chance))


def test_every_character_of_a_code_is_as_likely_as_any_other() -> None:
    chance = random.Random(1).randbytes
    drawn = "".join(origin_code(chance) for _ in range(4_000))
    assert len(set(drawn)) == 32
    assert max(drawn.count(each) for each in set(drawn)) < 2 * min(drawn.count(each) for each in set(drawn))


@pytest.mark.parametrize("text", ["", "1234567", "123456789", "1234567é", "1234567-", "1234567\n"])
def test_what_is_no_code_is_not_looked_for(text: str) -> None:
    assert not is_link_code(text)


@given(st.text(max_size=200), st.integers())
def test_a_code_is_found_in_the_text_that_it_was_written_into(text: str, seed: int) -> None:
    code = origin_code(random.Random(seed).randbytes)
    assert codes_in(opening_text("Hi", code) + text)[0] == code


@pytest.mark.parametrize(
    "text", ["ABCDEF", "(ABCDE)", "(ABCDEFG)", "(abcdef)", "(ABCDE1)", "(ABCDEO)", "( ABCDEF )", "[ABCDEF]"]
)
def test_what_only_looks_like_a_code_is_none(text: str) -> None:
    assert codes_in(text) == []


def test_a_text_full_of_codes_has_a_few() -> None:
    assert codes_in("(AAAAAA)" + "".join(f"(AAAAA{each})" for each in "ABCDEFGH")) == [
        "AAAAAA", "AAAAAB", "AAAAAC",
    ][:MOST_CODES]  # fmt: skip


def test_an_address_says_what_the_link_was_part_of() -> None:
    said = {"utm_campaign": "spring", "grupo": "g", "anuncio": " a ", "palavraChave": "shoes", "utm_source": "x"}
    assert labels_of(said) == {"campanha": "spring", "grupo": "g", "anuncio": "a", "palavraChave": "shoes"}
    assert labels_of({"utm_content": " ", "grupo": "g", "utm_term": "t"}) == {"grupo": "g", "palavraChave": "t"}
    assert labels_of({"utm_campaign": "x" * 5_000})["campanha"] == "x" * LONGEST_LABEL


def test_an_origin_names_its_source_and_its_code() -> None:
    assert origin(Fonte.OUTRA, "flyer", {"campanha": "spring"}, "ABCDEF") == {
        "fonte": "outra", "fonteRotulo": "flyer", "campanha": "spring", "codigo": "ABCDEF",
    }  # fmt: skip
    assert origin(Fonte.VIDEO_ADS, None, {}, "ABCDEF") == {"fonte": "video_ads", "codigo": "ABCDEF"}
