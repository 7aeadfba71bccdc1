"""Phones: one canonical form for all spellings, and the hashes that look one up within an organization (C2.4).

Countries of which more than one spelling is in use have a rule here. Digits that are dialled only inside a country (a
zero before the area code) go by the plans of phonenumbers; its parser is not asked: it takes 60 µs for a phone.
"""

import re
from dataclasses import dataclass
from functools import cache
from hashlib import sha256

from phonenumbers import COUNTRY_CODE_TO_REGION_CODE, PhoneMetadata

from recado.domain.core.errors import Problem

_E164 = re.compile(r"\+[1-9][0-9]{7,14}").fullmatch
_SEPARATORS = str.maketrans("", "", " .-()")
_CALLING_CODES = frozenset(map(str, COUNTRY_CODE_TO_REGION_CODE))
_BRAZIL, _MEXICO_ONE, _ARGENTINA = "+55", "+521", "+54"
_BRAZIL_WITHOUT_NINTH = len("+55") + 2 + 8
_AREA_END = len("+55") + 2
_MEXICO_WITH_ONE = len("+52") + 1 + 10
_ARGENTINA_WITHOUT_NINE = re.compile(r"\+54(?:11\d{8}|[23]\d{9})").fullmatch  # of an area: not 0800
_ARGENTINA_WITH_15 = len("+54") + 12


def canonical_phone(text: str) -> str:
    """The E.164 form of a phone (C2.4). Problem 422 `PHONE_INVALID` when there is none.

    All spellings of a phone are one contact, and one entry of the opt-out registry. Brazil: mobile numbers in the old
    form of eight digits receive the ninth. Mexico: no 1 before the area code. Argentina: a 9 before it, as chat-app and
    SMS want it, and no 15 behind it. No zero for calls inside a country.
    """
    if _E164(text) is None:
        text = text.strip().translate(_SEPARATORS)
        if _E164(text) is None:
            raise Problem("PHONE_INVALID", "The phone must be in international form, such as +5521912345678.")
    if text.startswith(_BRAZIL):
        if text[3] == "0":
            text = _as_from_abroad(text)
        if len(text) == _BRAZIL_WITHOUT_NINTH and text[_AREA_END] in "6789":
            return f"{text[:_AREA_END]}9{text[_AREA_END:]}"
        return text
    if "0" in text[2:5] or (len(text) == _ARGENTINA_WITH_15 and text.startswith(_ARGENTINA)):
        text = _as_from_abroad(text)
    if text[1] == "5":
        if len(text) == _MEXICO_WITH_ONE and text.startswith(_MEXICO_ONE):
            return f"+52{text[4:]}"
        if _ARGENTINA_WITHOUT_NINE(text):
            return f"+549{text[3:]}"
    return text


def other_spellings(phone: str) -> tuple[str, ...]:
    """The spellings of a stored phone that were phones of their own once; none of an ordinary Brazilian number (C2.4).

    The opt-out registry holds hashes, which nobody can respell: whatever asks it asks for these too (C12.5.8). None of
    a user id, which stands in the place of a phone (C28.6).
    """
    if (phone.startswith(_BRAZIL) and phone[3] != "0") or not phone.startswith("+"):
        return ()
    canonical = canonical_phone(phone)
    return tuple(each for each in (canonical, *_former_spellings(canonical)) if each != phone)


def _former_spellings(canonical: str) -> list[str]:
    if canonical.startswith(_BRAZIL):
        return []
    if canonical.startswith("+52"):
        candidates = [f"{_MEXICO_ONE}{canonical[3:]}"]
    elif _ARGENTINA_WITHOUT_NINE(without_nine := f"{_ARGENTINA}{canonical[4:]}") and canonical.startswith("+549"):
        line = canonical[4:]
        candidates = [f"{_ARGENTINA}{line[:area]}15{line[area:]}" for area in (2, 3, 4)]
        with_15 = [each for each in candidates if canonical_phone(each) == canonical]
        return [f"{_ARGENTINA}{zero}{each[3:]}" for each in (without_nine, *with_15) for zero in ("", "0")]
    else:
        code = _calling_code(canonical)
        plan = _plan_of(code) if code else None
        candidates = [f"+{code}{plan.zero}{canonical[1 + len(code) :]}"] if plan is not None and plan.zero else []
    return [each for each in candidates if _E164(each) and canonical_phone(each) == canonical]


@dataclass(frozen=True, slots=True)
class _Plan:
    """How phones are dialled inside a country: the digits before them, and what takes their place from abroad.

    `zero`: the digits as they are dialled most, where they begin with one.
    """

    prefix: re.Pattern[str]
    instead: str | None
    phones: re.Pattern[str]
    lengths: tuple[int, ...]
    zero: str

    def as_from_abroad(self, national: str) -> str:
        """The digits behind the calling code, without what is dialled inside the country alone."""
        found = self.prefix.match(national)
        if found is None or not found.end():
            return national
        if self.instead is not None and found.groups()[-1] is not None:
            shorter = self.prefix.sub(self.instead, national, count=1)
        else:
            shorter = national[found.end() :]
        if len(shorter) not in self.lengths or (self.phones.fullmatch(national) and not self.phones.fullmatch(shorter)):
            return national
        return shorter


@cache
def _plan_of(code: str) -> _Plan | None:
    """The plan of the first country with this calling code; None when there is none with a prefix."""
    regions = COUNTRY_CODE_TO_REGION_CODE.get(int(code), ())
    found = PhoneMetadata.metadata_for_region(regions[0]) if regions else None
    if found is None or found.national_prefix_for_parsing is None or found.general_desc is None:
        return None
    rule = found.national_prefix_transform_rule
    return _Plan(
        re.compile(found.national_prefix_for_parsing),
        rule or None,
        re.compile(found.general_desc.national_number_pattern or ""),
        found.general_desc.possible_length,
        prefix if (prefix := found.national_prefix or "").startswith("0") else "",
    )


def _calling_code(text: str) -> str:
    # No calling code begins another one.
    return next((text[1:end] for end in (2, 3, 4) if text[1:end] in _CALLING_CODES), "")


def _as_from_abroad(text: str) -> str:
    code = _calling_code(text)
    national = text[1 + len(code) :]
    plan = _plan_of(code) if code and (national[0] == "0" or text.startswith(_ARGENTINA)) else None
    if plan is None:
        return text
    while (shorter := plan.as_from_abroad(national)) != national:
        national = shorter
    found = f"+{code}{national}"
    return found if _E164(found) else text


def phone_hash(organization_id: str, phone: str) -> bytes:
    """SHA-256 (32 bytes) of organization id, a colon, and the canonical phone: `phoneHash` of a contact."""
    return sha256(f"{organization_id}:{phone}".encode()).digest()


def recipient_hash(organization_id: str, phone: str) -> int:
    """The first 8 bytes of `phone_hash` as a signed big-endian number: a `bigint` that names a recipient."""
    return int.from_bytes(sha256(f"{organization_id}:{phone}".encode()).digest()[:8], "big", signed=True)
