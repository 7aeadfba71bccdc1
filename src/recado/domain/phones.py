"""Phones: one canonical form for all spellings, and the hashes that look one up within an organization (C2.4)."""

import re
from hashlib import sha256

from recado.domain.errors import Problem

_E164 = re.compile(r"\+[1-9][0-9]{7,14}").fullmatch
_SEPARATORS = str.maketrans("", "", " .-()")
_BRAZIL = "+55"
_BRAZIL_WITHOUT_NINTH = len("+55") + 2 + 8
_AREA_END = len("+55") + 2


def canonical_phone(text: str) -> str:
    """The E.164 form of a phone (C2.4). Problem 422 `PHONE_INVALID` when there is none.

    Brazilian mobile numbers in the old form of eight digits receive the ninth: both spellings are one contact.
    """
    if _E164(text) is None:
        text = text.strip().translate(_SEPARATORS)
        if _E164(text) is None:
            raise Problem("PHONE_INVALID", "The phone must be in international form: +, country code, number.")
    if len(text) == _BRAZIL_WITHOUT_NINTH and text.startswith(_BRAZIL) and text[_AREA_END] in "6789":
        return f"{text[:_AREA_END]}9{text[_AREA_END:]}"
    return text


def phone_hash(organization_id: str, phone: str) -> bytes:
    """SHA-256 (32 bytes) of organization id, a colon, and the canonical phone: `phoneHash` of a contact."""
    return sha256(f"{organization_id}:{phone}".encode()).digest()


def recipient_hash(organization_id: str, phone: str) -> int:
    """The first 8 bytes of `phone_hash` as a signed big-endian number: a `bigint` that names a recipient."""
    return int.from_bytes(sha256(f"{organization_id}:{phone}".encode()).digest()[:8], "big", signed=True)
