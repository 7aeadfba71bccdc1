"""The envelope of SNS, in which reports come: who signed it, and with what (C29.5).

Anybody may have a topic there, whose envelopes are signed alike: only those of the topic of the settings are ours.
"""

import base64
import binascii
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import urlsplit

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.hashes import SHA1, SHA256, HashAlgorithm
from cryptography.x509 import load_pem_x509_certificate

from recado.channels.core.callback_json import callback_json
from recado.channels.core.errors import MalformedCallback
from recado.domain.core.timestamps import parse_timestamp

NOTIFICATION: Final = "Notification"
CONFIRMATION: Final = "SubscriptionConfirmation"
OLDEST: Final = timedelta(days=1)  # SNS tries for an hour as a rule
EARLIEST: Final = timedelta(minutes=15)  # its clock before ours

LARGEST_ENVELOPE: Final = (2 * 256 + 16) * 1024
"""Bytes: a message has 256 KiB at most, in which each sign may be escaped, and the rest is small."""

_OF_CONFIRMATION: Final = ("Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type")
_SIGNED: Final[Mapping[str, Sequence[str]]] = {
    NOTIFICATION: ("Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"),
    CONFIRMATION: _OF_CONFIRMATION,
    "UnsubscribeConfirmation": _OF_CONFIRMATION,
}
"""The fields that are signed, in their order; `Subject` where there is one."""
_HASHES: Final[Mapping[str, Callable[[], HashAlgorithm]]] = {"1": SHA1, "2": SHA256}
_REGION: Final = r"[a-z]{2}(?:-[a-z]+)+-[0-9]{1,2}"
_LONGEST: Final = 2_048  # characters, of an address


@dataclass(frozen=True, slots=True)
class Envelope:
    """One that came. Who sent it is not known yet."""

    type: str
    topic: str
    message: str = field(repr=False)
    at: datetime
    certificate_url: str
    subscribe_url: str | None = field(repr=False)
    signature: bytes = field(repr=False)
    version: str
    signed: bytes = field(repr=False)

    def is_signed_with(self, key: RSAPublicKey) -> bool:
        try:
            key.verify(self.signature, self.signed, PKCS1v15(), _HASHES[self.version]())
        except InvalidSignature:
            return False
        return True

    def is_fresh(self, now: datetime) -> bool:
        return -EARLIEST <= now - self.at <= OLDEST


def envelope_of(body: bytes) -> Envelope:
    """Raises `MalformedCallback` for what is none."""
    told = callback_json(body)
    if not isinstance(told, dict):
        raise MalformedCallback("body")
    type_ = _text(told, "Type")
    names = _SIGNED.get(type_)
    if names is None:
        raise MalformedCallback("Type")
    version = _text(told, "SignatureVersion")
    if version not in _HASHES:
        raise MalformedCallback("SignatureVersion")
    signed = "".join(
        f"{name}\n{_text(told, name)}\n" for name in names if name != "Subject" or told.get(name) is not None
    )
    try:
        at = parse_timestamp(_text(told, "Timestamp"))
        signature = base64.b64decode(_text(told, "Signature"), validate=True)
    except (ValueError, binascii.Error):
        raise MalformedCallback("Signature") from None
    return Envelope(
        type_,
        _text(told, "TopicArn"),
        _text(told, "Message"),
        at,
        _text(told, "SigningCertURL"),
        _text(told, "SubscribeURL") if type_ == CONFIRMATION else None,
        signature,
        version,
        signed.encode(errors="replace"),
    )


def _text(told: Mapping[str, Any], name: str) -> str:
    found = told.get(name)
    if not isinstance(found, str):
        raise MalformedCallback(name)
    return found


class SnsHosts:
    """Which addresses are those of SNS. `pattern`: of host names, in which a `*` stands for the name of a region.

    For no other label: a bucket may be called `sns`, and what is in it is at `sns.s3.amazonaws.com`.
    """

    def __init__(self, pattern: str) -> None:
        self._hosts = re.compile(re.escape(pattern.lower()).replace(r"\*", _REGION))

    def has(self, url: str, suffix: str = "") -> bool:
        """Whether it is one that may be fetched: over TLS, at the usual port, and nobody named in it."""
        if len(url) > _LONGEST or not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
            return False
        try:
            parts = urlsplit(url)
            port, host = parts.port, parts.hostname or ""
        except ValueError:
            return False
        return (
            parts.scheme == "https"
            and parts.netloc.lower() in (host, f"{host}:443")
            and port in (None, 443)
            and self._hosts.fullmatch(host) is not None
            and parts.path.endswith(suffix)
            and not (suffix and (parts.query or parts.fragment))
        )


def key_of(certificate: bytes, now: datetime) -> RSAPublicKey | None:
    """The key in a certificate, in PEM, that holds now; None for anything else."""
    try:
        found = load_pem_x509_certificate(certificate)
        key = found.public_key()
    except ValueError:
        return None
    valid = found.not_valid_before_utc <= now <= found.not_valid_after_utc
    return key if valid and isinstance(key, RSAPublicKey) else None
