"""Links in messages: what stands in their place, and what is stored of them (C27.1)."""

import random

from hypothesis import given
from hypothesis import strategies as st

from recado.domain.links.codes import is_link_code
from recado.domain.links.tracked import LONGEST_URL, MOST_LINKS, MessageLinks

BASE = "https://l.example.com"


def links(seed: int = 1) -> MessageLinks:
    return MessageLinks(BASE, random.Random(seed).randbytes)


@given(st.lists(st.text(max_size=30), max_size=30))
def test_each_address_has_one_code_which_leads_to_it(urls: list[str]) -> None:
    made = links()
    short = {url: made.shorten(url) for url in urls}
    assert [made.shorten(url) for url in urls] == [short[url] for url in urls]
    found = {f"{BASE}/l/{code}": url for code, url in made.rows}
    assert {url: at for at, url in found.items()} == short
    assert all(is_link_code(code) for code, _ in made.rows)


def test_a_message_without_links_has_nothing_to_store() -> None:
    assert links().rows == ()


def test_what_is_beyond_a_bound_stays_as_it_is() -> None:
    made = links()
    assert made.shorten("x" * (LONGEST_URL + 1)) == "x" * (LONGEST_URL + 1)
    short = [made.shorten(f"https://example.com/{number}") for number in range(MOST_LINKS + 1)]
    assert short[-1] == f"https://example.com/{MOST_LINKS}"
    assert len(made.rows) == MOST_LINKS
    assert made.shorten("https://example.com/0") == short[0]


def test_addresses_in_a_text_give_way_to_short_links() -> None:
    made = links()
    text = made.in_text("See https://example.com/a (or http://example.com/b), then https://example.com/a.")
    (a, first), (b, second) = made.rows
    assert (first, second) == ("https://example.com/a", "http://example.com/b")
    assert text == f"See {BASE}/l/{a} (or {BASE}/l/{b}), then {BASE}/l/{a}."
    assert made.in_text("none") == "none"


def test_a_message_in_the_place_of_another_has_codes_of_its_own_for_the_same_addresses() -> None:
    old, new = links(), links()
    text = old.in_text("See https://example.com/a, https://example.com/b and https://example.com/a.")
    new.shorten("https://example.com/other")  # what is drawn next is the code of the second one
    told = new.in_place_of(text, old.rows)
    (_, a, b) = new.rows
    assert told == f"See {BASE}/l/{a.code}, {BASE}/l/{b.code} and {BASE}/l/{a.code}."
    assert [a.url, b.url] == ["https://example.com/a", "https://example.com/b"]
    assert links().in_place_of(text, ()) == text


def test_what_is_made_once_more_keeps_the_codes_that_are_stored_and_tells_the_new_ones() -> None:
    first = links()
    first.shorten("https://example.com/a")
    again = MessageLinks(BASE, random.Random(2).randbytes, first.rows)
    assert again.shorten("https://example.com/a") == first.shorten("https://example.com/a")
    assert again.rows == ()
    again.shorten("https://example.com/b")
    assert [link.url for link in again.rows] == ["https://example.com/b"]
