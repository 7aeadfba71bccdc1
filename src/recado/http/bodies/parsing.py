"""From bytes to checked values: the JSON body and the query string of a request (C2.3, C4.3).

A body is read once by a strict parser; what is validated and fingerprinted is the document that it found, or the
canonical form of that, so that both see the same.
"""

import codecs
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from hashlib import sha256
from itertools import islice
from typing import Any, get_origin
from urllib.parse import parse_qsl

import orjson
from pydantic import BaseModel, ValidationError

from recado.domain.core.errors import CODES, KINDS, MAX_FIELD_ERRORS, FieldError, Problem, told
from recado.http.api.models import ApiModel, QueryModel
from recado.http.bodies.field_errors import escape, from_body, from_items, from_query, last_bad_items
from recado.http.bodies.long_numbers import long_numbers
from recado.http.bodies.unknown_fields import unknown_fields, unknown_parameters

NUL = b"\\u0000"  # the one way to write U+0000 in JSON
_SMALL = 64 * 1024  # bytes, of which whatever they hold is parsed in no time
_MOST_CONTAINERS = 500_000
_MOST_COMMAS = 4_000_000
_DEEPEST = 200  # lists and objects within each other: more are refused by validation, or by who writes the document
_ITEMS_AT_ONCE = 200  # of a list in which more errors are looked for
_BYTE_ORDER_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

_USUAL_TYPES = frozenset({"application/json", "application/json; charset=utf-8", "application/json;charset=utf-8"})


class JsonBody:
    """A parsed body. `may_hold_nul`: its text has what U+0000 is written as; `long_numbers`: where it has any."""

    __slots__ = ("_canonical", "document", "long_numbers", "may_hold_nul")

    def __init__(self, document: Any, *, may_hold_nul: bool = False, long_numbers: tuple[str, ...] = ()) -> None:
        self.document = document
        self.may_hold_nul = may_hold_nul
        self.long_numbers = long_numbers
        self._canonical: bytes | None = None

    @property
    def canonical(self) -> bytes:
        """The document as JSON (sorted keys, no spaces), made when it is asked for."""
        if self._canonical is None:
            self._canonical = orjson.dumps(self.document, option=orjson.OPT_SORT_KEYS)
        return self._canonical

    @property
    def digest(self) -> bytes:
        """SHA-256 of the canonical bytes: what stands for the document in a fingerprint, wherever it was read."""
        return sha256(self.canonical).digest()


def parse_json(raw: bytes, most_values: int | None = None) -> JsonBody:
    """Return the body in `raw`; MALFORMED_JSON (400) when it is no JSON text that this service can hold.

    `most_values`: how many values a large body may hold; None: as many as the largest operation takes.
    """
    if len(raw) > _SMALL:
        _refuse_swarm(raw, most_values)
    if not raw:
        raise _malformed("The body is empty: send a JSON object.")
    try:
        document = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise _malformed(
            _not_utf8(raw) or f"The body is not valid JSON (line {error.lineno}, column {error.colno})."
        ) from None
    if len(raw) > _DEEPEST and raw.count(b"[") + raw.count(b"{") > _DEEPEST:
        _refuse_deeper(document)
    return JsonBody(document, may_hold_nul=NUL in raw, long_numbers=long_numbers(raw))


def _refuse_deeper(document: Any) -> None:
    """Refuse what is nested more deeply than validation, and those who write the document, can follow."""
    level = [document]
    for _ in range(_DEEPEST):
        members = (member for each in level for member in (each.values() if isinstance(each, dict) else each))
        level = [member for member in members if isinstance(member, dict | list)]
        if not level:
            return
    raise _malformed(f"The body is nested too deeply: {_DEEPEST} lists and objects within each other are the most.")


def _not_utf8(raw: bytes) -> str | None:
    """What to say of a body in another encoding; None of one in UTF-8."""
    if raw.startswith(_BYTE_ORDER_MARKS):
        return "The body begins with a byte order mark: send it without, in UTF-8."
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        return f"The body is not UTF-8: byte 0x{raw[error.start]:02x} at position {error.start}, counted from 0."
    return None


