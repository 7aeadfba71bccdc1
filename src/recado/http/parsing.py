"""From bytes to checked values: the JSON body and the query string of a request (C2.3, C4.3).

A body is read once by a strict parser; what is validated and fingerprinted is its canonical form, so that both see the
same document.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_origin
from urllib.parse import parse_qsl

import orjson
from pydantic import BaseModel, ValidationError

from recado.domain.errors import CODES, KINDS, FieldError, Problem
from recado.http.field_errors import escape, from_body, from_query

_SMALL = 1024 * 1024  # bytes, of which whatever they hold is parsed in no time
_MOST_CONTAINERS = 500_000
_MOST_COMMAS = 4_000_000

_USUAL_TYPES = frozenset({"application/json", "application/json; charset=utf-8", "application/json;charset=utf-8"})


class JsonBody:
    """A parsed body: the `document` and its `canonical` bytes (sorted keys, no spaces)."""

    __slots__ = ("canonical", "document")

    def __init__(self, document: Any, canonical: bytes) -> None:
        self.document = document
        self.canonical = canonical


def parse_json(raw: bytes) -> JsonBody:
    """Return the body in `raw`; MALFORMED_JSON (400) when it is no JSON text that this service can hold."""
    if len(raw) > _SMALL:
        _refuse_swarm(raw)
    try:
        document = orjson.loads(raw)
        return JsonBody(document, orjson.dumps(document, option=orjson.OPT_SORT_KEYS))
    except orjson.JSONDecodeError as error:
        raise _malformed(f"The body is not valid JSON (line {error.lineno}, column {error.colno}).") from None
    except TypeError:  # what the parser reads, the writer can refuse for one reason: depth
        raise _malformed("The body is nested too deeply.") from None


def _refuse_swarm(raw: bytes) -> None:
    """Refuse a large body of tiny values: they take thirty times its size, and seconds in which nobody is answered.

    No operation takes a tenth as many; what stands in texts is counted too.
    """
    if raw.count(b"[") + raw.count(b"{") > _MOST_CONTAINERS or raw.count(b",") > _MOST_COMMAS:
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
        raise Problem("UNSUPPORTED_MEDIA_TYPE", "The body must be sent as application/json in UTF-8.")


def validate_body(model: type[BaseModel], body: JsonBody, bad_status: int) -> BaseModel:
    """Return `body` as `model`; INVALID_CHARACTER or the route's validation problem otherwise."""
    if b"\\u0000" in body.canonical:
        refuse_nul(body.document)
    try:
        return model.__pydantic_validator__.validate_json(body.canonical)  # type: ignore[no-any-return]
    except ValidationError as error:
        raise invalid_body(from_body(error, body.document), bad_status) from None


def invalid_body(errors: Sequence[FieldError], status: int) -> Problem:
    """The problem for a body that does not fit: under the one code that all its errors share, if it has this status."""
    codes = {error.code for error in errors}
    code = codes.pop() if len(codes) == 1 else ""
    if code not in CODES or CODES[code].status != status:
        code = KINDS[status]
    return Problem(code, "The body does not fit this operation.", errors=errors)


def refuse_nul(document: Any) -> None:
    """Raise INVALID_CHARACTER (422) when a text or a member's name in `document` holds U+0000 (C2.3.4)."""
    found = [FieldError(path, "INVALID_CHARACTER", "must not contain U+0000") for path in _nul_paths(document, "")]
    if found:
        raise Problem("INVALID_CHARACTER", "Texts must not contain the character U+0000.", errors=found)


def _nul_paths(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, str):
        if "\0" in value:
            yield path
    elif isinstance(value, dict):
        for name, member in value.items():
            if "\0" in name:
                yield path
            else:
                yield from _nul_paths(member, f"{path}/{escape(name)}")
    elif isinstance(value, list):
        for position, member in enumerate(value):
            yield from _nul_paths(member, f"{path}/{position}")


class QueryParser:
    """Reads the query string of one operation into its model."""

    __slots__ = ("_lists", "_model", "_names", "_status")

    def __init__(self, model: type[BaseModel], bad_status: int) -> None:
        self._model = model
        self._status = bad_status
        names: Mapping[str, Any] = {info.alias or name: info for name, info in model.model_fields.items()}
        self._names = frozenset(names)
        self._lists = frozenset(name for name, info in names.items() if _is_list(info.annotation))

    def parse(self, query: str) -> BaseModel:
        """Return the parameters; INVALID_PARAMETER (400) or VALIDATION_ERROR (422) per the operation."""
        values: dict[str, Any] = {}
        for name, value in _pairs(query):
            if name not in self._names:
                continue
            if "\0" in value:
                raise self._refused([FieldError(name, "INVALID_CHARACTER", "must not contain U+0000")])
            if name in self._lists:
                values.setdefault(name, []).append(value)
            elif name in values:
                raise self._refused([FieldError(name, "REPEATED", "may be given once only")])
            else:
                values[name] = value
        try:
            return self._model.__pydantic_validator__.validate_python(values)  # type: ignore[no-any-return]
        except ValidationError as error:
            raise self._refused(from_query(error)) from None

    def _refused(self, errors: list[FieldError]) -> Problem:
        code = "INVALID_PARAMETER" if self._status == 400 else "VALIDATION_ERROR"
        names = ", ".join(dict.fromkeys(error.path for error in errors if error.path in self._names))
        return Problem(code, f"Query parameters are not acceptable: {names}.", errors=errors)


def _pairs(query: str) -> list[tuple[str, str]]:
    if not query:
        return []
    try:
        return parse_qsl(query, keep_blank_values=True, errors="strict")
    except ValueError:  # UnicodeDecodeError among them
        raise Problem("INVALID_PARAMETER", "The query string is not valid UTF-8.") from None


def _is_list(annotation: Any) -> bool:
    """Whether a field takes repeated parameters: `list[X]`, `tuple[X, ...]`, or one of them `| None`."""
    if get_origin(annotation) in {list, tuple, set, frozenset}:
        return True
    return any(_is_list(part) for part in getattr(annotation, "__args__", ()) if part is not annotation)
