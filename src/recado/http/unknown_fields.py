"""Names the members of a body, and the query parameters, that no operation knows (C2.3.1).

What is known is what the JSON schema of the model documents; an object without named members is free (`metadata`). The
work is bounded, and a body whose names are all known costs one comparison of sets for each of its objects.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson
from pydantic import BaseModel

from recado.domain.errors import FieldError, Problem
from recado.domain.spelling import closest
from recado.http.field_errors import MOST_HINTS, escape, other_spelling
from recado.http.reply import Reply, StreamReply

HEADER: Final = "X-Recado-Warnings"
UNKNOWN: Final = "UNKNOWN_FIELD"
MOST: Final = 50
_MOST_LOOKED_AT = 2_000  # values of a body
_LONGEST_PATH = 200
_DEEPEST = 12
_FEW = 100
_MOST_IN_HEADER = 10
_UNSAID = frozenset({"id", "organizationId", "env"})
_IGNORED: Final = "is unknown and was ignored"
_MEAN: Final = ": did you mean "
_MOST_MEANT: Final = 3
_REFS: Final = "#/$defs/"


@dataclass(slots=True)
class _Object:
    """One form that an object may have. `names` None: any; `fixed`: member → the texts of which it has one."""

    names: frozenset[str] | None
    required: frozenset[str] = frozenset()
    fixed: Mapping[str, frozenset[Any]] = field(default_factory=dict)
    members: dict[str, "_Forms"] = field(default_factory=dict)
    nested: frozenset[str] = frozenset()  # the names of `members`

    def __post_init__(self) -> None:
        self.nested = frozenset(self.members)

    def fits(self, document: Mapping[str, Any]) -> bool:
        if not self.required <= document.keys():
            return False
        return all(document.get(name) in allowed for name, allowed in self.fixed.items() if _plain(document.get(name)))


@dataclass(slots=True)
class _List:
    items: "_Forms"


_Forms = list[_Object | _List]
"""The forms that a value may have; none: nothing is known about it."""

_known: dict[type[BaseModel], _Forms] = {}
_plain_names: dict[type[BaseModel], frozenset[str]] = {}  # names behind which nothing can be unknown


def unknown_fields(model: type[BaseModel], document: Any) -> list[FieldError]:
    """Return at most 50 members of `document`, the parsed body, that `model` does not know; in steps of its own."""
    if type(document) is not dict:
        return []
    names = _plain_names.get(model)
    if names is not None and names.issuperset(document):
        return []
    forms = _known.get(model)
    if forms is None:
        forms = _known[model] = _of_model(model)
        match forms:
            case [_Object(names=frozenset() as names, nested=nested)]:
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


def refuse(found: Sequence[FieldError]) -> None:
    """Raise VALIDATION_ERROR (422) with what was `found`: `Prefer: handling=strict`."""
    errors = [FieldError(each.path, each.code, each.message.replace(" and was ignored", "")) for each in found]
    raise Problem(
        "VALIDATION_ERROR",
        f"{len(errors)} unknown field{'' if len(errors) == 1 else 's'}: `errors` says which.",
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
    short = [{"code": each["code"], "path": _ascii(each["path"])} for each in warnings[:_MOST_IN_HEADER]]
    reply.headers = {**reply.headers, HEADER: orjson.dumps(short).decode()}


def _detail(found: FieldError) -> str:
    return f"This field {found.message}"


def _ascii(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode()[:_LONGEST_PATH]


def _all_known(forms: _Forms, value: Any, depth: int) -> bool:
    """Whether one of the forms knows every name in `value`: the usual case, found without a look at the others."""
    if type(value) is list:
        items = [form for each in forms if type(each) is _List for form in each.items]
        if len(value) > _FEW or not depth:
            return not items or not value
        return not items or all(_all_known(items, item, depth - 1) for item in value)
    if type(value) is not dict:
        return True
    for form in forms:
        if type(form) is _Object:
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


def _found(forms: _Forms, document: Any) -> list[FieldError]:
    found: list[FieldError] = []
    left: list[tuple[_Forms, Any, str]] = [(forms, document, "")]
    looked_at = 0
    while left and len(found) < MOST and looked_at < _MOST_LOOKED_AT:
        here, value, path = left.pop()
        looked_at += 1
        if isinstance(value, dict):
            left += reversed(_members(here, value, path, found))
        elif isinstance(value, list):
            items = [form for forms in here if isinstance(forms, _List) for form in forms.items]
            if items:
                wanted = value[: _MOST_LOOKED_AT - looked_at]
                left += [(items, item, f"{path}/{place}") for place, item in enumerate(wanted)][::-1]
    return found[:MOST]


def _members(forms: _Forms, value: Any, path: str, found: list[FieldError]) -> list[tuple[_Forms, Any, str]]:
    """What is below an object; its own unknown members go to `found`."""
    objects = [form for form in forms if isinstance(form, _Object)]
    objects = [form for form in objects if form.fits(value)] or objects
    if not objects or any(form.names is None for form in objects):
        return []
    names = frozenset().union(*(form.names or () for form in objects))
    for name in value:
        if name in names:
            continue
        if len(found) >= MOST:
            break
        sentence = _sentence(name, names - _UNSAID, len(found))
        found.append(FieldError(f"{path}/{escape(name)}"[:_LONGEST_PATH], UNKNOWN, sentence))
    below = []
    for name in value.keys() & {name for form in objects for name in form.members}:
        inside = [form for each in objects for form in each.members.get(name, ())]
        below.append((inside, value[name], f"{path}/{escape(name)}"))
    return sorted(below, key=lambda each: each[2])


def _tells(forms: _Forms) -> bool:
    """Whether something could be unknown in such a value."""
    return bool(forms) and not any(isinstance(form, _Object) and form.names is None for form in forms)


def _sentence(name: str, known: Iterable[str], place: int) -> str:
    """What is said of an unknown name; `place`: how many come before it, as the first few get a hint."""
    meant = _meant(name, sorted(known)) if place < MOST_HINTS else None
    return f"{_IGNORED}." if meant is None else f"{_IGNORED}{_MEAN}{meant}?"


def _meant(name: str, options: Sequence[str]) -> str | None:
    spelled = (option for option in options if other_spelling(option, {name: None}) is not None)
    return next(spelled, None) or closest(name, options)


def _plain(value: Any) -> bool:
    return isinstance(value, str | int | float | bool)


# What is known, from the schema -------------------------------------------------------------------------------------


def _of_model(model: type[BaseModel]) -> _Forms:
    schema = model.model_json_schema(by_alias=True)
    forms = _Reader(schema.get("$defs", {})).forms(schema)
    for form in forms:
        if isinstance(form, _Object) and form.names is not None:
            form.names |= _UNSAID
    return forms


class _Reader:
    """Reads a JSON schema. A reference is read once, so that a schema may refer to itself."""

    def __init__(self, definitions: Mapping[str, Any]) -> None:
        self._definitions = definitions
        self._read: dict[str, _Forms] = {}

    def forms(self, schema: Any) -> _Forms:
        if not isinstance(schema, dict):
            return []
        reference = schema.get("$ref")
        if reference is not None:
            return self._referred(reference.removeprefix(_REFS))
        for way in ("anyOf", "oneOf", "allOf"):
            if way in schema:
                return [form for part in schema[way] for form in self.forms(part)]
        if "properties" in schema:
            return [self._object(schema)]
        if "items" in schema:
            items = self.forms(schema["items"])
            return [_List(items)] if items or "$ref" in schema["items"] else []
        return [_Object(None)] if "object" in schema.get("type", ()) else []

    def _referred(self, name: str) -> _Forms:
        if name not in self._read:
            forms = self._read[name] = []
            forms += self.forms(self._definitions[name])
        return self._read[name]

    def _object(self, schema: Mapping[str, Any]) -> _Object:
        properties = schema["properties"]
        if schema.get("additionalProperties"):
            return _Object(None)
        members = {name: self.forms(part) for name, part in properties.items()}
        return _Object(
            frozenset(properties),
            frozenset(schema.get("required", ())),
            {name: frozenset([part["const"]]) for name, part in properties.items() if "const" in part}
            | {name: frozenset(part["enum"]) for name, part in properties.items() if name == "kind" and "enum" in part},
            {name: forms for name, forms in members.items() if "$ref" in properties[name] or _tells(forms)},
        )
