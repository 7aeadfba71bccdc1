"""By which words a search finds a contact, and what it looks for (C12.1)."""

import re
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from recado.domain.contacts.contact_search import (
    Inside,
    SearchTerm,
    folded,
    search_mark,
    search_query,
    search_terms,
    search_words,
)


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


def test_a_server_that_finds_no_word_inside_words_looks_for_beginnings() -> None:
    for q in ("maria 4321", "+55 (11) 9876", "da"):
        assert search_terms("m", q, Inside.NONE) == (SearchTerm(search_query("m", q)),)
    assert search_terms("m", " .-/ ", Inside.NONE) == ()


def test_words_of_three_letters_or_digits_are_looked_for_inside_words_and_shorter_ones_at_their_beginnings() -> None:
    assert search_terms("m", "Da CONCEIÇÃO", Inside.ALL) == (
        SearchTerm("'mda':*"),
        SearchTerm(None, ("'m([^'+-][^']*)?conceicao",)),
    )
    assert search_terms("m", "a_b-c.silva", Inside.ALL) == (
        SearchTerm("'ma_b':* & 'mc':*", ("'m([^'+-][^']*)?silva",)),
    )
    assert search_terms("m", " .-/ ", Inside.ALL) == ()


def test_a_term_of_digits_may_be_inside_words_or_at_an_end_of_the_phone() -> None:
    assert search_terms("m", "4321", Inside.ALL) == (
        SearchTerm(None, ("'m([^'+-][^']*)?4321",), "'m+4321':* | 'm-1234':*"),
    )
    assert search_terms("m", "+55 (11) 9876", Inside.ALL) == (
        SearchTerm("'m55':* & 'm11':*", ("'m([^'+-][^']*)?9876",), "'m+55119876':* | 'm-67891155':*"),
    )


def test_where_the_server_knows_letters_of_ascii_only_other_words_are_looked_for_at_their_beginnings() -> None:
    assert search_terms("m", "жизнь ana1", Inside.ASCII) == (
        SearchTerm("'mжизнь':*"),
        SearchTerm(None, ("'m([^'+-][^']*)?ana1",)),
    )
    assert search_terms("m", "жизнь", Inside.ALL) == (SearchTerm(None, ("'m([^'+-][^']*)?жизнь",)),)


words = st.text(st.characters(categories=["L", "N"]) | st.sampled_from("aB1_áß"), max_size=70)


@given(words, st.text(max_size=20))
def test_every_part_of_a_word_finds_it_and_no_other_entry_does(word: str, other: str) -> None:
    entries = search_words("Mark", "+5511987654321", (word, None, other))
    text = " ".join(f"'{entry}'" for entry in sorted(entries))
    for q in (word[1:], word[:-1], word[2:9], other):
        for term in search_terms("Mark", q, Inside.ALL):
            for expression in term.inside:
                looked_for = expression.rpartition("?")[2]
                holds = any(looked_for in entry[4:] for entry in entries[:-2])
                assert (re.search(expression, text) is not None) == holds


def test_neither_the_mark_nor_a_phone_is_found_as_a_word() -> None:
    text = " ".join(f"'{entry}'" for entry in search_words("4mar", "+5511987654321", ("x4marana", None, None)))
    for q, found in (("mar", True), ("4mar", True), ("ana", True), ("4ma", True), ("119876", False), ("5511", False)):
        ((expression,),) = (term.inside for term in search_terms("4mar", q, Inside.ALL))
        assert (re.search(expression, text) is not None) == found, q
    plain = "'4marana'"
    for q in ("4ma", "mar", "arana"):
        ((expression,),) = (term.inside for term in search_terms("4mar", q, Inside.ALL))
        assert re.search(expression, plain) is None, q
