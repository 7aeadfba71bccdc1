"""What is said to a process of our own as the text of a pickle, and much of it in parts.

It goes to those alone that this process began, and comes from them or from the one that began this one: both are one
program (`program.py`).
"""

import base64
import pickle
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any


def text(value: object) -> str:
    """As a frame says it."""
    return base64.b64encode(pickle.dumps(value, pickle.HIGHEST_PROTOCOL)).decode("ascii")


def value(text: str) -> Any:
    """What was said."""
    return pickle.loads(base64.b64decode(text))  # noqa: S301 - of the process that began this one, or that it began


def parts_of(kept: Iterable[Iterable[Any]], many: int) -> Iterator[str]:
    """Parts, made one by one, of so many entries each, with the place of what they belong to in `kept`."""
    for place, entries in enumerate(kept):
        left = iter(entries)
        while some := list(islice(left, many)):
            yield text((place, some))
