"""Texts with placeholders, `{{name}}`, and what stands in their place for one recipient (C15.5)."""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Final, NamedTuple

_PLACEHOLDER: Final = re.compile(r"\{\{ *([A-Za-z0-9_]{1,64}) *\}\}")


def placeholders(text: str) -> tuple[str, ...]:
    """The names in a text, each once, in their order."""
    return tuple(dict.fromkeys(_PLACEHOLDER.findall(text)))


def emptied(text: str) -> str:
    """The text without its placeholders: what every recipient gets at least."""
    return _PLACEHOLDER.sub("", text)


class Measures(NamedTuple):
    """What tells how long a text becomes before it is filled."""

    outside: int
    """Characters that stand outside of placeholders."""
    times: Counter[str]
    """How often each name stands in it, in the order of `placeholders`."""

    def filled_length(self, values: Mapping[str, str]) -> int:
        """How long `filled` would be. Raises KeyError for a name without a value."""
        return self.outside + sum(count * len(values[name]) for name, count in self.times.items())


def measures(text: str) -> Measures:
    """Found once for a text, whoever it is filled for."""
    outside = len(text)
    times: Counter[str] = Counter()
    for found in _PLACEHOLDER.finditer(text):
        outside -= len(found[0])
        times[found[1]] += 1
    return Measures(outside, times)


def filled(text: str, values: Mapping[str, str]) -> str:
    """The text with these values in place of its placeholders. Raises KeyError for a name without a value."""
    return _PLACEHOLDER.sub(lambda found: values[found[1]], text)
