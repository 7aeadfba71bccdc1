"""What has the form of a web address: it names a host that can be looked up, and a port that exists."""

import re
from typing import Final
from urllib.parse import urlsplit

LONGEST_WEB_ADDRESS: Final = 2048

_FORM: Final = re.compile(r"https?://[^\s/?#]+\S*", re.IGNORECASE).fullmatch


def is_web_address(text: str) -> bool:
    """Whether `text` is an http(s) address. Nothing is looked up."""
    if _FORM(text) is None:
        return False
    try:
        parts = urlsplit(text)
        return bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets without an address between them, or a port that is no number up to 65535
        return False
