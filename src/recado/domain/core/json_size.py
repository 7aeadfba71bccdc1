"""How long JSON is once the database has it: jsonb writes a number with all its digits, so `1e308` has 309 (C31)."""

import re
from typing import Any, Final

import orjson

# Of a number behind its exponent, where it ends; inside a text this is hardly ever met, and counts too much then.
_EXPONENT: Final = re.compile(rb"[0-9]e[+-]?([0-9]{1,3})(?=[,}\]]|\Z)")


def stored_size(value: Any) -> int:
    """Bytes of `value` as JSON without spaces, in which each number has all its digits, or a few more than that."""
    written = orjson.dumps(value)
    return len(written) + sum(map(int, _EXPONENT.findall(written)))
