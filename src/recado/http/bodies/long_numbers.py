"""Whole numbers beyond 64 bits, of which the nearest fraction would be kept: who sends one is told so (C2.3.9)."""

import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from recado.domain.core.errors import MAX_FIELD_ERRORS
from recado.http.bodies.field_errors import escape

_SHORTEST: Final = 19  # digits: none with fewer is beyond 64 bits
_RUN: Final = b"0" * _SHORTEST
# Each digit as a zero: a run of digits is found in no time, and few bodies have a long one.
_AS_ZEROS: Final = bytes(ord("0") if ord("0") <= byte <= ord("9") else ord(" ") for byte in range(256))
# A text, which is passed over, or a number without fraction and exponent. Of JSON, which has been parsed before.
_LONG: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"|(?<![0-9.eE+-])(-?[0-9]{19,}+)(?![.eE])')
_ALWAYS_SEARCHED: Final = 1024 * 1024  # bytes; a worker reads what is larger
_MOST_SEARCHED: Final = 250_000  # values of a larger body: among more, a number's place takes it seconds to find
_LEAST, _MOST = -(2**63), 2**64 - 1


class _Long:
    """Stands for such a number."""


def long_numbers(raw: bytes) -> tuple[str, ...]:
    """Pointers to the first such numbers in a JSON text; empty without one."""
    if _RUN not in raw.translate(_AS_ZEROS) or not any(_is_long(number) for number in _whole_numbers(raw)):
        return ()
    if len(raw) > _ALWAYS_SEARCHED and raw.count(b",") > _MOST_SEARCHED:
        return ("",)
    document = json.loads(raw, parse_int=lambda text: _Long() if _is_long(text) else 0)
    return tuple(islice(_paths(document, ""), MAX_FIELD_ERRORS))


def _whole_numbers(raw: bytes) -> Iterator[bytes]:
    return (found[1] for found in _LONG.finditer(raw) if found[1] is not None)


def _is_long(number: str | bytes) -> bool:
    return len(number) >= _SHORTEST and (len(number) > _SHORTEST + 2 or not _LEAST <= int(number) <= _MOST)


def _paths(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, _Long):
        yield path
    elif isinstance(value, dict):
        for name, member in value.items():
            yield from _paths(member, f"{path}/{escape(name)}")
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from _paths(item, f"{path}/{place}")