def _refuse_swarm(raw: bytes, most_values: int | None) -> None:
    """Refuse a large body of tiny values: they take thirty times its size, and seconds in which nobody is answered.

    No operation takes a tenth as many; what stands in texts is counted too.
    """
    containers, commas = raw.count(b"[") + raw.count(b"{"), raw.count(b",")
    if containers > _MOST_CONTAINERS or commas > _MOST_COMMAS:
        raise _malformed("The body holds too many values.")
    if most_values is not None and containers + commas > most_values:
        raise _malformed("The body holds too many values.")


def _malformed(detail: str) -> Problem:
    return Problem("MALFORMED_JSON", detail)


def require_json(content_type: str | None) -> None:
    """Raise UNSUPPORTED_MEDIA_TYPE (415) unless the header says `application/json`."""
    if content_type in _USUAL_TYPES:
        return
    media_type, _, parameters = (content_type or "").partition(";")
    charset = parameters.replace(" ", "").replace('"', "").lower()
    if media_type.strip().lower() != "application/json" or charset not in {"", "charset=utf-8"}:
        raise Problem(
            "UNSUPPORTED_MEDIA_TYPE", "The body must be sent with the header Content-Type: application/json, in UTF-8."
        )


def validate_body(model: type[BaseModel], body: JsonBody, bad_status: int) -> BaseModel:
    """Return `body` as `model`; INVALID_CHARACTER or the route's validation problem otherwise."""
    if body.may_hold_nul:
        refuse_nul(body.document)
    if body.long_numbers:
        _refuse_long_numbers(model, body, bad_status)
    try:
        if issubclass(model, ApiModel) and model.reads_document:
            return model.__pydantic_validator__.validate_python(body.document, by_alias=True, by_name=False)  # type: ignore[no-any-return]
        return model.__pydantic_validator__.validate_json(  # type: ignore[no-any-return]
            body.canonical, by_alias=True, by_name=False
        )
    except ValidationError as error:
        found = errors_of(model, error, body.document)
    raise invalid_body(found, bad_status)


def _refuse_long_numbers(model: type[BaseModel], body: JsonBody, bad_status: int) -> None:
    """Raise the route's validation problem, but not for what it ignores (C2.3.9)."""
    ignored = [error.path for error in unknown_fields(model, body.document)]
    found = [
        FieldError(path, "OUT_OF_RANGE", "must be a whole number of 64 bits: write a longer one as a text")
        for path in body.long_numbers
        if not any(path == each or path.startswith(f"{each}/") for each in ignored)
    ]
    if found:
        raise invalid_body(found, bad_status)


def errors_of(model: type[BaseModel], error: ValidationError, document: Any) -> list[FieldError]:
    """At most 50 of what is wrong with `document`.

    Of a long list, validation tells the first bad item only (`FailFast`): the items behind it are looked at here, until
    there are 50 errors.
    """
    found = from_body(error, document)
    if isinstance(document, dict) and issubclass(model, ApiModel):
        known = {(each.path, each.code) for each in found}  # which may say more: how it was spelled
        found += [each for each in model.missing_beside(document) if (each.path, each.code) not in known]
    for name, last in last_bad_items(error, document).items():
        items, start, size = document[name], last + 1, 1
        while start < len(items) and len(found) < MAX_FIELD_ERRORS:
            part = {name: items[start : start + size]}
            try:
                model.__pydantic_validator__.validate_json(orjson.dumps(part), by_alias=True, by_name=False)
                bad = None
            except ValidationError as more:
                bad = last_bad_items(more, part).get(name)
                if bad is not None:
                    found += from_items(more, part, name, start)
            # Small steps while there is much to tell: each costs what all of its items cost.
            start, size = (start + size, min(2 * size, _ITEMS_AT_ONCE)) if bad is None else (start + bad + 1, 1)
    return found[:MAX_FIELD_ERRORS]


def invalid_body(errors: Sequence[FieldError], status: int) -> Problem:
    """The problem for a body that does not fit: under the one code that all its errors share, if it has this status."""
    codes = {error.code for error in errors}
    code = codes.pop() if len(codes) == 1 else ""
    if code not in CODES or CODES[code].status != status:
        code = KINDS[status]
    return Problem(code, told(errors), errors=errors)


def refuse_nul(document: Any) -> None:
    """Raise INVALID_CHARACTER (422) when a text or a member's name in `document` holds U+0000 (C2.3.4)."""
    found = [
        FieldError(path, "INVALID_CHARACTER", "must not contain U+0000")
        for path in islice(_nul_paths(document), MAX_FIELD_ERRORS)
    ]
    if found:
        raise Problem("INVALID_CHARACTER", "Texts must not contain the character U+0000.", errors=found)


