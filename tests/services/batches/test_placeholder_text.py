"""Texts with placeholders in batches: what is too long is told without being made (C15.5, C16.2)."""

import pytest

from recado.domain.core.errors import Problem
from recado.services.batches.channel_batches import MANY, Misfit, RenderedContent
from recado.services.batches.placeholder_text import IN_A_TURN, LONGEST, text_terms


def rendered(text: str) -> RenderedContent:
    assert len(text) <= LONGEST, "it was made although it is too long"
    return RenderedContent(text)


def test_a_text_is_filled_for_each_up_to_the_longest() -> None:
    terms = text_terms("{{a}}" + "x" * (LONGEST - 10), rendered)
    assert terms["content"]({"a": "y" * 10}) == RenderedContent("y" * 10 + "x" * (LONGEST - 10))
    assert terms["in_a_turn"] == IN_A_TURN


def test_what_variables_blow_up_is_left_out_without_being_made() -> None:
    found = text_terms("{{a}}" * (LONGEST // 5), rendered)["content"]({"a": "x" * 1_024})
    assert isinstance(found, Misfit)
    assert found.code == "TEXT_TOO_LONG"


@pytest.mark.parametrize("text", ["x" * (LONGEST + 1), "{{a}}" + "x" * LONGEST], ids=["plain", "with a placeholder"])
def test_a_text_that_is_too_long_for_all_is_refused_unread(text: str) -> None:
    with pytest.raises(Problem) as refused:
        text_terms(text, rendered)
    assert (refused.value.code, refused.value.errors[0].path) == ("TEXT_TOO_LONG", "/text")


def test_a_text_without_placeholders_costs_nothing_for_each() -> None:
    assert text_terms("hello", rendered)["in_a_turn"] == MANY
