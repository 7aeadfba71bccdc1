"""Bases and field types of what callers send: bodies (strict JSON types) and query parameters (read from text)."""

import re
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from recado.domain.core.errors import FieldError
from recado.domain.core.timestamps import parse_timestamp
from recado.http.bodies.field_errors import NOT_ALLOWED

_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,18}")


class ApiModel(BaseModel):
    """A JSON object of the interface: camelCase outside, trimmed strings, unknown fields ignored (C2.3).

    JSON types are taken as they are: `"5"` is no number. Lengths count code points.

    `reads_document`: the parsed document is validated, and not its text once more, which takes a third less time. That
    is for models whose fields take the same values either way: an enumeration, or another model, takes a text, or an
    object, only where its field says `strict=False`.
    """

    reads_document: ClassVar[bool] = False

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        str_strip_whitespace=True,
        strict=True,
        extra="ignore",
        allow_inf_nan=False,
        hide_input_in_errors=True,
        ser_json_inf_nan="null",
    )

    @classmethod
    def missing_beside(cls, _document: Mapping[str, Any]) -> list[FieldError]:
        """Return what `_document`, which does not fit, also lacks by the rules that concern several of its fields."""
        return []


class PatchModel(ApiModel):
    """The body of a PATCH: an absent field stays as it is, `null` clears it (C2.3.3).

    Give a field that can be cleared a default of None, and any other one `unset()`.
    """

    def changes(self) -> dict[str, Any]:
        """Return what the caller sent, by Python field name; None means cleared."""
        return {name: getattr(self, name) for name in self.model_fields_set}

    def named(self) -> list[str]:
        """Return the names of what the caller sent, as callers write them: `allowedIps`."""
        return sorted(map(to_camel, self.model_fields_set))


def unset() -> Any:
    """The default of a field of a PATCH that can be left out but not cleared; the document names no default for it."""
    return Field(default_factory=lambda: None)


class QueryModel(BaseModel):
    """Query parameters: camelCase names, values read from text; lists are repeated parameters.

    `forgiving`: what cannot be used of them is left out, and nothing is refused. Each is a text, or absent.
    """

    forgiving: ClassVar[bool] = False

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        str_strip_whitespace=True,
        extra="ignore",
        hide_input_in_errors=True,
    )


def _timestamp(value: Any) -> Any:
    if isinstance(value, datetime):
        return value
    if not isinstance(value, str):
        raise PydanticCustomError(
            "timestamp", "must be a text with an RFC 3339 date-time, such as 2026-01-31T12:00:00Z"
        )
    try:
        return parse_timestamp(value.strip())
    except ValueError:
        raise PydanticCustomError(
            "timestamp", "must be an RFC 3339 date-time with an offset, such as 2026-01-31T12:00:00Z"
        ) from None


def _none_if_blank(text: str) -> str | None:
    return text or None


# Of a text that may be left out: a blank one says as little as none.
BLANK_IS_NONE = AfterValidator(_none_if_blank)


def most_members(most: int) -> BeforeValidator:
    """Refuse an object of more than `most` members before any of them is looked at: each might be an error."""

    def check(value: Any) -> Any:
        if isinstance(value, dict) and len(value) > most:
            raise PydanticCustomError("too_long", "must have at most {most} members", {"most": most})
        return value

    return BeforeValidator(check)


def one_of(known: Collection[str], *, elsewhere: Collection[str] = ()) -> AfterValidator:
    """Refuse a name that is not `known` with the one that was probably meant, else with all of them.

    `elsewhere`: names that exist, but not here: they are no misspelling.
    """

    def check(name: str) -> str:
        if name not in known:
            # Looked for when the error is told: to compare each wrong name of a list costs milliseconds.
            compared = None if name in elsewhere else name
            raise PydanticCustomError(
                NOT_ALLOWED, "must be one of {names}", {"names": ", ".join(known), "name": compared, "known": known}
            )
        return name

    return AfterValidator(check)


def _whole_number(value: Any) -> Any:
    if isinstance(value, str):
        if _WHOLE_NUMBER.fullmatch(value) is None:
            raise PydanticCustomError("int_parsing", "must be a whole number")
        return int(value)
    return value


def _truth(value: Any) -> Any:
    if isinstance(value, str):
        if value not in {"true", "false"}:
            raise PydanticCustomError("bool_parsing", "must be true or false")
        return value == "true"
    return value


# An instant; input takes any offset, never none (C2.3.5).
Timestamp = Annotated[datetime, BeforeValidator(_timestamp), WithJsonSchema({"type": "string", "format": "date-time"})]
# In query strings pydantic's own reading is too generous ("1_000", "5.0", "yes").
QueryInt = Annotated[int, BeforeValidator(_whole_number)]
QueryBool = Annotated[bool, BeforeValidator(_truth)]
