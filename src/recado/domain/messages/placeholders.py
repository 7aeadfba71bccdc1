"""Texts with placeholders, `{{name}}`, and what stands in their place for one recipient (C15.5)."""

import re
from collections.abc import Mapping
from typing import Final

_PLACEHOLDER: Final = re.compile(r"\{\{ *([A-Za-z0-9_]{1,64}) *\}\}")


def placeholders(text: str) -> tuple[str, ...]:
    """The names in a text, each once, in their order."""
    return tuple(dict.fromkeys(_PLACEHOLDER.findall(text)))


def filled_length(text: str, values: Mapping[str, str]) -> int:
    """How long `filled` would be: told without making it. Raises KeyError for a name without a value."""
    length = len(text)
    for found in _PLACEHOLDER.finditer(text):
        length += len(values[found[1]]) - len(found[0])
    return length


def filled(text: str, values: Mapping[str, str]) -> str:
    """The text with these values in place of its placeholders. Raises KeyError for a name without a value."""
    return _PLACEHOLDER.sub(lambda found: values[found[1]], text)
