"""Names that are unique in their environment (C7.2.1)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.domain.core.names import name_key


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("VIPs", " vips "),
        ("My  list", "my list"),
        ("São", "SÃO"),
        ("a\tb", "A B"),
        ("cafe\u0301", "Café"),
        ("Straße", "STRASSE"),
    ],
)
def test_spellings_of_one_name_are_the_same(one: str, other: str) -> None:
    assert name_key(one) == name_key(other)


@pytest.mark.parametrize(("one", "other"), [("list 1", "list 2"), ("ab", "a b"), ("cafe", "café")])
def test_other_names_are_others(one: str, other: str) -> None:
    assert name_key(one) != name_key(other)


@given(st.text())
def test_a_key_is_its_own_key(name: str) -> None:
    assert name_key(name_key(name)) == name_key(name)
