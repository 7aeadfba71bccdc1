"""Check digits of CNPJs: real numbers, the published alphanumeric example, and what they are for (C20)."""

import string

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from recado.domain.contacts.documents import cnpj_check_digits as check_digits
from recado.domain.contacts.documents import searched_cnpj

BASES = st.text(string.digits + string.ascii_uppercase, min_size=12, max_size=12)
# Of public registers, and the example of the tax office for numbers with letters.
REAL = ["11222333000181", "00000000000191", "33000167000101", "60746948000112", "12ABC34501DE35"]


@pytest.mark.parametrize("number", REAL)
def test_real_numbers_are_valid(number: str) -> None:
    assert check_digits(number[:12]) == number[12:]
    assert searched_cnpj(number) == number


@given(BASES)
def test_a_number_is_valid_with_its_own_digits_and_no_others(base: str) -> None:
    assume(len(set(base)) > 1)
    own = check_digits(base)
    assert len(own) == 2
    found = {digits for digits in (f"{n:02}" for n in range(100)) if searched_cnpj(base + digits) is not None}
    assert found == {own}


@given(BASES)
def test_mask_and_case_make_no_difference(base: str) -> None:
    number = base + check_digits(base)
    assume(len(set(number)) > 1)
    masked = f" {number[:2]}.{number[2:5]}.{number[5:8]}/{number[8:12]}-{number[12:]} "
    assert searched_cnpj(masked.lower()) == searched_cnpj(number) == number


@given(st.text(string.digits, min_size=12, max_size=12), st.integers(0, 11), st.integers(1, 9))
def test_a_misread_digit_is_noticed(base: str, place: int, off: int) -> None:
    misread = base[:place] + str((int(base[place]) + off) % 10) + base[place + 1 :]
    first, second = check_digits(base)[0], check_digits(misread)[0]
    # Remainders of 0 and 1 share the digit 0, and only there two readings can agree.
    assert first != second or first == "0"


@pytest.mark.parametrize("digit", string.digits)
def test_fourteen_equal_characters_are_no_number(digit: str) -> None:
    assert searched_cnpj(digit * 14) is None


@pytest.mark.parametrize(
    "text", ["", "Padaria", "1122233300018", "112223330001811", "11222333000182", "11222333000Z81"]
)
def test_anything_else_is_a_name(text: str) -> None:
    assert searched_cnpj(text) is None
