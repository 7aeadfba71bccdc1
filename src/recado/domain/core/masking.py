"""Masks: what callers without `pii:full`, logs and audit see of personal data (C30.3)."""

from typing import Final

from phonenumbers import COUNTRY_CODE_TO_REGION_CODE

_CALLING_CODES: Final = {str(code): len(str(code)) for code in COUNTRY_CODE_TO_REGION_CODE}
_SHOWN: Final = 4


def mask_phone(phone: str) -> str:
    """Calling code and last four digits: `+5511987651234` → `+55*******1234`. Without a known code only the last four.

    A text too short to hide anything that way is hidden whole.
    """
    start = 0
    if phone.startswith("+"):
        # No calling code begins another one, so the first hit is the longest.
        start = 1 + (
            _CALLING_CODES.get(phone[1:3]) or _CALLING_CODES.get(phone[1:4]) or _CALLING_CODES.get(phone[1:2], 0)
        )
    hidden = len(phone) - start - _SHOWN
    if hidden <= 0:
        return phone[:start] + "*" * (len(phone) - start)
    return f"{phone[:start]}{'*' * hidden}{phone[-_SHOWN:]}"


def mask_email(address: str) -> str:
    """First character of the local part and the domain: `maria@example.com` → `m***@example.com`."""
    local, at, domain = address.rpartition("@")
    if not at:
        return "***"
    return f"{local[:1]}***@{domain}"


def mask_social_id(user_id: str) -> str:
    """The last four characters: `123456789` → `****6789`; nothing of an id that has no more than those."""
    return f"****{user_id[-_SHOWN:]}" if len(user_id) > _SHOWN else "****"


def mask_cpf(cpf: str) -> str:
    """The last two digits: `***.***.***-09`."""
    return f"***.***.***-{cpf[-2:]}"


def mask_cnpj(cnpj: str) -> str:
    """The last two digits: `**.***.***/****-95`."""
    return f"**.***.***/****-{cnpj[-2:]}"


def mask_birth_date(birth_date: str) -> str:
    """The year: `1990-12-31` → `1990-**-**`."""
    return f"{birth_date[:4]}-**-**"


def is_masked(text: str) -> bool:
    """Whether a stored phone or address is its masked form: what is left of it after a deletion (C12.6)."""
    return "*" in text
