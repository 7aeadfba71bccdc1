"""How tags and addresses compare (C12.2)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.domain.contacts.contact import (
    FIELDS,
    Contact,
    Kind,
    email_hash,
    email_key,
    tag_key,
    tags_united,
    tags_without,
)
from recado.domain.email.mime import wire_address

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


def test_an_address_has_one_hash_whatever_its_case() -> None:
    assert email_hash("org_1", "Maria@Example.com") == email_hash("org_1", "maria@example.COM")
    assert email_hash("org_1", "maria@example.com") != email_hash("org_2", "maria@example.com")


@pytest.mark.parametrize(
    "spelled",
    [
        "Ana@\uff45xample.com",
        "ana@example\u3002com",
        "ana@exam\u00adple.com",
        "ana@EXAMPLE\uff0ecom",
        "ana@example.com",
    ],
)
def test_an_address_has_the_key_of_the_one_that_servers_are_told(spelled: str) -> None:
    assert email_key(spelled) == wire_address(spelled, "to").text.lower() == "ana@example.com"


def test_a_domain_has_one_key_in_letters_and_encoded() -> None:
    assert email_key("Jos\u00c9@B\u00fccher.example") == email_key("jos\u00e9@xn--bcher-kva.example")


@pytest.mark.parametrize(
    "spelled", ["Ana@\u200b", "Ana@\u3002\u3002\u00e9", "no address \u00c9", "\u00c9@", "\u00e9@\ud800.com"]
)
def test_what_is_no_address_has_a_key_too(spelled: str) -> None:
    assert email_key(spelled) == spelled.lower()


def test_each_field_is_an_attribute_of_the_record_and_has_a_name_of_its_own() -> None:
    elsewhere = {"opt_in", "debtor_groups"}  # several attributes, and rows of another table
    assert [each.name for each in FIELDS if each.name not in elsewhere and not hasattr(Contact, each.column)] == []
    for names in ([each.name for each in FIELDS], [each.key for each in FIELDS], [each.shown_as for each in FIELDS]):
        assert len(set(names)) == len(names)


def test_a_text_has_a_limit_and_only_what_no_caller_gives_has_none() -> None:
    assert [each.name for each in FIELDS if each.kind is Kind.TEXT and each.given and each.most < 1] == []
