"""Addresses: whom a message goes to or comes from, as values: kind, canonical form, hashes, mask (C2.4, C30.3)."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from hashlib import sha256
from typing import Final, NamedTuple

from recado.domain.contacts.contact import email_key
from recado.domain.core.errors import Problem
from recado.domain.core.mail_domains import ADDRESS_FORM
from recado.domain.core.masking import mask_email, mask_phone, mask_social_id
from recado.domain.core.phones import canonical_phone, other_spellings

LONGEST_USER_ID: Final = 128
_is_email = re.compile(ADDRESS_FORM).fullmatch
_is_user_id = re.compile(rf"(?=.{{4,{LONGEST_USER_ID}}}\Z)[A-Z]{{2}}\.(?:ENT\.)?[0-9A-Za-z]+").fullmatch


class AddressKind(StrEnum):
    """What a person is named by."""

    PHONE = "phone"
    EMAIL = "email"
    SOCIAL = "social"  # a platform's user id, as one account there sees it
    SCOPED_USER = "scoped_user"  # a user of the chat app who shows no phone
    DEVICE = "device"  # of an app


class Address(NamedTuple):
    """One address. `text`: its canonical form, by which addresses of a kind compare."""

    kind: AddressKind
    text: str

    def __repr__(self) -> str:
        return f"Address({self.kind.value})"

    @classmethod
    def of(cls, kind: AddressKind, recipient: str) -> "Address":
        """Of a recipient as it is stored."""
        return cls(kind, canonical(kind, recipient))

    def hash(self, organization_id: str) -> bytes:
        """SHA-256 (32 bytes) of organization id, a colon, and the text: as in the opt-out registry (C30.2)."""
        return sha256(f"{organization_id}:{self.text}".encode()).digest()

    def recipient_hash(self, organization_id: str) -> int:
        """The first 8 bytes of `hash` as a signed big-endian number: a `bigint` that names a recipient."""
        return recipient_hash(self.hash(organization_id))

    @property
    def asked_as(self) -> AddressKind:
        """As which kind consent is asked about, and refusals are kept: a user id stands where a phone would (C28.6).

        No user id is the text of a phone, so neither are their hashes.
        """
        return AddressKind.PHONE if self.kind is AddressKind.SCOPED_USER else self.kind

    def spellings(self) -> "tuple[Address, ...]":
        """This one, and the spellings of a phone that were phones of their own once (C2.4)."""
        if self.kind is not AddressKind.PHONE:
            return (self,)
        return (self, *(Address(self.kind, each) for each in other_spellings(self.text)))


def recipient_hash(hashed: bytes) -> int:
    """`Address.recipient_hash` of an address with this `hash`."""
    return int.from_bytes(hashed[:8], "big", signed=True)


def canonical(kind: AddressKind, recipient: str) -> str:
    """The canonical form of a stored recipient: it has that, but for an e-mail address, which keeps the case given."""
    return email_key(recipient) if kind is AddressKind.EMAIL else recipient


class _Form(NamedTuple):
    """`read`: the canonical form of what a provider tells; None when it is no address of the kind.

    `given`: what a caller gives, as it is stored; Problem 422 when it is no address of the kind.
    """

    read: Callable[[str], str | None]
    mask: Callable[[str], str]
    given: Callable[[str], str]


def _phone(text: str) -> str | None:
    try:
        return canonical_phone(text if text.startswith("+") else f"+{text}")  # providers leave out the plus
    except Problem:
        return None


def _user_id(text: str) -> str | None:
    text = text.strip()
    return text if _is_user_id(text) else None


def _email(text: str) -> str | None:
    local, _, domain = text.strip().rpartition("@")
    return email_key(f"{local}@{domain}") if local and domain else None


def _id(text: str) -> str | None:
    return text.strip() or None


def _given_email(text: str) -> str:
    address = text.strip()
    if not _is_email(address):
        raise Problem("VALIDATION_ERROR", "The e-mail address must be such as ana@example.com.")
    return address


def _given_user_id(text: str) -> str:
    found = _user_id(text)
    if found is None:
        raise Problem("VALIDATION_ERROR", "The user id must be such as BR.1502576394655843.")
    return found


def _given_id(text: str) -> str:
    found = _id(text)
    if found is None:
        raise Problem("VALIDATION_ERROR", "The id must not be empty.")
    return found


_FORMS: Final[Mapping[AddressKind, _Form]] = {
    AddressKind.PHONE: _Form(_phone, mask_phone, canonical_phone),
    AddressKind.EMAIL: _Form(_email, mask_email, _given_email),
    AddressKind.SOCIAL: _Form(_id, mask_social_id, _given_id),
    AddressKind.SCOPED_USER: _Form(_user_id, mask_social_id, _given_user_id),
    AddressKind.DEVICE: _Form(_id, mask_social_id, _given_id),
}
MASK: Final[Mapping[AddressKind, Callable[[str], str]]] = {kind: form.mask for kind, form in _FORMS.items()}
"""What is seen of an address without `pii:full` (C2.5)."""


def is_user_id(text: str) -> bool:
    """Whether it is a business-scoped user id of the chat app: a country, perhaps `ENT`, and letters or digits."""
    return not text.startswith("+") and _is_user_id(text) is not None


def kind_of(text: str, kinds: Sequence[AddressKind]) -> AddressKind:
    """The kind of a stored recipient: the first of `kinds`, unless it is a user id, and these may be one."""
    if AddressKind.SCOPED_USER in kinds and is_user_id(text):
        return AddressKind.SCOPED_USER
    return kinds[0]


def given(text: str, kinds: Sequence[AddressKind]) -> str:
    """What a caller gives, as it is stored; Problem 422 when it is of none of `kinds`, in the words of the first."""
    kind = kind_of(text.strip(), kinds)
    return _FORMS[kind].given(text)


def reported(text: str, kinds: Iterable[AddressKind]) -> Address | None:
    """The address that a provider tells, of the first of these kinds that it can be; None when it is of none."""
    for kind in kinds:
        read = _FORMS[kind].read(text)
        if read is not None:
            return Address(kind, read)
    return None
