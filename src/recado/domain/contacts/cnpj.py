"""The check digits of a CNPJ, numeric or alphanumeric: how a search tells a number from a name (C20)."""

from typing import Final

from recado.domain.contacts.documents import canonical_cnpj
from recado.domain.core.errors import Problem

_BASE: Final = 12
_WEIGHTS: Final = (2, 3, 4, 5, 6, 7, 8, 9)


def check_digits(base: str) -> str:
    """The two check digits of the first 12 characters of a CNPJ: each over all that stands before it."""
    for _ in range(2):
        values = [ord(character) - 48 for character in reversed(base)]
        total = sum(value * _WEIGHTS[place % len(_WEIGHTS)] for place, value in enumerate(values))
        digit = 11 - total % 11
        base += str(digit if digit < 10 else 0)
    return base[-2:]


def searched_cnpj(text: str) -> str | None:
    """The 14 characters of a CNPJ whose check digits are right, with or without mask; None for anything else."""
    try:
        number = canonical_cnpj(text)
    except Problem:
        return None
    if number == number[0] * len(number) or check_digits(number[:_BASE]) != number[_BASE:]:
        return None
    return number