def _nul_paths(document: Any) -> Iterator[str]:
    """Where U+0000 stands, in the order of the document. A pointer is only made for what is found."""
    if isinstance(document, str):
        if "\0" in document:
            yield ""
        return
    parts: list[str | int] = []
    containers = [_members(document)]
    while containers:
        for part, member in containers[-1]:
            if isinstance(part, str) and "\0" in part:
                yield _joined(parts)
            elif isinstance(member, str):
                if "\0" in member:
                    yield _joined([*parts, part])
            elif isinstance(member, dict | list):
                parts.append(part)
                containers.append(_members(member))
                break
        else:
            containers.pop()
            if parts:
                parts.pop()


def _members(container: Any) -> Iterator[tuple[str | int, Any]]:
    if isinstance(container, dict):
        return iter(container.items())
    return iter(enumerate(container)) if isinstance(container, list) else iter(())


def _joined(parts: Iterable[str | int]) -> str:
    return "".join(f"/{escape(str(part))}" for part in parts)


class QueryParser:
    """Reads the query string of one operation into its model."""

    __slots__ = ("_lists", "_model", "_names", "_status")

    def __init__(self, model: type[QueryModel], bad_status: int) -> None:
        self._model = model
        self._status = bad_status
        self._names, self._lists = _parameters(model)

    def parse(self, query: str, unknown: list[FieldError] | None = None) -> BaseModel:
        """Return the parameters; INVALID_PARAMETER (400) or VALIDATION_ERROR (422) per the operation.

        What the operation does not know is added to `unknown`. A forgiving one takes of each the first that is a text.
        """
        values: dict[str, Any] = {}
        if self._model.forgiving:
            for name, value in parse_qsl(query, errors="surrogateescape"):
                if name in self._names and _is_text(value):
                    values.setdefault(name, value)
            return self._model(**values)
        others: list[str] = []
        for name, value in pairs_of(query):
            if name not in self._names:
                others.append(name)
                continue
            if "\0" in value:
                raise self._refused([FieldError(name, "INVALID_CHARACTER", "must not contain U+0000")])
            if name in self._lists:
                values.setdefault(name, []).append(value)
            elif name in values:
                raise self._refused([FieldError(name, "REPEATED", "must be given only once")])
            else:
                values[name] = value
        if others and unknown is not None:
            unknown += unknown_parameters(others, self._names)
        try:
            return self._model.__pydantic_validator__.validate_python(values)  # type: ignore[no-any-return]
        except ValidationError as error:
            raise self._refused(from_query(error)) from None

    def _refused(self, errors: list[FieldError]) -> Problem:
        code = "INVALID_PARAMETER" if self._status == 400 else "VALIDATION_ERROR"
        return Problem(code, told(errors, "query parameter"), errors=errors)


def pairs_of(query: str) -> list[tuple[str, str]]:
    """Return names and values of a query string; INVALID_PARAMETER (400) when it is no UTF-8."""
    if not query:
        return []
    try:
        return parse_qsl(query, keep_blank_values=True, errors="strict")
    except ValueError:  # UnicodeDecodeError among them
        raise Problem("INVALID_PARAMETER", "The query string is not valid UTF-8.") from None


def _is_text(value: str) -> bool:
    """Whether it says something, and can be stored."""
    return not value.isspace() and "\0" not in value and not any("\ud800" <= sign <= "\udfff" for sign in value)


@cache
def _parameters(model: type[QueryModel]) -> tuple[frozenset[str], frozenset[str]]:
    """The names of a model's parameters, and which of them may be repeated: many operations have the same model."""
    names: Mapping[str, Any] = {info.alias or name: info for name, info in model.model_fields.items()}
    return frozenset(names), frozenset(name for name, info in names.items() if _is_list(info.annotation))


def _is_list(annotation: Any) -> bool:
    """Whether a field takes repeated parameters: `list[X]`, `tuple[X, ...]`, or one of them `| None`."""
    if get_origin(annotation) in {list, tuple, set, frozenset}:
        return True
    return any(_is_list(part) for part in getattr(annotation, "__args__", ()) if part is not annotation)
