"""The forms of single settings: each function takes the text of a variable and returns its value.

All raise ValueError; its text says what is wrong without repeating a secret.
"""

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from recado.channels.sms.smpp.submits import source_address
from recado.domain.email.dkim import dkim_key
from recado.domain.email.sender import domain_of

KEY_BYTES = 32
SMTP_PORTS = {"smtp": 587, "smtps": 465}
_SELECTOR = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_HOST_PATTERN = re.compile(r"(?:(?:[a-z0-9-]+|\*)\.)+[a-z0-9-]+\.[a-z]+")
_TOPIC = re.compile(r"arn:[a-z0-9-]+:sns:[a-z0-9-]+:\d{12}:[A-Za-z0-9_-]{1,256}(?:\.fifo)?")
_KEY_ID = re.compile(r"[A-Za-z0-9_-]{1,32}")
_LAST_PORT = 65_535


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


def parse_name_server(value: Any) -> Listen | None:
    """`HOST:PORT` of an IP address."""
    if value is None:
        return None
    server = parse_listen(value)
    ipaddress.ip_address(server.host)
    return server


def parse_folder(value: Any) -> Any:
    """A folder, which need not exist yet; `~` is the user's home."""
    if value is None:
        return value
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


def parse_smtp_url(value: Any) -> Any:
    """A mail server's `smtp://` or `smtps://` address, with or without its port, and nothing more."""
    if value is None:
        return value
    text = str(value).strip().rstrip("/")
    parts = urlsplit(text)
    if parts.scheme not in SMTP_PORTS or not parts.hostname:
        raise ValueError("it has another scheme or no host")
    if parts.path or parts.query or parts.fragment or "@" in parts.netloc:
        raise ValueError("it carries a path, a query, a fragment or a user")
    return text if parts.port is not None else f"{text}:{SMTP_PORTS[parts.scheme]}"


def parse_mail_domain(value: Any) -> Any:
    """A domain that mail leaves from, in lower case."""
    if value is None:
        return value
    found = domain_of(str(value).strip())
    if found is None:
        raise ValueError("it is no domain")
    return found


def parse_dkim_selector(value: Any) -> Any:
    """One label, or several with dots between them."""
    if isinstance(value, str) and not _SELECTOR.fullmatch(value):
        raise ValueError("it is no part of a domain")
    return value


def parse_dkim_key(value: Any) -> Any:
    """A private key in PEM, or in DER as base64."""
    if value is not None:
        dkim_key("", "", str(value))
    return value


def parse_file(value: Any) -> Any:
    """A file that is there."""
    if value is None:
        return value
    found = Path(value).expanduser()
    if not found.is_file():
        raise ValueError(f"{found} is no file")
    return found


def parse_host_pattern(value: Any) -> Any:
    """A host name, in which `*` stands for one label, a region's; the domain itself is named."""
    text = str(value).strip().lower()
    if not _HOST_PATTERN.fullmatch(text):
        raise ValueError("it is no host name of at least three labels, of which the last two are named")
    return text


def parse_topic(value: Any) -> Any:
    """The ARN of a topic."""
    if isinstance(value, str) and not _TOPIC.fullmatch(value):
        raise ValueError("it is no ARN of a topic")
    return value


def short_text(longest: int) -> Callable[[Any], Any]:
    """A text that SMPP has room for, in octets."""

    def parse(value: Any) -> Any:
        if isinstance(value, str) and not (len(value) <= longest and value.isascii() and "\0" not in value):
            raise ValueError(f"it is longer than {longest} characters, or not ASCII")
        return value

    return parse


def parse_smpp_source(value: Any) -> Any:
    """Whom messages come from: whatever an SMS centre may be told."""
    text = str(value).strip()
    source_address(text)
    return text


def parse_database_url(value: Any) -> Any:
    """A `postgresql://` address."""
    if value is None:
        return value
    parts = urlsplit(str(value))
    if parts.scheme not in ("postgresql", "postgres"):
        raise ValueError("it has another scheme")
    for host in parts.netloc.rpartition("@")[2].split(","):  # several stand for each other
        port = host.rpartition("]")[2].partition(":")[2]
        if port and not (port.isascii() and port.isdecimal() and 1 <= int(port) <= _LAST_PORT):
            raise ValueError("its port is none")
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
