"""Words by which people opt out and in again (C28.3)."""

import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.domain.contacts.keywords import OPT_IN_KEYWORDS, OPT_OUT_KEYWORDS, Keyword, keyword_of, normalized, written


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("SAIR", "sair"),
        ("  Stop!  ", "stop"),
        ("¡Paré!", "pare"),
        ("pare.", "pare"),
        ("s.t.o.p", "stop"),
        ("Ｓａｉｒ", "sair"),
        ("\u00a0end\n", "end"),
        ("stop !", "stop"),
    ],
)
def test_a_keyword_is_known_without_case_accents_punctuation_and_outer_spaces(text: str, word: str) -> None:
    assert keyword_of(text) == Keyword(True, word)


@pytest.mark.parametrize(
    ("words", "opts_out"),
    [
        ("sair stop parar pare cancelar descadastrar remover unsubscribe end quit", True),
        ("voltar start", False),
    ],
)
def test_these_words_are_keywords_everywhere(words: str, opts_out: bool) -> None:
    assert [keyword_of(word) for word in words.split()] == [Keyword(opts_out, word) for word in words.split()]


@pytest.mark.parametrize(
    "text", ["", "!!!", " ", "please stop", "stop it", "parada", "sai r", "quero  receber", "não", "stop 🙏"]
)
def test_only_the_whole_text_is_a_keyword(text: str) -> None:
    assert keyword_of(text) is None


@pytest.mark.parametrize(("length", "word"), [(500, "stop"), (501, None)])
def test_a_long_text_is_no_keyword_whatever_is_left_of_it(length: int, word: str | None) -> None:
    found = keyword_of("stop".ljust(length, "!"))
    assert (found and found.word) == word


def test_some_words_opt_in_again() -> None:
    assert keyword_of("Quero receber!") == Keyword(False, "quero receber")
    assert keyword_of("VOLTAR") == Keyword(False, "voltar")


def test_an_organization_adds_words_of_its_own_and_a_refusal_goes_before_a_consent() -> None:
    assert keyword_of("basta", ["Bastá!"], []) == Keyword(True, "basta")
    assert keyword_of("quero sim", [], ["Quero sim"]) == Keyword(False, "quero sim")
    assert keyword_of("ok", ["OK"], ["ok"]) == Keyword(True, "ok")
    assert keyword_of("stop", [], ["stop"]) == Keyword(True, "stop")
    assert keyword_of("...", ["!"], ["?"]) is None


@given(st.text())
def test_what_is_normalized_stays_as_it_is(text: str) -> None:
    once = normalized(text)
    assert normalized(once) == once
    assert once == once.strip()
    assert not any(unicodedata.category(each)[0] in "MP" for each in once)


@given(
    st.sampled_from(OPT_OUT_KEYWORDS + OPT_IN_KEYWORDS),
    st.text(alphabet=" \t\n.,!?;:¡¿\u0301-_", max_size=8),
    st.text(alphabet=" \t\n.,!?;:\u0301-_", max_size=8),
    st.booleans(),
)
def test_what_surrounds_a_keyword_does_not_hide_it(word: str, before: str, after: str, upper: bool) -> None:
    found = keyword_of(before + (word.upper() if upper else word) + after)
    assert found == Keyword(word in OPT_OUT_KEYWORDS, word)


@pytest.mark.parametrize(
    ("type_", "payload", "text"),
    [
        ("text", {"text": {"body": "sair"}}, "sair"),
        ("text", {"text": {"body": "sair"}, "raw": {"kind": "reaction"}}, None),
        ("text", {"text": "sair"}, None),
        ("text", {}, None),
        ("interactive", {"interactive": {"type": "button", "text": "Sair", "payload": "x"}}, "Sair"),
        ("interactive", {"interactive": {"type": "button_reply", "title": "Sair"}}, "Sair"),
        ("interactive", {"interactive": []}, None),
        ("media", {"kind": "image", "media": {"caption": "sair"}}, None),
    ],
)
def test_a_person_writes_or_presses_a_button(type_: str, payload: dict[str, Any], text: str | None) -> None:
    assert written(type_, payload) == text
