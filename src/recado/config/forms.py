"""The forms of single settings: each function takes the text of a variable and returns its value.

All raise ValueError; its text says what is wrong without repeating a secret.
"""

import base64
import binascii
import re
from collections.abc import Callable
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from pydantic import SecretStr

KEY_BYTES = 32
_LONGEST_SMPP_ADDRESS = 20  # digits
_LONGEST_SMPP_NAME = 11  # characters
_LAST_OF_LATIN_1 = 0xFF
_KEY_ID = re.compile(r"[A-Za-z0-9_-]{1,32}")


class Listen(NamedTuple):
    """An address to listen on."""

    host: str
    port: int


def parse_listen(value: Any) -> Listen:
    """`HOST:PORT`, with an IPv6 host in brackets."""
    if isinstance(value, Listen):
        return value
    host, separator, port = str(value).strip().rpartition(":")
    if not separator or not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise ValueError("the port is missing or out of range")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError("an IPv6 host needs brackets, as in [::1]:8080")
    if not host:
        raise ValueError("the host is missing")
    return Listen(host, int(port))


def parse_folder(value: Any) -> Path:
    """A folder, which need not exist yet; `~` is the user's home."""
    folder = Path(value).expanduser()
    if folder.is_file():
        raise ValueError(f"{folder} is a file")
    return folder


def parse_http_url(value: Any) -> Any:
    """An http(s) address, without query, fragment, user or trailing slash."""
    if value is None:
        return value
    text = str(value).strip().rstrip("/")
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("it has no http(s) scheme or no host")
    if parts.query or parts.fragment or "@" in parts.netloc:
        raise ValueError("it carries a query, a fragment or a user")
    _ = parts.port  # raises ValueError when out of range
    return text


def parse_smpp_url(value: Any) -> Any:
    """An SMS centre's `smpp://` or `smpps://` address with its port, and nothing more."""
    if value is None:
        return value
    text = str(value).strip().rstrip("/")
    parts = urlsplit(text)
    if parts.scheme not in ("smpp", "smpps") or not parts.hostname or parts.port is None:
        raise ValueError("it has another scheme, no host or no port")
    if parts.path or parts.query or parts.fragment or "@" in parts.netloc:
        raise ValueError("it carries a path, a query, a fragment or a user")
    return text


def parse_smpp_source(value: Any) -> Any:
    """Whom messages of an SMS centre come from: a phone, a short code or a name."""
    text = str(value).strip()
    digits = text.removeprefix("+")
    if digits.isascii() and digits.isdigit():
        if len(digits) > _LONGEST_SMPP_ADDRESS:
            raise ValueError("it has too many digits")
    elif not text.isascii() or not text.isprintable():
        raise ValueError("a name has ASCII characters only")
    elif len(text) > _LONGEST_SMPP_NAME:
        raise ValueError("the name is longer")
    return text


def parse_smpp_text(longest: int) -> Callable[[Any], Any]:
    """A text of at most so many characters, as SMPP carries it: a character of Latin-1 each, none of them NUL."""

    def parse(value: Any) -> Any:
        text = value.get_secret_value() if isinstance(value, SecretStr) else value
        if text is None:
            return value
        if len(text) > longest:
            raise ValueError("it is longer")
        if any(ord(character) > _LAST_OF_LATIN_1 or character == "\0" for character in text):
            raise ValueError("it holds a character that SMPP cannot carry")
        return value

    return parse


def parse_database_url(value: Any) -> Any:
    """A `postgresql://` address."""
    if value is None:
        return value
    if urlsplit(str(value)).scheme not in ("postgresql", "postgres"):
        raise ValueError("it has another scheme")
    return value


def parse_networks(value: Any) -> tuple[IPv4Network | IPv6Network, ...]:
    """Addresses and networks, separated by commas."""
    if isinstance(value, tuple):
        return value
    return tuple(ip_network(part.strip()) for part in str(value).split(",") if part.strip())


def parse_words(value: Any) -> tuple[str, ...]:
    """Texts, separated by commas, in lower case."""
    if isinstance(value, tuple):
        return value
    return tuple(part.strip().lower() for part in str(value).split(",") if part.strip())


def parse_key(value: Any) -> Any:
    """Base64 (either alphabet) of at least 32 bytes."""
    if value is None:
        return value
    decode_key(str(value))
    return value


def parse_key_list(value: Any) -> Any:
    """`kid:base64,…` of exactly 32 bytes each, every kid once."""
    if value is None:
        return value
    seen = set()
    for entry in str(value).split(","):
        kid, separator, encoded = entry.strip().partition(":")
        if not separator or not _KEY_ID.fullmatch(kid):
            raise ValueError("a key has no id of letters, digits, - or _ before its colon")
        if kid in seen:
            raise ValueError(f"the key id {kid} stands twice")
        if len(decode_key(encoded)) != KEY_BYTES:
            raise ValueError(f"the key {kid} is longer than {KEY_BYTES} bytes")
        seen.add(kid)
    return value


def decode_key(encoded: str) -> bytes:
    """Return the bytes of a key in base64, padded or not; ValueError when malformed or shorter than 32 bytes."""
    text = encoded.strip().rstrip("=").translate(str.maketrans("-_", "+/"))
    try:
        key = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except binascii.Error:
        raise ValueError("a key is not base64") from None
    if len(key) < KEY_BYTES:
        raise ValueError(f"a key is shorter than {KEY_BYTES} bytes")
    return key
