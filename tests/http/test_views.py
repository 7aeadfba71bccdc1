"""What callers see of a record is what its model names."""

from dataclasses import dataclass
from typing import Any

import pytest

from recado.http.api.models import ApiModel
from recado.http.routes.core.views import view_of, view_with


@dataclass(frozen=True)
class Letter:
    id: str
    sent_by: str | None
    opened_by: str | None
    secret: str = "of no business of callers"


class LetterOut(ApiModel):
    id: str
    sent_by: str | None
    opened_by: str | None = None


class WeighedOut(LetterOut):
    weight: int


def test_what_a_model_names_is_shown_and_nothing_else() -> None:
    view = view_of(Letter, LetterOut)
    assert view(Letter("let_1", "Ana", "Bia")) == {"id": "let_1", "sentBy": "Ana", "openedBy": "Bia"}


def test_only_a_member_that_may_be_absent_is_left_out() -> None:
    assert view_of(Letter, LetterOut)(Letter("let_1", None, None)) == {"id": "let_1", "sentBy": None}


def test_a_member_may_have_a_reading_of_its_own() -> None:
    def weighed(_: Letter, grams: int) -> Any:
        return grams

    assert view_with(Letter, WeighedOut, weight=weighed)(Letter("let_1", None, None), 20)["weight"] == 20


def test_a_member_that_can_be_read_from_nowhere_is_refused_when_the_program_starts() -> None:
    with pytest.raises(TypeError, match="Letter has no weight, which WeighedOut shows"):
        view_of(Letter, WeighedOut)
