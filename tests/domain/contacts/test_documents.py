"""CPF, CNPJ and birth date in their one form (C12.2), and their masks (C30.3)."""

import sys
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.domain.contacts.documents import (
    canonical_birth_date,
    canonical_cnpj,
    canonical_cpf,
    cpf_check_digits,
    searched_document,
)
from recado.domain.core.errors import Problem
from recado.domain.core.masking import mask_birth_date, mask_cnpj, mask_cpf

TODAY = date(2026, 11, 21)
bases = st.from_regex(r"[0-9]{9}", fullmatch=True).filter(lambda base: len(set(base)) > 1)
cnpjs = st.from_regex(r"[0-9A-Z]{12}[0-9]{2}", fullmatch=True)


@st.deferred  # to look for them among all characters takes longer than to collect many files
def like_letters() -> st.SearchStrategy[str]:
    """In upper case they are letters of the alphabet, one or more."""
    every = map(chr, range(128, sys.maxunicode + 1))
    return st.sampled_from([c for c in every if (upper := c.upper()).isascii() and upper.isalpha()])


@pytest.mark.parametrize(
    ("text", "cpf"),
    [
        ("52998224725", "52998224725"),
        (" 529.982.247-25 ", "52998224725"),
        ("111.444.777-35", "11144477735"),
        ("123.456.789-09", "12345678909"),
        ("000.000.001-91", "00000000191"),
    ],
)
def test_a_cpf_is_its_digits(text: str, cpf: str) -> None:
    assert canonical_cpf(text) == cpf


@pytest.mark.parametrize(
    "text",
    ["", "5299822472", "529982247255", "52998224726", "52998224735", "11111111111", "00000000000", "5299822472a",
     "٥٢٩٩٨٢٢٤٧٢٥", "529 982 247 25"],
)  # fmt: skip
def test_what_is_no_cpf_is_refused_without_being_repeated(text: str) -> None:
    with pytest.raises(Problem) as caught:
        canonical_cpf(text)
    assert (caught.value.status, caught.value.code) == (422, "CPF_INVALID")
    assert not text or text not in str(caught.value)


@given(bases)
def test_a_base_has_one_pair_of_check_digits(base: str) -> None:
    right = cpf_check_digits(base)
    assert canonical_cpf(base + right) == base + right
    for wrong in range(100):
        if f"{wrong:02}" != right:
            with pytest.raises(Problem):
                canonical_cpf(f"{base}{wrong:02}")


@pytest.mark.parametrize(
    ("text", "cnpj"),
    [
        ("11.222.333/0001-81", "11222333000181"),
        ("12.abc.345/01de-35", "12ABC34501DE35"),
        ("12ABC34501DE00", "12ABC34501DE00"),  # check digits are not verified
    ],
)
def test_a_cnpj_is_unmasked_and_in_upper_case(text: str, cnpj: str) -> None:
    assert canonical_cnpj(text) == cnpj


@pytest.mark.parametrize("text", ["", "1122233300018", "112223330001811", "1122233300018A", "11 222 333 0001 81"])
def test_what_is_no_cnpj_is_refused(text: str) -> None:
    with pytest.raises(Problem) as caught:
        canonical_cnpj(text)
    assert (caught.value.status, caught.value.code) == (422, "CNPJ_INVALID")


@given(cnpjs, like_letters, st.integers(0, 11))
def test_what_only_turns_into_letters_is_none_of_a_cnpj(cnpj: str, odd: str, place: int) -> None:
    place = min(place, 12 - len(odd.upper()))
    text = cnpj[:place] + odd + cnpj[place + len(odd.upper()) :]
    assert canonical_cnpj(text.upper()) == text.upper()
    with pytest.raises(Problem) as caught:
        canonical_cnpj(text)
    assert caught.value.code == "CNPJ_INVALID"


@pytest.mark.parametrize("text", ["1900-01-01", "1990-12-31", "2000-02-29", "2026-11-21", " 1990-12-31 "])
def test_a_birth_date_is_a_day_up_to_today(text: str) -> None:
    assert canonical_birth_date(text, TODAY) == text.strip()


@pytest.mark.parametrize(
    "text", ["", "1899-12-31", "2026-11-22", "2001-02-29", "1990-1-1", "19901231", "31/12/1990", "1990-12-31T00:00:00Z"]
)
def test_what_is_no_birth_date_is_refused(text: str) -> None:
    with pytest.raises(Problem) as caught:
        canonical_birth_date(text, TODAY)
    assert caught.value.status == 422


def test_a_search_knows_a_cpf_from_a_cnpj() -> None:
    assert searched_document("529.982.247-25") == ("cpf", "52998224725")
    assert searched_document("11.222.333/0001-81") == ("cnpj", "11222333000181")
    assert searched_document("Maria") is None
    assert searched_document("52998224726") is None


def test_masks_show_the_last_two_or_the_year() -> None:
    assert mask_cpf("12345678909") == "***.***.***-09"
    assert mask_cnpj("12ABC34501DE95") == "**.***.***/****-95"
    assert mask_birth_date("1990-12-31") == "1990-**-**"


@given(bases, cnpjs)
def test_a_mask_holds_nothing_else_of_the_document(base: str, cnpj: str) -> None:
    cpf = base + cpf_check_digits(base)
    assert sum(character.isdigit() for character in mask_cpf(cpf)) == 2
    assert sum(character.isalnum() for character in mask_cnpj(cnpj)) == 2
