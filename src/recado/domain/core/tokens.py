"""API keys and session tokens: their form, their checksum, and what of them is stored (C3.1)."""

import zlib
from collections.abc import Callable
from hashlib import sha256
from typing import Final, Literal

from recado.domain.core.ids import BASE62, base62

KEY_PREFIXES: Final[dict[str, Literal["live", "test"]]] = {"svc_live_": "live", "svc_test_": "test"}
SESSION_PREFIXES: Final[dict[str, Literal["live", "test"]]] = {"svcs_live_": "live", "svcs_test_": "test"}

_ENVIRONMENTS = KEY_PREFIXES | SESSION_PREFIXES
_SECRET_LENGTH = 37  # 220 bits
_CHECKSUM_LENGTH = 6
_BODY_LENGTH = _SECRET_LENGTH + _CHECKSUM_LENGTH
_ALPHABET = frozenset(BASE62)
_RANDOM_BYTES = 32
_SHOWN = 13


def mint_token(prefix: str, random_bytes: Callable[[int], bytes]) -> str:
    """A token: `prefix`, 37 random base62 characters, 6 of checksum over what precedes (C3.1).

    `random_bytes` answers so many unpredictable bytes; 256 bits are asked for, which spread evenly over 220.
    """
    start = prefix + base62(int.from_bytes(random_bytes(_RANDOM_BYTES), "big"), _SECRET_LENGTH)
    return start + _checksum(start)


def token_env(token: str) -> Literal["live", "test"] | None:
    """The environment of a well-formed token, of a key or a session; None for any other text."""
    prefix, body = token[:-_BODY_LENGTH], token[-_BODY_LENGTH:]
    env = _ENVIRONMENTS.get(prefix)
    if env is None or not _ALPHABET.issuperset(body):
        return None
    return env if _checksum(token[:-_CHECKSUM_LENGTH]) == token[-_CHECKSUM_LENGTH:] else None


def is_session(token: str) -> bool:
    """Whether a well-formed token is of a dashboard session and not of an API key."""
    return token.startswith("svcs_")


def token_hash(token: str) -> bytes:
    """SHA-256 (32 bytes) of the token: all that is stored of it."""
    return sha256(token.encode("utf-8", "surrogatepass")).digest()  # a header may carry any bytes


def token_prefix(token: str) -> str:
    """The first 13 characters, shown so that people tell their keys apart (C24.4)."""
    return token[:_SHOWN]


def _checksum(text: str) -> str:
    return base62(zlib.crc32(text.encode()), _CHECKSUM_LENGTH)
