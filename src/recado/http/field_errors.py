"""Pydantic's findings as the `errors` of a problem (C4.1): where, a stable code and a message without the value."""

from collections.abc import Iterable
from typing import Any

from pydantic import ValidationError

from recado.domain.errors import MAX_FIELD_ERRORS, FieldError

_NOTHING: Any = object()

# Stable, short names for what callers meet most; anything else keeps the validator's own type in capitals.
_CODES = {
    "missing": "REQUIRED",
    "string_too_short": "TOO_SHORT",
    "string_too_long": "TOO_LONG",
    "too_short": "TOO_FEW",
    "too_long": "TOO_MANY",
    "string_pattern_mismatch": "PATTERN_MISMATCH",
    "enum": "NOT_ALLOWED",
    "literal_error": "NOT_ALLOWED",
    "greater_than": "OUT_OF_RANGE",
    "greater_than_equal": "OUT_OF_RANGE",
    "less_than": "OUT_OF_RANGE",
    "less_than_equal": "OUT_OF_RANGE",
    "finite_number": "OUT_OF_RANGE",
    "int_parsing": "WRONG_TYPE",
    "int_from_float": "WRONG_TYPE",
    "bool_parsing": "WRONG_TYPE",
    "timestamp": "WRONG_TYPE",
    "union_tag_not_found": "REQUIRED",
    "union_tag_invalid": "NOT_ALLOWED",
    "value_error": "INVALID",
    "assertion_error": "INVALID",
}


def from_query(error: ValidationError) -> list[FieldError]:
    """Return at most 50 field errors whose `path` is the parameter's name."""
    return [_field_error(details, str(next(iter(details["loc"]), ""))) for details in _details(error)]


def from_body(error: ValidationError, document: Any) -> list[FieldError]:
    """Return at most 50 field errors whose `path` is a JSON pointer into `document`, the parsed body."""
    return [
        _field_error(details, pointer(details["loc"], document, absent=details["type"] == "missing"))
        for details in _details(error)
    ]


def _details(error: ValidationError) -> list[Any]:
    return list(error.errors(include_url=False, include_input=False)[:MAX_FIELD_ERRORS])


def _field_error(details: Any, path: str) -> FieldError:
    kind: str = details["type"]
    code = _CODES.get(kind) or ("WRONG_TYPE" if kind.endswith("_type") else kind.upper())
    return FieldError(path, code, _message(kind, details))


def _message(kind: str, details: Any) -> str:
    if kind in {"value_error", "assertion_error"}:
        # Our own validators raise ValueError with a sentence that names the rule, never the value.
        return str(details["ctx"]["error"]) or "is not valid"
    if kind == "union_tag_invalid":
        return "is none of the allowed kinds"  # pydantic's own sentence repeats what was sent
    message: str = details["msg"]
    return message


def pointer(location: Iterable[str | int], document: Any, *, absent: bool = False) -> str:
    """Return the JSON pointer (RFC 6901) of `location` in `document`.

    A location also names the branches of unions that were tried; what the document does not hold is left out, but for
    the last part when a required member is `absent`.
    """
    parts = list(location)
    found = ""
    here = document
    for position, part in enumerate(parts):
        inside = _member(here, part)
        if inside is not _NOTHING:
            here = inside
        elif not (absent and position == len(parts) - 1):
            continue
        found += "/" + escape(str(part))
    return found


def _member(container: Any, part: str | int) -> Any:
    if isinstance(part, str):
        return container.get(part, _NOTHING) if isinstance(container, dict) else _NOTHING
    return container[part] if isinstance(container, list) and part < len(container) else _NOTHING


def escape(part: str) -> str:
    """Return one reference token of a JSON pointer."""
    return part.replace("~", "~0").replace("/", "~1")
