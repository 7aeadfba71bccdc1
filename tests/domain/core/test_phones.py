"""One canonical form for each phone, and the hashes that find it (C2.4)."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.domain.core.errors import Problem
from recado.domain.core.phones import canonical_phone, other_spellings, phone_hash, recipient_hash

e164 = st.from_regex(r"\+[1-9][0-9]{7,14}", fullmatch=True)


@pytest.mark.parametrize(
    ("text", "phone"),
    [
        ("+5511987651234", "+5511987651234"),
        (" +55 (11) 98765-1234 ", "+5511987651234"),
        ("+1.202.555.0123", "+12025550123"),
        ("+551187651234", "+5511987651234"),  # the ninth digit is added
        ("+55 11 6765-1234", "+5511967651234"),
        ("+551133334444", "+551133334444"),  # a landline keeps eight
        ("+551157651234", "+551157651234"),
        ("+55 (011) 98765-1234", "+5511987651234"),  # a zero before the area code
        ("+55 011 8765-1234", "+5511987651234"),
        ("+55 0 15 11 3333-4444", "+551133334444"),  # and a carrier
        ("+52 55 1234 5678", "+525512345678"),
        ("+52 1 55 1234 5678", "+525512345678"),
        ("+52 1 55 1234", "+521551234"),  # too short for the former form
        ("+54 9 11 2345-6789", "+5491123456789"),
        ("+54 11 2345-6789", "+5491123456789"),
        ("+54 11 15 2345-6789", "+5491123456789"),
        ("+54 (011) 2345-6789", "+5491123456789"),
        ("+54 (0223) 15 423-4567", "+5492234234567"),
        ("+54 800 555 1234", "+548005551234"),
        ("+44 (0) 7911 123456", "+447911123456"),
        ("+39 06 1234 5678", "+390612345678"),  # the zero belongs to it
        ("+225 07 01 02 03 04", "+2250701020304"),
        ("+210 0123456", "+2100123456"),  # no country
    ],
)
def test_spellings_of_one_phone_become_one(text: str, phone: str) -> None:
    assert canonical_phone(text) == phone


@pytest.mark.parametrize(
    "text",
    ["", "+", "5511987651234", "+0511987651234", "+1234567", "+1234567890123456", "+55 11 9876x1234", "++5511987651234",
     "+٥٥11987651234", "+5511987651234\n+1", "+55/11987651234", "005511987651234"],
)  # fmt: skip
def test_anything_else_is_refused_without_being_repeated(text: str) -> None:
    with pytest.raises(Problem) as caught:
        canonical_phone(text)
    assert (caught.value.status, caught.value.code) == (422, "PHONE_INVALID")
    assert len(text) < 2 or text not in str(caught.value)


@given(e164 | st.from_regex(r"\+(?:5[245]|44|49|7|225)0?[0-9]{7,11}", fullmatch=True))
def test_a_canonical_phone_stays_as_it_is(phone: str) -> None:
    once = canonical_phone(phone)
    assert canonical_phone(once) == once


@pytest.mark.parametrize(
    ("phone", "others"),
    [
        ("+5511987651234", set()),
        ("+551133334444", set()),
        ("+55011987651234", {"+5511987651234"}),
        ("+525512345678", {"+5215512345678"}),
        ("+5215512345678", {"+525512345678"}),
        ("+5491123456789", {"+541123456789", "+5401123456789", "+54111523456789", "+540111523456789"}),
        ("+542234234567", {"+5492234234567", "+5402234234567", "+54223154234567", "+540223154234567"}),
        ("+447911123456", {"+4407911123456"}),
        ("+3612345678", {"+360612345678"}),
        ("+390612345678", set()),  # no country where a zero is dialled
        ("+12025550123", set()),
        ("+210123456789", set()),  # no country
    ],
)
def test_the_other_spellings_are_those_that_were_phones_of_their_own_once(phone: str, others: set[str]) -> None:
    assert set(other_spellings(phone)) == others


@given(e164 | st.from_regex(r"\+(?:5[245]|44|49|36|225)0?[0-9]{7,11}", fullmatch=True))
def test_every_spelling_is_one_of_the_same_phone(phone: str) -> None:
    for each in other_spellings(phone):
        assert each != phone
        assert canonical_phone(each) == canonical_phone(phone)


@given(e164, st.data())
def test_separators_change_nothing(phone: str, data: st.DataObject) -> None:
    spelled = "".join(digit + data.draw(st.text(" .-()", max_size=2)) for digit in phone)
    assert canonical_phone(spelled) == canonical_phone(phone)


def test_a_phone_hash_is_sha256_of_organization_and_phone() -> None:
    digest = hashlib.sha256(b"org_1:+5511987651234").digest()
    assert phone_hash("org_1", "+5511987651234") == digest


@given(st.text(max_size=20), e164)
def test_a_recipient_hash_is_the_head_of_the_phone_hash_and_fits_a_bigint(organization_id: str, phone: str) -> None:
    number = recipient_hash(organization_id, phone)
    assert number.to_bytes(8, "big", signed=True) == phone_hash(organization_id, phone)[:8]
