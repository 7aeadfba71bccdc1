"""Mailboxes as callers write them (C10.2.1)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.domain.email.mailbox import NamedAddress, mailbox_of


@pytest.mark.parametrize(
    ("text", "address", "name"),
    [
        ("ana@example.com", "ana@example.com", None),
        ("Ana <ana@example.com>", "ana@example.com", "Ana"),
        ('"Silva, Ana" <ana@example.com>', "ana@example.com", "Silva, Ana"),
        ("<ana@example.com>", "ana@example.com", None),
        ("  Ana Maria   <ana@example.com>  ", "ana@example.com", "Ana Maria"),
    ],
)
def test_a_mailbox_has_an_address_and_may_have_a_name(text: str, address: str, name: str | None) -> None:
    assert mailbox_of(text) == NamedAddress(address, name)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ana",
        "@example.com",
        "ana@",
        "a@b@c",
        "a b@c",
        "a@b,c@d",
        "Ana <a@b>, <c@d>",
        "Ana <ana>",
        "a@b\n",
        "a@b..com",
        "a@.com",
        "Ana <a@b.com.>",
        "<a@b>x",
    ],
)
def test_what_is_none_or_more_than_one_is_refused(text: str) -> None:
    assert mailbox_of(text) is None


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_nothing_in_an_address_ends_a_line_or_begins_another(text: str) -> None:
    for found in (mailbox_of(f"{text}@example.com"), mailbox_of(f"Ana <{text}>")):
        if found is not None:
            assert found.address.count("@") == 1
            assert not set(found.address) & set(' \t\r\n,;<>"\\\x00')
