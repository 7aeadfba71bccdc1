"""Refusals in our words: known codes, short texts, nobody's data (C15.4, C30.5)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.channels.core.refusals import MAX_TEXT, bounded_text, refusal_code


@pytest.mark.parametrize(
    ("given_code", "code"),
    [
        ("recipient_unreachable", "recipient_unreachable"),
        ("expired", "expired"),
        ("opted_out", "opted_out"),
        ("outcome_unknown", "provider_error"),
        ("withdrawn", "provider_error"),
        ("131026", "provider_error"),
        (None, "provider_error"),
        (["expired"], "provider_error"),
    ],
)
def test_a_code_is_ours_or_provider_error(given_code: object, code: str) -> None:
    assert refusal_code(given_code) == code


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("error 131026: message undeliverable", "error 131026: message undeliverable"),
        ("to +55 (11) 98765-4321 failed", "to *** failed"),
        ("to 5511987654321 failed", "to *** failed"),
        ("to ana.maria@example.com.", "to ***"),
        ("two\r\nlines\tand\x00\x1b[31m red", "two lines and  [31m red"),
    ],
)
def test_a_text_is_one_printable_line_without_numbers_or_addresses(text: str, kept: str) -> None:
    assert bounded_text(text, ()) == kept


def test_values_named_as_personal_are_blotted_out_across_line_breaks_and_short_ones_left() -> None:
    assert bounded_text("Ana said: good\nmorning  all", ["good morning all", "Ana", ""]) == "Ana said: ***"


def test_a_long_quotation_is_blotted_out_before_the_text_is_cut() -> None:
    words = "word " * 2_000

    assert bounded_text(f"refused: {words}", [words]) == "refused: ***"


@given(st.text(), st.lists(st.text(), max_size=3))
def test_every_text_is_bounded_and_printable(text: str, personal: list[str]) -> None:
    kept = bounded_text(text, personal)

    assert len(kept) <= MAX_TEXT
    assert kept.isprintable()
