"""Queries made of named fragments: values travel as parameters only."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.storage.core.statements.compose import compose


def test_names_become_numbered_parameters_in_order_of_appearance() -> None:
    sql, arguments = compose("a = :one and b = :two and c > :one", {"one": 1, "two": "x", "unused": None})
    assert sql == "a = $1 and b = $2 and c > $1"
    assert arguments == [1, "x"]


def test_casts_are_left_alone() -> None:
    assert compose("x = any(:channels::text[])", {"channels": ["a"]}) == ("x = any($1::text[])", [["a"]])


def test_a_name_without_value_is_an_error() -> None:
    with pytest.raises(KeyError):
        compose("a = :missing", {})


@given(st.text())
def test_no_value_ever_becomes_part_of_the_query(value: str) -> None:
    assert compose("a = :name", {"name": value}) == ("a = $1", [value])
