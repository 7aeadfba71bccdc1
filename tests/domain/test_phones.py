"""One canonical form for each phone, and the hashes that find it (C2.4)."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.domain.errors import Problem
from recado.domain.phones import canonical_phone, phone_hash, recipient_hash

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
        ("+541187651234", "+541187651234"),  # not Brazil
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


@given(e164)
def test_a_canonical_phone_stays_as_it_is(phone: str) -> None:
    once = canonical_phone(phone)
    assert canonical_phone(once) == once


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
