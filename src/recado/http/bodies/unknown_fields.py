"""Names the members of a body, and the query parameters, that no operation knows (C2.3.1).

What is known is what the JSON schema of the model documents; an object without named members is free (`metadata`). The
work is bounded, and a body whose names are all known costs one comparison of sets for each of its objects.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import orjson
from pydantic import BaseModel

from recado.domain.core.counting import counted
from recado.domain.core.errors import FieldError, Problem
from recado.domain.core.spelling import closest
from recado.http.bodies.field_errors import MOST_HINTS, escape, other_spelling
from recado.http.bodies.known_names import UNSAID, Forms, ListForm, ObjectForm, forms_of
from recado.http.wire.reply import Reply, StreamReply

HEADER: Final = "X-Recado-Warnings"
UNKNOWN: Final = "UNKNOWN_FIELD"
MOST: Final = 50
MOST_LOOKED_AT: Final = 2_000  # values of a body
_LONGEST_PATH = 200
_DEEPEST = 12
_FEW = 100
_MOST_IN_HEADER = 10
_IGNORED: Final = "is unknown and was ignored"
_MEAN: Final = ": did you mean "
_MOST_MEANT: Final = 3

_Place = tuple[Any, ...]
"""Where a value stands: the place of what it is in, and its name there. A pointer is only made for what is found."""

_ROOT: Final[_Place] = ()
_Step = tuple[Forms, Any, _Place]

_known: dict[type[BaseModel], Forms] = {}
_plain_names: dict[type[BaseModel], frozenset[str]] = {}  # names behind which nothing can be unknown


def unknown_fields(model: type[BaseModel], document: Any) -> list[FieldError]:
    """Return at most 50 members of `document`, the parsed body, that `model` does not know."""
    if type(document) is not dict:
        return []
    names = _plain_names.get(model)
    if names is not None and names.issuperset(document):
        return []
    forms = _known.get(model)
    if forms is None:
        forms = _known[model] = forms_of(model)
        match forms:
            case [ObjectForm(names=frozenset() as names, nested=nested)]:
                _plain_names[model] = names - nested
    if _all_known(forms, document, _DEEPEST):
        return []
    return _found(forms, document)


def unknown_parameters(names: Iterable[str], known: Iterable[str]) -> list[FieldError]:
    """Return at most 50 query parameters of `names` that are not `known`."""
    options = sorted(known)
    distinct = [name for name in dict.fromkeys(names) if name not in options]
    return [
        FieldError(name[:_LONGEST_PATH], UNKNOWN, _sentence(name, options, place))
        for place, name in enumerate(distinct[:MOST])
    ]


def misplaced(name: str, place: str) -> FieldError:
    """Return a query parameter that is known elsewhere only, at `place`."""
    return FieldError(name, UNKNOWN, f"{_IGNORED}{_MEAN}{place}?")


def refuse(found: Sequence[FieldError]) -> None:
    """Raise VALIDATION_ERROR (422) with what was `found`: `Prefer: handling=strict`."""
    errors = [FieldError(each.path, each.code, each.message.replace(" and was ignored", "")) for each in found]
    raise Problem(
        "VALIDATION_ERROR",
        f"{counted(len(errors), 'unknown field')}: `errors` says which.",
        errors=errors,
    )


def meant_instead(problem: Problem, unknown: Sequence[FieldError]) -> str:
    """Sentences on unknown fields that were probably meant as the fields that a refusal misses; a few of them."""
    missing = {error.path for error in problem.errors if error.code == "REQUIRED"}
    if not missing:
        return ""
    sentences = []
    for each in unknown:
        parent, slash, name = each.path.rpartition("/")
        _, asked, meant = each.message.removesuffix("?").partition(_MEAN)
        if asked and f"{parent}{slash}{meant}" in missing and name not in problem.detail:
            sentences.append(f" {name} is unknown{_MEAN}{meant}?")
            if len(sentences) == _MOST_MEANT:
                break
    return "".join(sentences)


def is_strict(prefer: str | None) -> bool:
    """Whether a `Prefer` header asks for `handling=strict` (RFC 7240)."""
    if prefer is None:
        return False
    given = (part.split(";")[0].replace(" ", "").replace('"', "").lower() for part in prefer.split(","))
    return "handling=strict" in given


def name_in(reply: Reply, found: Sequence[FieldError], *, writes: bool) -> None:
    """Add the warnings to the JSON object that a write answers, else to a header."""
    warnings = [{"code": each.code, "path": each.path, "detail": _detail(each)} for each in found]
    if writes and reply.status < 300 and not isinstance(reply, StreamReply):
        if isinstance(reply.body, bytes) and b'"warnings":' in reply.body:  # kept with those that it has
            reply.body = orjson.loads(reply.body)
        if isinstance(reply.body, dict):
            reply.body = {**reply.body, "warnings": [*reply.body.get("warnings", ()), *warnings]}
            return
        if isinstance(reply.body, bytes) and reply.body[-1:] == b"}" and len(reply.body) > 2:  # rendered already
            reply.body = reply.body[:-1] + b',"warnings":' + orjson.dumps(warnings) + b"}"
            return
    short = [_short(each, found) for each, found in zip(warnings, found[:_MOST_IN_HEADER], strict=False)]
    reply.headers = {**reply.headers, HEADER: orjson.dumps(short).decode()}


def _detail(found: FieldError) -> str:
    return f"This field {found.message}"


def _short(warning: dict[str, str], found: FieldError) -> dict[str, str]:
    """What a header says of one: where, and the name that was probably meant, if there is one."""
    short = {"code": warning["code"], "path": _ascii(warning["path"])}
    return {**short, "detail": warning["detail"]} if _MEAN in found.message else short


def _ascii(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode()[:_LONGEST_PATH]


def _all_known(forms: Forms, value: Any, depth: int) -> bool:
    """Whether one of the forms knows every name in `value`: the usual case, found without a look at the others."""
    if type(value) is list:
        items = [form for each in forms if type(each) is ListForm for form in each.items]
        if len(value) > _FEW or not depth:
            return not items or not value
        return not items or all(_all_known(items, item, depth - 1) for item in value)
    if type(value) is not dict:
        return True
    for form in forms:
        if type(form) is ObjectForm:
            if form.names is None:
                return True
            if form.names.issuperset(value):
                if form.nested.isdisjoint(value):
                    return True
                for name in form.nested.intersection(value):
                    if not (depth and _all_known(form.members[name], value[name], depth - 1)):
                        break
                else:
                    return True
    return not forms


# Finding ------------------------------------------------------------------------------------------------------------


def _found(forms: Forms, document: Any) -> list[FieldError]:
    found: list[FieldError] = []
    left = [iter([(forms, document, _ROOT)])]
    looked_at = 0
    while left and len(found) < MOST and looked_at < MOST_LOOKED_AT:
        step = next(left[-1], None)
        if step is None:
            left.pop()
            continue
        here, value, place = step
        looked_at += 1
        if type(value) is dict:
            below = _members(here, value, place, found)
            if below:
                left.append(iter(below))
        elif type(value) is list:
            items = [form for forms in here if type(forms) is ListForm for form in forms.items]
            if items:
                left.append(_items(items, value, place))
    return found[:MOST]


def _items(forms: Forms, value: list[Any], place: _Place) -> Iterator[_Step]:
    return ((forms, item, (place, str(number))) for number, item in enumerate(value))


def _members(forms: Forms, value: dict[str, Any], place: _Place, found: list[FieldError]) -> list[_Step]:
    """What is below an object; its own unknown members go to `found`."""
    objects = [form for form in forms if type(form) is ObjectForm]
    if len(objects) > 1:
        objects = [form for form in objects if form.fits(value)] or objects
    if not objects or objects[0].names is None:
        return []
    names, nested = objects[0].names, objects[0].nested
    for form in objects[1:]:
        if form.names is None:
            return []
        names |= form.names
        nested |= form.nested
    if not names.issuperset(value):
        _name_unknown(names, value, place, found)
    if nested.isdisjoint(value):
        return []
    return [
        ([form for each in objects for form in each.members.get(name, ())], value[name], (place, name))
        for name in sorted(nested.intersection(value), key=escape)
    ]


def _name_unknown(names: frozenset[str], value: dict[str, Any], place: _Place, found: list[FieldError]) -> None:
    known, path = names - UNSAID, _pointer(place)
    for name in value:
        if len(found) >= MOST:
            break
        if name not in names:
            sentence = _sentence(name, known, len(found))
            found.append(FieldError(f"{path}/{escape(name)}"[:_LONGEST_PATH], UNKNOWN, sentence))


def _pointer(place: _Place) -> str:
    parts: list[str] = []
    while place:
        place, part = place
        parts.append(f"/{escape(part)}")
    return "".join(reversed(parts))


def _sentence(name: str, known: Iterable[str], place: int) -> str:
    """What is said of an unknown name; `place`: how many come before it, as the first few get a hint."""
    meant = _meant(name, sorted(known)) if place < MOST_HINTS else None
    return f"{_IGNORED}." if meant is None else f"{_IGNORED}{_MEAN}{meant}?"


def _meant(name: str, options: Sequence[str]) -> str | None:
    spelled = (option for option in options if other_spelling(option, {name: None}) is not None)
    return next(spelled, None) or closest(name, options)
