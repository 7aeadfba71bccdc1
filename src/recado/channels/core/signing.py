"""Signed bodies, of callbacks that come in and of webhooks that go out (C23.4).

The header is `t=<unix seconds>,v1=<hex HMAC-SHA256(key, "<t>.<body>")>`, with one `v1` per key in force.
"""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from datetime import datetime

TOLERANCE_SECONDS = 300
PROVIDER_SIGNATURE = "X-SVC-Provider-Signature"

# Bounds the work that a stranger's header can cause: room for a rotation of keys, not for a search.
_MAX_HEADER = 1024
_TIME = re.compile(r"[0-9]{1,12}")


def signing_key(secret: str) -> bytes:
    """The key of a secret: the decoded bytes of `whsec_<base64>`, else its UTF-8 bytes; ValueError when it is empty."""
    encoded = secret.removeprefix("whsec_")
    if encoded == secret:
        key = secret.encode()
    else:
        try:
            key = base64.b64decode(encoded, validate=True)
        except binascii.Error:
            raise ValueError("the part of a signing secret after whsec_ is not base64") from None
    if not key:
        raise ValueError("a signing secret is empty")
    return key


def signature(keys: Sequence[bytes], body: bytes, at: datetime) -> str:
    """The header's value: one `v1` per key, so that a receiver may hold either during a rotation."""
    seconds = str(int(at.timestamp()))
    return ",".join([f"t={seconds}", *(f"v1={_digest(key, seconds, body)}" for key in keys)])


def is_signed(header: str | None, keys: Sequence[bytes], body: bytes, now: datetime) -> bool:
    """Whether one of the header's signatures is of one of our keys and at most 300 s away from `now`."""
    if header is None or len(header) > _MAX_HEADER:
        return False
    seconds: str | None = None
    given: list[bytes] = []
    for part in header.split(","):
        name, _, value = part.strip().partition("=")
        if name == "t":
            if seconds is not None:  # which of two times was signed is anyone's guess
                return False
            seconds = value
        elif name == "v1":
            given.append(value.encode(errors="replace"))
    if seconds is None or not _TIME.fullmatch(seconds) or abs(now.timestamp() - int(seconds)) > TOLERANCE_SECONDS:
        return False
    matched = False
    for key in keys:
        expected = _digest(key, seconds, body).encode()
        for candidate in given:
            matched |= hmac.compare_digest(expected, candidate)  # no early end: equal time for every header
    return matched


def header(headers: Mapping[str, str], name: str) -> str | None:
    """The value of a header whatever its case, in any mapping."""
    value = headers.get(name)
    if value is not None:
        return value
    wanted = name.lower()
    return next((value for key, value in headers.items() if key.lower() == wanted), None)


def _digest(key: bytes, seconds: str, body: bytes) -> str:
    mac = hmac.new(key, seconds.encode() + b".", hashlib.sha256)
    mac.update(body)  # not joined: a body may have megabytes
    return mac.hexdigest()
