"""Free attributes of contacts and of companies: what they may hold, and how changes merge into them (C12.2, C12.3)."""

import math
import re
from collections.abc import Collection, Mapping
from typing import Any, Final

from recado.domain.contacts.contact import MOST_ATTRIBUTES
from recado.domain.core.reading import Refusal, members, text, texts

MOST_TEXT: Final = 1_000
MOST_LIST: Final = 50
MOST_LIST_TEXT: Final = 200
MOST_KEY: Final = 64

_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}").fullmatch
_LARGEST: Final = 2**63

Attributes = Mapping[str, Any]


def read_attributes(value: Any) -> dict[str, Any]:
    """At most 100 keys; a value is text, a finite number, a boolean, null or a list of short texts; raises Refusal."""
    given = members(value)
    if len(given) > MOST_ATTRIBUTES:
        raise Refusal("TOO_MANY", f"must have at most {MOST_ATTRIBUTES} keys")
    found = {}
    for index, (key, item) in enumerate(given.items()):
        # A bad key may be anything, also personal data: it is named by its place.
        if not isinstance(key, str) or _KEY(key) is None:
            raise Refusal(
                "PATTERN_MISMATCH", f"Key {index + 1} is not a letter followed by up to 63 letters, digits, _, . or -."
            )
        try:
            found[key] = _value(item)
        except Refusal as refusal:
            raise refusal.under(key) from None
    return found


def read_keys(value: Any) -> tuple[str, ...]:
    """At most 100 keys to remove, which need not be there; raises Refusal."""
    return texts(value, MOST_ATTRIBUTES, MOST_KEY, least=0)


def merged(attributes: Attributes, given: Attributes, removed: Collection[str] = ()) -> dict[str, Any]:
    """`attributes` with those given in place of theirs (null is a value), without the keys that are removed.

    Raises Refusal when there are more than 100.
    """
    found = {key: value for key, value in {**attributes, **given}.items() if key not in removed}
    if len(found) > MOST_ATTRIBUTES:
        raise Refusal("TOO_MANY", f"A record holds at most {MOST_ATTRIBUTES} attributes.")
    return found


def _value(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return text(value, MOST_TEXT, least=0)
    if isinstance(value, (int, float)):
        # A longer whole number came as the nearest fraction, and would go back as another than was given.
        if not math.isfinite(value) or abs(value) >= _LARGEST:
            raise Refusal("OUT_OF_RANGE", "must be a number that 64 bits can hold: write a longer one as a text")
        return value
    if isinstance(value, list):
        return list(texts(value, MOST_LIST, MOST_LIST_TEXT, least=0))
    raise Refusal("WRONG_TYPE", "must be a text, a number, a boolean, null or a list of texts")
