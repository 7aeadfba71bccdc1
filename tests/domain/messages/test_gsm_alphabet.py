"""Which characters go in seven bits, and which stand in for others (C16.2)."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.domain.messages.gsm_alphabet import BASIC, ESCAPE, EXTENSION, encoded, outside, transliterated

ALPHABET = BASIC + EXTENSION
texts = st.text(st.sampled_from(ALPHABET) | st.characters(exclude_categories=["Cs"]) | st.sampled_from("ãõç“”…\u0301"))


def test_the_alphabet_has_all_characters_but_the_escape() -> None:
    assert (len(BASIC), len(EXTENSION), len(set(ALPHABET))) == (127, 10, 137)


@pytest.mark.parametrize("character", BASIC)
def test_a_basic_character_takes_a_septet(character: str) -> None:
    assert len(encoded(character) or b"") == 1


@pytest.mark.parametrize("character", EXTENSION)
def test_a_character_of_the_extension_takes_an_escape_and_a_septet(character: str) -> None:
    found = encoded(f"a{character}b")
    assert found is not None
    assert (len(found), found[1:2]) == (4, ESCAPE)


@pytest.mark.parametrize("character", [*"ãõáçêÊÀ`´“’–…😀", "\0", "\t", "\x1b", "\x7f", "\xa0", "\xad", "ÿ", "\ufffe"])
def test_one_character_of_no_set_is_enough(character: str) -> None:
    assert encoded(f"Hello {character}") is None
    assert outside(f"Hello {character}") == (character,)


@given(texts)
def test_a_text_is_encoded_when_nothing_is_outside(text: str) -> None:
    found = encoded(text)
    assert (found is None) == bool(outside(text))
    assert found is None or len(found) == len(text) + sum(each in EXTENSION for each in text)


def test_each_character_outside_is_named_once_in_the_order_of_the_text() -> None:
    assert outside("Não é ação: ☂ não, ☂") == ("ã", "ç", "☂")


@pytest.mark.parametrize(
    ("text", "replaced"),
    [
        ("Olá, você já confirmou? Não é à toa", "Ola, voce ja confirmou? Nao é à toa"),
        ("ÁÀÂÃ ÊÍÓÔÕÚ ç", "AAAA EIOOOU c"),
        ("Ç É Ñ ñ Ü ß ø", "Ç É Ñ ñ Ü ß ø"),  # the alphabet has them
        ("“quoted” ‘so’ «here»", '"quoted" \'so\' "here"'),
        ("1º – 2ª — 3…", "1o - 2a - 3..."),
        ("R$\u00a010\u202f000\u200b,00\ufeff", "R$ 10 000,00"),
        ("a\tb\u2028c", "a b\nc"),
        ("Łódź œuvre ſt ﬁn Ｓｉｍ！", "Lodz oeuvre st fin Sim!"),
        ("Việt Nam, Čeština, İstanbul", "Viet Nam, Cestina, Istanbul"),
        ("e\u0301 a\u0303 x\u0302 ê\u0323", "é a x e"),  # letters and their marks, one by one
        ("™\u0301", "TM"),
        ("½ kg × 2² → ©", "1/2 kg x 22 -> (c)"),
        ("Привет 😀 €5", "Привет 😀 €5"),  # nothing to replace
        ("👨\u200d👩\u200d👧", "👨\u200d👩\u200d👧"),  # one sign, by its joiners
    ],
)
def test_accented_and_typographic_characters_have_near_ones(text: str, replaced: str) -> None:
    assert transliterated(text) == replaced


@given(texts)
def test_transliterating_leaves_alone_what_the_alphabet_has(text: str) -> None:
    replaced = transliterated(text)
    assert transliterated(replaced) == replaced
    assert set(outside(replaced)) <= set(outside(text))
    if not outside(text):
        assert replaced == text


@given(st.characters(categories=["Lu", "Ll"], max_codepoint=0x24F))
def test_every_latin_letter_with_marks_loses_them(letter: str) -> None:
    base, *marks = unicodedata.normalize("NFD", letter)
    if marks and base in ALPHABET and letter not in ALPHABET:
        assert transliterated(letter) == base
