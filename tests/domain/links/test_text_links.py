"""Links in a text, and their short form (C27.1)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.domain.links.text_links import CODE_LENGTH, parted, short_link

pieces = st.sampled_from(
    ["http://", "https://", "HTTPS://", "a.example", "/x", "?q=1", *"()[].,' \né：“"]
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "links"),
    [
        ("no link", []),
        ("http:// and ://", []),
        ("www.a.example and ftp://a.example", []),
        ("https://a.example", ["https://a.example"]),
        ("HTTP://A.example/X", ["HTTP://A.example/X"]),
        ("See https://a.example/x.", ["https://a.example/x"]),
        ("https://a.example/x?!…", ["https://a.example/x"]),
        ("https://a.example/x, https://b.example; bye", ["https://a.example/x", "https://b.example"]),
        ("(https://a.example/x)", ["https://a.example/x"]),
        ("(see https://a.example/x_(y)).", ["https://a.example/x_(y)"]),
        ("[https://a.example]", ["https://a.example"]),
        ("https://[2001:db8::1]/x", ["https://[2001:db8::1]/x"]),
        ('<a href="https://a.example/x">', ["https://a.example/x"]),
        ("“https://a.example/x”", ["https://a.example/x"]),
        ("Code:https://a.example/x\nBye", ["https://a.example/x"]),
        ("https://a.example/promoção#já", ["https://a.example/promoção#já"]),
        ("https://a.example/?u=https://b.example/", ["https://a.example/?u=https://b.example/"]),
        ("https://a.example:8443/x?a=1&b=%20-", ["https://a.example:8443/x?a=1&b=%20-"]),
        ("看https://a.example/x。好", ["https://a.example/x"]),
        ("xhttps://a.example", []),  # another scheme
        ("httpſ://a.example", []),  # the long s is no s
        ("https://a.example https://a.example", ["https://a.example", "https://a.example"]),
    ],
)
def test_a_link_ends_where_a_reader_would_end_it(text: str, links: list[str]) -> None:
    assert parted(text)[1::2] == links


@given(st.lists(pieces | st.text(max_size=3)).map("".join))
def test_the_parts_are_the_text(text: str) -> None:
    parts = parted(text)
    assert "".join(parts) == text
    assert len(parts) % 2 == 1
    for link in parts[1::2]:
        assert parted(link) == ["", link, ""]


@pytest.mark.parametrize("text", [")" * 1_000_000, "http://" * 200_000, "http://a(" * 200_000, "." * 1_000_000])
def test_a_hostile_text_takes_time_by_its_length_only(text: str) -> None:
    assert len(parted(f"https://a.example/{text} b")) == 3  # by its square, this ends at the limit of a test


def test_a_short_link_is_the_base_and_a_code() -> None:
    assert short_link("https://go.example", "0123aBcD") == "https://go.example/l/0123aBcD"
    assert len(short_link("")) == len("/l/") + CODE_LENGTH
