"""Tokens in the public addresses of an e-mail: of its image, and of its unsubscription (C27.2, C27.3).

They are signed and never expire. Ids stand in them as they are, without their prefix; an e-mail address stands in none,
nor does its hash, by which one could be guessed: only who has the key reads it.
"""

import hmac
import re
from typing import Final, NamedTuple

from recado.domain.core.base64url import base64url, from_base64url
from recado.domain.core.ids import BODY_LENGTH, CONTACT, MESSAGE, ORGANIZATION

_ENVS: Final = {"t": "test", "l": "live"}
_LETTERS: Final = {env: letter for letter, env in _ENVS.items()}
_SIGNATURE_BYTES: Final = 16
_HASH_BYTES: Final = 32
_NOBODY: Final = "0" * BODY_LENGTH
_ID: Final = f"([0-9A-Za-z]{{{BODY_LENGTH}}})"
_OPEN: Final = re.compile(f"([tl]){_ID}{_ID}([A-Za-z0-9_-]{{22}})")
_UNSUBSCRIPTION: Final = re.compile(f"([tl]){_ID}{_ID}{_ID}([A-Za-z0-9_-]{{43}})([A-Za-z0-9_-]{{22}})")
_PURPOSE: Final = b"recado public tokens of e-mails 1"


class EmailKey(NamedTuple):
    """Which message of channel `email`."""

    organization_id: str
    env: str
    message_id: str


class Unsubscription(NamedTuple):
    """Who refuses: the person that a message went to. `contact_id`: that it named.

    `address_hash`: of its address, as the opt-out registry has it (32 bytes).
    """

    message: EmailKey
    contact_id: str | None
    address_hash: bytes


class PublicTokens:
    """Writes and reads them. `key`: a secret of the installation that never changes (32 bytes or more).

    `former`: what they were written with before; they never expire.
    """

    __slots__ = ("_former", "_key")

    def __init__(self, key: bytes, *former: bytes) -> None:
        self._key, *self._former = (hmac.digest(each, _PURPOSE, "sha256") for each in (key, *former))

    def of_open(self, message: EmailKey) -> str:
        """Of the image of a message: 65 characters of `[0-9A-Za-z_-]`."""
        said = _said(message)
        return said + _signature(self._key, "open", said)

    def opened(self, token: str) -> EmailKey | None:
        """The message whose image it is; None when the token is none of ours."""
        found = _OPEN.fullmatch(token)
        if found is None or self._signer("open", token) is None:
            return None
        return _message(found)

    def of_unsubscription(self, who: Unsubscription) -> str:
        """Of the unsubscription from a message: 129 characters of `[0-9A-Za-z_-]`."""
        contact = _NOBODY if who.contact_id is None else who.contact_id.removeprefix(CONTACT)
        named = _said(who.message) + contact
        said = named + base64url(_hidden(self._key, named, who.address_hash))
        return said + _signature(self._key, "unsubscribe", said)

    def unsubscribed(self, token: str) -> Unsubscription | None:
        """Who refuses with the token; None when it is none of ours."""
        found = _UNSUBSCRIPTION.fullmatch(token)
        key = None if found is None else self._signer("unsubscribe", token)
        if found is None or key is None:
            return None
        contact, hidden = found[4], found[5]
        named = token[: found.end(4)]
        address_hash = _hidden(key, named, from_base64url(hidden))
        return Unsubscription(_message(found), None if contact == _NOBODY else CONTACT + contact, address_hash)

    def _signer(self, purpose: str, token: str) -> bytes | None:
        """Which key signed the token; None when none did."""
        said, signature = token[:-22], token[-22:]
        keys = (self._key, *self._former)
        return next((key for key in keys if hmac.compare_digest(signature, _signature(key, purpose, said))), None)


def _hidden(key: bytes, named: str, address_hash: bytes) -> bytes:
    """A hash as only the key shows it, and back: no two messages have the same mask."""
    mask = hmac.digest(key, f"hide:{named}".encode(), "sha256")
    number = int.from_bytes(mask, "big") ^ int.from_bytes(address_hash, "big")
    return number.to_bytes(_HASH_BYTES, "big")


def _signature(key: bytes, purpose: str, said: str) -> str:
    return base64url(hmac.digest(key, f"{purpose}:{said}".encode(), "sha256")[:_SIGNATURE_BYTES])


def _said(message: EmailKey) -> str:
    organization = message.organization_id.removeprefix(ORGANIZATION)
    return _LETTERS[message.env] + organization + message.message_id.removeprefix(MESSAGE)


def _message(found: re.Match[str]) -> EmailKey:
    return EmailKey(ORGANIZATION + found[2], _ENVS[found[1]], MESSAGE + found[3])
