"""Pydantic's findings as the `errors` of a problem (C4.1): where, a stable code and a message without the value."""

from collections.abc import Iterable
from itertools import groupby
from typing import Any, Final

from pydantic import ValidationError

from recado.domain.core.errors import MAX_FIELD_ERRORS, FieldError
from recado.domain.core.spelling import closest

NOT_ALLOWED: Final = "not_allowed"  # a name that is not known: the context holds it, as `name`, and those that are
MOST_HINTS: Final = 5  # to compare a name with all others costs more than the rest of a request
_NOTHING: Any = object()
_MOST_NAMES_COMPARED = 50
_LONGEST_COMPARED = 100  # characters: small letters of one cost nothing, those of a whole body do

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


_MESSAGES = {
    "missing": "is required",
    "enum": "must be one of {expected}",
    "literal_error": "must be one of {expected}",
    "union_tag_invalid": "must have one of these as {discriminator}: {expected_tags}",
    "union_tag_not_found": "needs a {discriminator}",
    "string_type": "must be a text",
    "string_too_short": "must have {min_length} or more characters",
    "string_too_long": "must have at most {max_length} characters",
    "string_pattern_mismatch": "must match {pattern}",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "finite_number": "must be a finite number",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "too_short": "must have {min_length} or more entries",
    "too_long": "must have at most {max_length} entries",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
}


def from_query(error: ValidationError) -> list[FieldError]:
    """Return at most 50 field errors whose `path` is the parameter's name."""
    return _hinted((details, _field_error(details, str(next(iter(details["loc"]), "")))) for details in _details(error))


def from_body(error: ValidationError, document: Any) -> list[FieldError]:
    """Return at most 50 field errors whose `path` is a JSON pointer into `document`, the parsed body."""
    return _hinted(_once_each((details, _body_error(details, document)) for details in _details(error)))


def _once_each(found: Iterable[tuple[Any, FieldError]]) -> Iterable[tuple[Any, FieldError]]:
    """The errors, one for each place: a value of a union is told as many times as it has branches.

    What is wrong in the branch of its own type is told; of a value of no type that there is, all of them at once.
    """
    for _, told in groupby(found, lambda each: each[1].path):
        errors = list(told)
        of_its_type = [each for each in errors if not each[0]["type"].endswith("_type")]
        if of_its_type or len(errors) == 1:
            yield from of_its_type or errors
            continue
        details, first = errors[0]
        *others, last = dict.fromkeys(_wanted(each) for each, _ in errors)
        wanted = f"{', '.join(others)} or {last}" if others else last
        yield details, FieldError(first.path, first.code, f"must be {wanted}")


def _wanted(details: Any) -> str:
    """`a text`, of what must be one."""
    return _message(details["type"], details).removeprefix("must be ")


def _hinted(found: Iterable[tuple[Any, FieldError]]) -> list[FieldError]:
    """The errors; the first few unknown names with the one that was probably meant (C31)."""
    hints = 0
    told = []
    for details, error in found:
        if details["type"] == NOT_ALLOWED and hints < MOST_HINTS and details["ctx"]["name"] is not None:
            hints += 1
            meant = closest(details["ctx"]["name"], details["ctx"]["known"])
            if meant is not None:
                error = FieldError(error.path, error.code, f"is not known: did you mean {meant}?")
        told.append(error)
    return told


def _body_error(details: Any, document: Any) -> FieldError:
    if details["type"] != "missing":
        return _field_error(details, pointer(details["loc"], document))
    # A rule on several members of an object names the one that is missing, as `member`.
    member = details.get("ctx", {}).get("member")
    location = details["loc"] if member is None else (*details["loc"], member)
    found = _field_error(details, pointer(location, document, absent=True))
    spelled = other_spelling(str(location[-1]), _container(location[:-1], document))
    if spelled is None:
        return found
    name = location[-1]
    return FieldError(found.path, found.code, f"{found.message}; it is spelled {name}, not {spelled}")


def other_spelling(name: str, members: Any) -> str | None:
    """Return the member of an object that is `name` but for case and `_` or `-` (`template_id`), None without one."""
    if not isinstance(members, dict) or len(members) > _MOST_NAMES_COMPARED:
        return None
    wanted = _bare(name)
    given = (each for each in members if len(each) <= _LONGEST_COMPARED and each != name)
    return next((each for each in given if _bare(each) == wanted), None)


def _bare(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def _container(location: Iterable[str | int], document: Any) -> Any:
    here = document
    for part in location:
        inside = _member(here, part)
        here = here if inside is _NOTHING else inside
    return here


def last_bad_items(error: ValidationError, document: Any) -> dict[str, int]:
    """For each list of the document (a member at its top) that has bad items: the place of the last one told."""
    found: dict[str, int] = {}
    for details in _details(error):
        name, place = (*details["loc"], None, None)[:2]
        if isinstance(name, str) and isinstance(place, int) and isinstance(_member(document, name), list):
            found[name] = max(place, found.get(name, 0))
    return found


def from_items(error: ValidationError, part: Any, name: str, offset: int) -> list[FieldError]:
    """As `from_body`, of items of the list `name`; `part` holds those of the document from `offset` on."""
    found = []
    for details in _details(error):
        if details["loc"][:1] == (name,):
            path = pointer(details["loc"], part, absent=details["type"] == "missing")
            head, place, *rest = path.removeprefix("/").split("/")
            moved = "/" + "/".join((head, str(int(place) + offset), *rest))
            found.append((details, _field_error(details, moved)))
    return [told for _, told in _once_each(found)]


def _details(error: ValidationError) -> list[Any]:
    return list(error.errors(include_url=False, include_input=False)[:MAX_FIELD_ERRORS])


def _field_error(details: Any, path: str) -> FieldError:
    kind: str = details["type"]
    code = _CODES.get(kind) or ("WRONG_TYPE" if kind.endswith("_type") else kind.upper())
    hint = details.get("ctx", {}).get("hint")
    message = _message(kind, details)
    return FieldError(path, code, message if hint is None else f"{message} ({hint})")


def _message(kind: str, details: Any) -> str:
    """The rest of a sentence that begins with the field: what it must be, never what was sent."""
    context = details.get("ctx", {})
    if kind in {"value_error", "assertion_error"}:
        # Our own validators raise ValueError with a sentence that names the rule, never the value.
        return str(context["error"]) or "is not valid"
    said = _MESSAGES.get(kind)
    message: str = details["msg"]
    if said is None or "member" in context:
        return message
    try:
        return said.format_map({name: _plain(value) for name, value in context.items()})
    except KeyError:  # our own validators use these kinds too, each with a sentence of its own
        return message


def _plain(value: Any) -> str:
    """A bound or a list of allowed values, without the quotes that the validator puts around texts."""
    if isinstance(value, int):
        return f"{value:,}"
    return str(value).replace("'", "").replace(" or ", ", ")


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
