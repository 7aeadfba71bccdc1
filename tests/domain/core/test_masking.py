"""What masks show (C30.3)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from phonenumbers import COUNTRY_CODE_TO_REGION_CODE

from recado.domain.core.masking import mask_email, mask_phone, mask_social_id


@pytest.mark.parametrize(
    ("phone", "mask"),
    [
        ("+5511987651234", "+55*******1234"),
        ("+12025550123", "+1******0123"),
        ("+351912345678", "+351*****5678"),
        ("+79161234567", "+7******4567"),
        ("+8701234567", "+870***4567"),
        ("+99912345678", "+*******5678"),  # no such calling code
        ("5511987651234", "*********1234"),
        ("+551234", "+55****"),
        ("1234", "****"),
        ("", ""),
    ],
)
def test_a_phone_shows_its_calling_code_and_four_digits(phone: str, mask: str) -> None:
    assert mask_phone(phone) == mask


@given(st.from_regex(r"\+[1-9][0-9]{7,14}", fullmatch=True))
def test_a_mask_keeps_the_length_and_shows_the_longest_known_code(phone: str) -> None:
    mask = mask_phone(phone)
    known = [code for code in (phone[1:2], phone[1:3], phone[1:4]) if int(code) in COUNTRY_CODE_TO_REGION_CODE]
    shown = "+" + (max(known, key=len) if known else "")
    assert mask == shown + "*" * (len(phone) - len(shown) - 4) + phone[-4:]


def test_no_calling_code_begins_another_one() -> None:
    codes = [str(code) for code in COUNTRY_CODE_TO_REGION_CODE]
    assert not [(one, other) for one in codes for other in codes if one != other and other.startswith(one)]


@pytest.mark.parametrize(
    ("address", "mask"),
    [
        ("maria@example.com", "m***@example.com"),
        ("m@example.com", "m***@example.com"),
        ('"a@b"@example.com', '"***@example.com'),
        ("@example.com", "***@example.com"),
        ("maria", "***"),
    ],
)
def test_an_address_shows_one_character_and_its_domain(address: str, mask: str) -> None:
    assert mask_email(address) == mask


@pytest.mark.parametrize(("user_id", "mask"), [("123456789", "****6789"), ("6789", "****"), ("", "****")])
def test_a_social_id_shows_four_characters(user_id: str, mask: str) -> None:
    assert mask_social_id(user_id) == mask
