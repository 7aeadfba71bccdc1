"""JSON texts of recipients: what one says for itself is text until its message is made."""

from collections.abc import Mapping
from typing import Any

import orjson


def loaded(text: str | None) -> Mapping[str, Any]:
    """The object of a text; of none: an empty one."""
    return {} if text is None else dict(orjson.loads(text))


def dumped(value: object) -> str:
    """A value as text."""
    return orjson.dumps(value).decode()
