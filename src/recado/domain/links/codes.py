"""Codes of links: texts of a few characters that nobody can guess, made of unpredictable bytes (C27)."""

from collections.abc import Callable
from typing import Final

from recado.domain.core.ids import base62
from recado.domain.links.text_links import CODE_LENGTH

RandomBytes = Callable[[int], bytes]

_CODES: Final = 62**CODE_LENGTH
_BYTES: Final = 16  # so many more than a code needs that none is likelier than another

ORIGIN_ALPHABET: Final = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"  # people may read it aloud: without I, O, 0 and 1
ORIGIN_LENGTH: Final = 6


def link_code(random_bytes: RandomBytes) -> str:
    """Eight characters of `[0-9A-Za-z]` (C27.1)."""
    return base62(int.from_bytes(random_bytes(_BYTES), "big") % _CODES, CODE_LENGTH)


def origin_code(random_bytes: RandomBytes) -> str:
    """Six characters of `[A-HJ-NP-Z2-9]` (C27.4)."""
    return "".join(ORIGIN_ALPHABET[byte % len(ORIGIN_ALPHABET)] for byte in random_bytes(ORIGIN_LENGTH))


def is_link_code(text: str) -> bool:
    """Whether a text has the form of a link's code."""
    return len(text) == CODE_LENGTH and text.isalnum() and text.isascii()
