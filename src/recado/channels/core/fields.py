"""Types of a provider's fields, for pydantic: every value has its type and bound, and fits PostgreSQL (no U+0000)."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator, StringConstraints
from pydantic_core import PydanticCustomError

from recado.domain.core.timestamps import parse_timestamp

MAX_DEPTH = 32
_LAST_SECOND = 253_402_300_799  # of the year 9999
_LONGEST_MOMENT = 12  # digits
_LONGEST_OF_RECEIPT = 2_048  # characters
_LARGEST_OF_RECEIPT = 1e15

T = TypeVar("T")


def text(longest: int) -> StringConstraints:
    """Of 1 to so many characters."""
    return StringConstraints(strict=True, min_length=1, max_length=longest, pattern=r"\A[^\x00]*\z")


def unread(name: str) -> PydanticCustomError:
    """The field of that name, of the object under validation, is wrong or missing."""
    return PydanticCustomError("unread", "it is wrong, or missing", {"field": name})


def needed(name: str, there: Callable[[Any], object]) -> AfterValidator:
    """The field of that name is needed where nothing else of the value is `there` in its place."""

    def check(value: Any) -> Any:
        if not there(value):
            raise unread(name)
        return value

    return AfterValidator(check)


def known(words: Mapping[str, T]) -> PlainValidator:
    """A word of theirs in ours: None where it is not one of `words`."""

    def check(value: object) -> T | None:
        text = text_or_none(value, 64)
        if text is None:
            raise ValueError("it is no word")
        return words.get(text)

    return PlainValidator(check)


def text_or_none(value: object, longest: int) -> str | None:
    """The text, where it is one that can be kept: an odd one must not cost what it stands beside."""
    return value if isinstance(value, str) and 0 < len(value) <= longest and "\0" not in value else None


def object_in(value: object) -> dict[str, Any]:
    """The object; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def objects_in(value: object) -> list[dict[str, Any]]:
    """The objects of a list; none for anything else."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def clean(value: Any, depth: int = MAX_DEPTH) -> Any:
    """Any JSON, at most so deep, with U+0000 replaced by U+FFFD. Raises ValueError."""
    if isinstance(value, str):
        return value.replace("\0", "\ufffd") if "\0" in value else value
    if depth == 0 and isinstance(value, (dict, list)):
        raise ValueError("it is too deep")
    if isinstance(value, dict):
        return {clean(key, 1): clean(inner, depth - 1) for key, inner in value.items()}
    if isinstance(value, list):
        return [clean(inner, depth - 1) for inner in value]
    return value


def _time(value: object) -> datetime:
    if not isinstance(value, str) or len(value) > 64:
        raise ValueError("it is no time")
    return parse_timestamp(value)


def _seconds(value: object) -> datetime:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= _LONGEST_MOMENT:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _LAST_SECOND:
        raise ValueError("it is no time")
    return datetime.fromtimestamp(value, UTC)


def _tree(value: object) -> Any:
    if not isinstance(value, dict):
        raise ValueError("it is no object")
    return clean(value)


_RECEIPT: Mapping[str, Callable[[object], bool]] = {
    **dict.fromkeys(
        ("id", "to", "message", "reference", "status", "statusDescription", "received", "account_reference"),
        lambda value: text_or_none(value, _LONGEST_OF_RECEIPT) is not None,
    ),
    **dict.fromkeys(
        ("bill_factor", "account_id"),
        lambda value: (
            isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _LARGEST_OF_RECEIPT
        ),
    ),
    "type": lambda value: value in ("api_message", "api_fast", "api_reply"),
    "channel": lambda value: value in ("SMS", "RCS", "CHATAPP", None),
}


def _receipt(value: object) -> dict[str, Any]:
    return (
        {name: value[name] for name, fits in _RECEIPT.items() if name in value and fits(value[name])}
        if isinstance(value, dict)
        else {}
    )


def _id(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else value


Text16 = Annotated[str, text(16)]
Text64 = Annotated[str, text(64)]
Text128 = Annotated[str, text(128)]
Text256 = Annotated[str, text(256)]
Text512 = Annotated[str, text(512)]
Text1024 = Annotated[str, text(1_024)]
Text2048 = Annotated[str, text(2_048)]
Text4096 = Annotated[str, text(4_096)]

Id64 = Annotated[Text64, BeforeValidator(_id)]
"""A text, or a whole number."""

Id128 = Annotated[Text128, BeforeValidator(_id)]

Time = Annotated[datetime, PlainValidator(_time)]
"""An instant in UTC, from an RFC 3339 time."""

Seconds = Annotated[datetime, PlainValidator(_seconds)]
"""An instant in UTC, from seconds since 1970 as a whole number or as a text of digits."""

Tree = Annotated[Mapping[str, Any], PlainValidator(_tree)]
"""A JSON object of any content, at most `MAX_DEPTH` deep, with U+0000 replaced by U+FFFD."""

Receipt = Annotated[Mapping[str, Any], PlainValidator(_receipt)]
"""A report as its provider keeps it (C16.3): what has no known name, or is no value of its kind, is left out."""

Items = Annotated[list[Any], Field(max_length=50_000)]
"""A list of anything; a body of 3 MiB (C29.5) holds fewer."""
