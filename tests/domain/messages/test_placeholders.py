"""Texts with placeholders (C15.5)."""

import pytest

from recado.domain.messages.placeholders import filled, measures, placeholders


def test_the_names_of_a_text_are_found_once_each_in_their_order() -> None:
    assert placeholders("{{b}} and {{ a }}, {{b}}, {{1}}") == ("b", "a", "1")


@pytest.mark.parametrize("text", ["", "{name}", "{{}}", "{{a b}}", "{{a}", "{{é}}", "{{" + "x" * 65 + "}}"])
def test_what_is_no_placeholder_is_plain_text(text: str) -> None:
    assert placeholders(text) == ()
    assert filled(text, {}) == text


def test_values_stand_in_the_place_of_their_names_and_are_not_read_again() -> None:
    assert filled("{{a}}-{{ b }}", {"a": "{{b}}", "b": r"\1"}) == r"{{b}}-\1"


def test_a_name_without_a_value_is_an_error() -> None:
    with pytest.raises(KeyError):
        filled("{{a}}", {"b": "x"})


def test_the_length_is_told_without_the_text() -> None:
    text, values = "{{a}}-{{ b }}{{a}} {{}}", {"a": "{{b}}", "b": ""}
    assert measures(text).filled_length(values) == len(filled(text, values))
