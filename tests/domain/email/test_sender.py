"""Which domains mail leaves from (C10.4)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.domain.email.sender import LONGEST_DOMAIN, domain_of, domain_of_address


@pytest.mark.parametrize(
    ("text", "domain"),
    [
        ("Example.COM", "example.com"), ("mail.example.com.", "mail.example.com"), ("xn--bcher-kva.example", None),
        ("a-b.c-d.xn--p1ai", "a-b.c-d.xn--p1ai"),
    ],
)  # fmt: skip
def test_a_domain_is_taken_in_lower_case(text: str, domain: str | None) -> None:
    assert domain_of(text) == (domain or text)


@pytest.mark.parametrize(
    "text", ["", "com", ".com", "a..com", "a.1", "1.2.3.4", "a_b.com", "bücher.example", "a.com.."]
)
def test_what_is_no_domain_is_none(text: str) -> None:
    assert domain_of(text) is None


@given(st.text(max_size=400))
def test_what_is_taken_is_short_plain_and_taken_again(text: str) -> None:
    found = domain_of(text)
    if found is not None:
        assert len(found) <= LONGEST_DOMAIN
        assert set(found) <= set("abcdefghijklmnopqrstuvwxyz0123456789-.")
        assert domain_of(found) == found


def test_an_address_has_the_domain_behind_its_last_sign() -> None:
    assert domain_of_address('"a@b"@Example.com') == "example.com"
    assert domain_of_address("ana@localhost") is None
