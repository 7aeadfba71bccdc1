"""A contact's documents in their one stored form: CPF, CNPJ and birth date (C12.2).

The texts of refusals never repeat what was given.
"""

import re
from collections.abc import Callable, Mapping
from datetime import date
from operator import mul
from typing import Final

from recado.domain.core.errors import Problem

CPF: Final = "cpf"
CNPJ: Final = "cnpj"
BIRTH_DATE: Final = "birthDate"

SHOWN_AS: Final = {CPF: "cpf", CNPJ: "cnpj", BIRTH_DATE: "nascimento"}
"""The names of the three fields in `documentos`."""

EARLIEST_BIRTH: Final = date(1900, 1, 1)

_SEPARATORS = str.maketrans("", "", "./-")
_CPF = re.compile(r"[0-9]{11}").fullmatch
_CNPJ = re.compile(r"[0-9A-Za-z]{12}[0-9]{2}").fullmatch
_CNPJ_WEIGHTS: Final = (2, 3, 4, 5, 6, 7, 8, 9)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}").fullmatch


def canonical_cpf(text: str) -> str:
    """The 11 digits of a CPF given with or without mask; Problem 422 `CPF_INVALID`, also for wrong check digits."""
    digits = text.strip().translate(_SEPARATORS)
    if _CPF(digits) is None or digits == digits[0] * 11 or cpf_check_digits(digits[:9]) != digits[9:]:
        raise Problem("CPF_INVALID", "The CPF must have 11 digits, the last two of which are valid check digits.")
    return digits


def cpf_check_digits(base: str) -> str:
    """The two check digits of the first nine digits of a CPF: each a sum with falling weights, modulo 11."""
    for _ in range(2):
        total = sum(map(mul, map(int, base), range(len(base) + 1, 1, -1)))
        base += str(total * 10 % 11 % 10)
    return base[-2:]


def canonical_cnpj(text: str) -> str:
    """The 14 characters of a CNPJ, unmasked and in upper case; Problem 422 `CNPJ_INVALID`.

    Its check digits are not verified, and its first twelve characters may be letters.
    """
    number = text.strip().translate(_SEPARATORS)
    if _CNPJ(number) is None:  # before the case is changed, which makes letters of what is none: "ı", "ß"
        raise Problem("CNPJ_INVALID", "The CNPJ must have 12 letters or digits and two valid check digits.")
    return number.upper()


def canonical_birth_date(text: str, today: date) -> str:
    """A birth date as `AAAA-MM-DD`, from 1900 and not after `today`; Problem 422 `VALIDATION_ERROR`."""
    given = text.strip()
    try:
        born = date.fromisoformat(given) if _DATE(given) else None
    except ValueError:
        born = None
    if born is None or not EARLIEST_BIRTH <= born <= today:
        raise Problem("VALIDATION_ERROR", "The birth date must be a date such as 1990-12-31, from 1900 until today.")
    return given


CANONICAL: Final[Mapping[str, Callable[[str, date], str]]] = {
    CPF: lambda text, _: canonical_cpf(text),
    CNPJ: lambda text, _: canonical_cnpj(text),
    BIRTH_DATE: canonical_birth_date,
}
"""What brings each into its stored form, on a day; raises Problem."""


def searched_document(text: str) -> tuple[str, str] | None:
    """Field and canonical value that `?documento=` asks for; None for what no contact can have (C30.2)."""
    for field, canonical in ((CPF, canonical_cpf), (CNPJ, canonical_cnpj)):
        try:
            return field, canonical(text)
        except Problem:
            continue
    return None


def searched_cnpj(text: str) -> str | None:
    """The 14 characters of a CNPJ whose check digits are right, with or without mask; None for anything else (C20)."""
    try:
        number = canonical_cnpj(text)
    except Problem:
        return None
    if number == number[0] * len(number) or cnpj_check_digits(number[:12]) != number[12:]:
        return None
    return number


def cnpj_check_digits(base: str) -> str:
    """The two check digits of the first 12 characters of a CNPJ: each over all that stands before it."""
    for _ in range(2):
        values = [ord(character) - 48 for character in reversed(base)]
        total = sum(value * _CNPJ_WEIGHTS[place % len(_CNPJ_WEIGHTS)] for place, value in enumerate(values))
        digit = 11 - total % 11
        base += str(digit if digit < 10 else 0)
    return base[-2:]
