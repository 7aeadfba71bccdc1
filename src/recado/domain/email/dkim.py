"""DKIM: the signature by which whoever receives an e-mail knows its domain (RFC 6376, RFC 8463; C10.2.12). Pure."""

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_der_private_key,
    load_pem_private_key,
)

Header = tuple[str, bytes]
"""A name, and its value as it stands in the message: with its folds, without the line end."""

SMALLEST_RSA: Final = 1_024  # bits: verifiers refuse anything smaller
_LEFT_OUT: Final = frozenset({"date", "message-id"})
"""Not signed: SES and some mail servers write them anew."""
_ONCE_MORE: Final = ("from", "to", "subject")
"""Signed once more than they are there, so that nobody adds another one."""
_SPACE: Final = re.compile(rb"[ \t\r\n]+")
_SPACE_AT_END: Final = re.compile(rb"(?<![ \t])[ \t]+\r\n")  # looked for once a run of spaces, not at each of them
_SPACES: Final = re.compile(rb"[ \t]+")
_PEM: Final = "-----BEGIN"


@dataclass(frozen=True, slots=True)
class DkimKey:
    """Whose signature it is: the public key stands at `<selector>._domainkey.<domain>`."""

    domain: str
    selector: str
    key: RSAPrivateKey | Ed25519PrivateKey = field(repr=False)

    @property
    def public(self) -> str:
        """Its public half as `p` of the DNS record has it: base64 (RFC 6376, 3.6.1; RFC 8463, 4)."""
        public = self.key.public_key()
        if isinstance(self.key, RSAPrivateKey):
            return base64.b64encode(public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).decode()
        return base64.b64encode(public.public_bytes(Encoding.Raw, PublicFormat.Raw)).decode()

    def sign(self, headers: Sequence[Header], body: bytes, at: datetime) -> Header:
        """The header that goes before those. `body` has CRLF for line ends."""
        algorithm = "rsa-sha256" if isinstance(self.key, RSAPrivateKey) else "ed25519-sha256"
        covered = [each for each in headers if each[0].lower() not in _LEFT_OUT]
        there = [name.lower() for name, _ in covered]
        names = ":".join([*there, *(name for name in _ONCE_MORE if name in there)])
        digest = base64.b64encode(hashlib.sha256(relaxed_body(body)).digest()).decode()
        value = (
            f"v=1; a={algorithm}; c=relaxed/relaxed; d={self.domain}; s={self.selector};\r\n"
            f" t={int(at.timestamp())}; h={_folded(names)};\r\n bh={digest};\r\n b="
        ).encode()
        # From the end, as RFC 6376 wants it where a header is there several times; none of ours is.
        signed = b"".join(relaxed_header(name, value) + b"\r\n" for name, value in covered)
        signed += relaxed_header("DKIM-Signature", value)
        signature = base64.b64encode(self._signed(signed))
        return "DKIM-Signature", value + b"\r\n ".join(signature[at : at + 72] for at in range(0, len(signature), 72))

    def _signed(self, data: bytes) -> bytes:
        if isinstance(self.key, RSAPrivateKey):
            return self.key.sign(data, PKCS1v15(), SHA256())
        return self.key.sign(hashlib.sha256(data).digest())  # RFC 8463: of the digest, not of the text


def dkim_key(domain: str, selector: str, text: str) -> DkimKey:
    """With a private key in PEM, or in DER as base64; raises ValueError for anything but RSA and Ed25519."""
    try:
        if _PEM in text:
            key = load_pem_private_key(text.replace("\\n", "\n").encode(), None)
        else:
            key = load_der_private_key(base64.b64decode(text, validate=True), None)
    except (ValueError, TypeError):
        raise ValueError("it is no private key without a password, in PEM or in base64 of DER") from None
    if isinstance(key, RSAPrivateKey) and key.key_size >= SMALLEST_RSA:
        return DkimKey(domain, selector, key)
    if isinstance(key, Ed25519PrivateKey):
        return DkimKey(domain, selector, key)
    raise ValueError(f"it is neither an RSA key of {SMALLEST_RSA} bits or more nor an Ed25519 key")


def relaxed_header(name: str, value: bytes) -> bytes:
    """RFC 6376, 3.4.2, without the line end."""
    return name.lower().encode() + b":" + _SPACE.sub(b" ", value).strip(b" ")


def relaxed_body(body: bytes) -> bytes:
    """RFC 6376, 3.4.4."""
    body = _SPACES.sub(b" ", _SPACE_AT_END.sub(b"\r\n", body)).rstrip(b"\r\n")
    return body + b"\r\n" if body else b""


def _folded(names: str) -> str:
    """A list of names on lines that are not too long: white space between them is allowed."""
    return names.replace(":list-", ":\r\n list-", 1).replace(":feedback-", ":\r\n feedback-", 1)
