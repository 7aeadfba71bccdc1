"""How tags compare, and what a search for a contact looks for (C12.1, C12.2)."""

import re
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from recado.domain.contact import (
    email_hash,
    folded,
    search_mark,
    search_query,
    search_words,
    tag_key,
    tags_united,
    tags_without,
)

tags = st.lists(st.text("aAbBßẞ ", min_size=1, max_size=3))


@given(tags, tags)
def test_of_tags_that_differ_in_case_the_first_spelling_stays(first: list[str], second: list[str]) -> None:
    united = tags_united(first, second)
    keys = [tag_key(tag) for tag in united]
    assert len(set(keys)) == len(keys)
    assert set(keys) == {tag_key(tag) for tag in [*first, *second]}
    for tag in united:
        assert tag == next(each for each in [*first, *second] if tag_key(each) == tag_key(tag))
    assert tags_united(united) == united


@given(tags, tags)
def test_tags_are_removed_whatever_their_case(kept: list[str], removed: list[str]) -> None:
    left = tags_without(tags_united(kept), [tag.swapcase() for tag in removed])
    assert not {tag_key(tag) for tag in left} & {tag_key(tag.swapcase()) for tag in removed}


@given(st.text())
def test_folding_twice_is_folding_once(text: str) -> None:
    assert folded(folded(text)) == folded(text)


def test_folding_drops_case_and_accents() -> None:
    assert folded("Conceição ÀÉÎÕÜ ÑÇ") == "conceicao aeiou nc"


@given(st.text(), st.text(st.characters(max_codepoint=0x7F)))
def test_words_are_what_stands_between_gaps(name: str, email: str) -> None:
    found = search_words("mark", "+1", (name, None, email))
    words = re.findall(r"\w+", f"{folded(name)} {folded(email)}")
    assert found == [*(f"mark{word[:60]}" for word in dict.fromkeys(words)), "mark+1", "mark-1"]


@given(st.text(st.characters(max_codepoint=0x24F) | st.characters(min_codepoint=0x300, max_codepoint=0x36F)))
def test_accents_are_what_combines(text: str) -> None:
    decomposed = unicodedata.normalize("NFKD", text)
    assert folded(text) == "".join(each for each in decomposed if not unicodedata.combining(each)).casefold()


def test_the_entries_of_two_environments_begin_differently() -> None:
    assert len({search_mark("org_1", "test"), search_mark("org_1", "live"), search_mark("org_2", "test")}) == 3


def test_words_and_digits_of_a_contact_are_what_a_search_finds() -> None:
    words = search_words("mark", "+5511987654321", ("Maria da Conceição", None, "m.souza@example.com"))
    assert words == [
        "markmaria", "markda", "markconceicao", "markm", "marksouza", "markexample", "markcom", "mark+5511987654321",
        "mark-1234567891155",
    ]  # fmt: skip


@given(st.text(max_size=200), st.text(max_size=254))
def test_no_entry_is_larger_than_the_server_takes(name: str, email: str) -> None:
    for word in search_words("mark", "+5511987654321", (name, None, email)):
        assert len(word.encode()) < 2_046


@given(st.text(max_size=100))
def test_a_query_quotes_words_only(q: str) -> None:
    query = search_query("mark", q)
    if query is not None:
        assert query.count("'") % 2 == 0
        for word in query.split("'")[1::2]:
            assert word.startswith("mark")
            assert "\\" not in word


def test_a_phone_is_looked_for_by_its_digits_however_it_is_written() -> None:
    assert search_query("m", "+55 (11) 9876") == "('m55':* & 'm11':* & 'm9876':* | 'm+55119876':* | 'm-67891155':*)"
    assert search_query("m", "987") == "'m987':*"
    assert search_query("m", "maria 4321") == "'mmaria':* & ('m4321':* | 'm+4321':* | 'm-1234':*)"
    assert search_query("m", " .-/ ") is None


def test_an_address_has_one_hash_whatever_its_case() -> None:
    assert email_hash("org_1", "Maria@Example.com") == email_hash("org_1", "maria@example.COM")
    assert email_hash("org_1", "maria@example.com") != email_hash("org_2", "maria@example.com")
