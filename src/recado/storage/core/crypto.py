"""Encryption of stored secrets: AES-256-GCM, bound to the organization, record and field they belong to (C30.1)."""

import os
import re
from collections.abc import Callable, Mapping

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from recado.domain.core.base64url import base64url, from_base64url

_KEY_BYTES = 32
_NONCE_BYTES = 12
_TAG_BYTES = 16
_FORM = re.compile(r"v1\.(?P<kid>[A-Za-z0-9_-]{1,32})\.(?P<sealed>[A-Za-z0-9_-]+)")

_SEALED = re.compile(rb"v1\.(?P<kid>[A-Za-z0-9_-]{1,32})\.")


class Tampered(Exception):
    """A stored value is not what was encrypted for this place, or its key is gone; it must never be returned."""

    def __init__(self, record_id: str, message: str) -> None:
        super().__init__(message)
        self.record_id = record_id


class KeyRing:
    """The installation's encryption keys by id: the first encrypts, all decrypt."""

    __slots__ = ("_first", "_keys", "_random_bytes")

    def __init__(self, keys: Mapping[str, bytes], *, random_bytes: Callable[[int], bytes] = os.urandom) -> None:
        """`keys` (id to 32 bytes) holds at least one; `random_bytes` must be unpredictable: it makes the nonces."""
        if not keys:
            raise ValueError("a key ring needs at least one key")
        self._first = next(iter(keys))
        self._keys = {kid: AESGCM(key) for kid, key in keys.items()}
        self._random_bytes = random_bytes

    @classmethod
    def parse(cls, text: str) -> "KeyRing":
        """Read `kid:base64,kid2:base64` (32 bytes each); raises ValueError, without repeating a key, when malformed."""
        keys: dict[str, bytes] = {}
        for entry in text.split(","):
            kid, _, encoded = entry.strip().partition(":")
            key = _decode(encoded.translate(str.maketrans("+/", "-_")).rstrip("="))
            if not re.fullmatch(r"[A-Za-z0-9_-]{1,32}", kid) or kid in keys or key is None or len(key) != _KEY_BYTES:
                raise ValueError(f"encryption keys are a list of id:base64 of {_KEY_BYTES} bytes, each id once")
            keys[kid] = key
        return cls(keys)

    @property
    def prefix(self) -> str:
        """With what every value begins that the first key encrypted."""
        return f"v1.{self._first}."

    def encrypt(self, plain: str, *, organization_id: str, record_id: str, field: str) -> str:
        """Return `v1.<kid>.<base64url(nonce, ciphertext, tag)>`, readable only at the same place."""
        nonce = self._random_bytes(_NONCE_BYTES)
        place = _place(organization_id, record_id, field)
        sealed = nonce + self._keys[self._first].encrypt(nonce, plain.encode("utf-8"), place)
        return self.prefix + base64url(sealed)

    def seal(self, plain: bytes, *, organization_id: str, record_id: str, field: str) -> bytes:
        """As `encrypt`, of many bytes: `v1.<kid>.` and then nonce, ciphertext and tag as they are."""
        nonce = self._random_bytes(_NONCE_BYTES)
        sealed = self._keys[self._first].encrypt(nonce, plain, _place(organization_id, record_id, field))
        return b"".join((self.prefix.encode(), nonce, sealed))

    def unseal(self, stored: bytes, *, organization_id: str, record_id: str, field: str) -> bytes:
        """Return what `seal` took; raises Tampered as `decrypt` does."""
        match = _SEALED.match(stored)
        if match is None or len(stored) < match.end() + _NONCE_BYTES + _TAG_BYTES:
            raise Tampered(record_id, f"{field} of {record_id} is not an encrypted value")
        cipher = self._cipher(match["kid"].decode(), record_id, field)
        nonce, sealed = stored[match.end() :][:_NONCE_BYTES], stored[match.end() + _NONCE_BYTES :]
        try:
            return cipher.decrypt(nonce, sealed, _place(organization_id, record_id, field))
        except InvalidTag:
            raise Tampered(record_id, f"{field} of {record_id} fails authentication") from None

    def decrypt(self, stored: str, *, organization_id: str, record_id: str, field: str) -> str:
        """Return what `encrypt` took; raises Tampered when it was altered, moved, or its key is unknown."""
        match = _FORM.fullmatch(stored)
        sealed = _decode(match["sealed"]) if match else None
        if match is None or sealed is None or len(sealed) < _NONCE_BYTES + _TAG_BYTES:
            raise Tampered(record_id, f"{field} of {record_id} is not an encrypted value")
        cipher = self._cipher(match["kid"], record_id, field)
        nonce, ciphertext = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
        try:
            return cipher.decrypt(nonce, ciphertext, _place(organization_id, record_id, field)).decode("utf-8")
        except InvalidTag:
            raise Tampered(record_id, f"{field} of {record_id} fails authentication") from None

    def _cipher(self, kid: str, record_id: str, field: str) -> AESGCM:
        cipher = self._keys.get(kid)
        if cipher is None:
            missing = f"{field} of {record_id} was encrypted with the key {kid}, which is not configured"
            raise Tampered(record_id, missing)
        return cipher


def _place(organization_id: str, record_id: str, field: str) -> bytes:
    # Ids and field names hold no line break, so no two places share one form.
    return f"{organization_id}\n{record_id}\n{field}".encode()


def _decode(text: str) -> bytes | None:
    try:
        decoded = from_base64url(text)
    except ValueError:
        return None
    # The last character may carry bits that decoding drops: only one spelling of a value is valid.
    return decoded if base64url(decoded) == text else None
