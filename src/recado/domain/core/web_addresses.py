"""What has the form of a web address: it names a host that can be looked up, and a port that exists."""

import re
from typing import Final
from urllib.parse import urlsplit

LONGEST_WEB_ADDRESS: Final = 2048

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*").fullmatch
_NEVER_OPENED: Final = frozenset({"javascript", "data", "file"})
_FORM: Final = re.compile(r"https?://[^\s/?#]+\S*", re.IGNORECASE).fullmatch


def is_web_address(text: str) -> bool:
    """Whether `text` is an http(s) address. Nothing is looked up."""
    if _FORM(text) is None:
        return False
    try:
        parts = urlsplit(text)
        return _is_host(parts.hostname) and parts.port != 0
    except ValueError:  # brackets without an address between them, or a port that is no number up to 65535
        return False


def opens(text: str) -> bool:
    """Whether a device can open it: a web address, or a link with the scheme of an app."""
    scheme, colon, _ = text.partition(":")
    if not colon or not _SCHEME(scheme) or not text.isprintable():
        return False
    if scheme.lower() in {"http", "https"}:
        return is_web_address(text)
    return scheme.lower() not in _NEVER_OPENED


def _is_host(host: str | None) -> bool:
    """Whether no part of it is empty, but for a point at its end; an address in brackets has no parts."""
    return host is not None and all(host.removesuffix(".").split("."))
