"""JSON as rows have it: a text, which keeps the order of its members."""

from typing import Any

import orjson


def json_text(value: object) -> str:
    """`value` as JSON without spaces."""
    return orjson.dumps(value).decode()


def json_or_none(value: object) -> str | None:
    """The same; of None nothing is kept."""
    return None if value is None else json_text(value)


def object_of(text: str | None) -> dict[str, Any]:
    """The object that a row has; empty where it has none."""
    return {} if text is None else dict(orjson.loads(text))
