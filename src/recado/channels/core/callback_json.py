"""The JSON of a provider's callback, also where somebody's text holds half of a character (C29.5). Pure.

Providers write what is outside of ASCII as escapes, two for an emoji. A text that was cut between the two is no text,
and must not cost the reports and the messages beside it.
"""

import re
from typing import Any

import orjson

from recado.channels.core.errors import MalformedCallback

# Read from the left, so that an escaped backslash before a "u" is passed over with what it escapes.
_ESCAPE = re.compile(
    rb"\\(?:u(?:[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|([dD][89a-fA-F][0-9a-fA-F]{2}))|.)", re.DOTALL
)
_REPLACEMENT = rb"\ufffd"


def callback_json(body: bytes) -> Any:
    """The document; halves of characters are U+FFFD. Raises `MalformedCallback` for what is no JSON."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        pass
    try:
        return orjson.loads(_ESCAPE.sub(lambda found: _REPLACEMENT if found[1] else found[0], body))
    except orjson.JSONDecodeError:
        raise MalformedCallback("body") from None
