"""Reads JSON values that come from outside any schema, such as rows of a file: a value, or a `Refusal` that says why.

The codes are those of field errors elsewhere; the texts repeat nothing of what was given (C4.1).
"""

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from typing import Any, TypeVar

from recado.domain.core.errors import FieldError

E = TypeVar("E", bound=StrEnum)


class Refusal(Exception):
    """A value is not acceptable. `paths`: where in it, as JSON pointers relative to the value; none: as a whole."""

    def __init__(self, code: str, message: str, *paths: str) -> None:
        super().__init__(code)
        self.code = code
        self.message = message
        self.paths = paths or ("",)

    def under(self, part: str | int) -> "Refusal":
        """The same, seen from the container that holds the value as its member `part`."""
        token = str(part).replace("~", "~0").replace("/", "~1")
        return Refusal(self.code, self.message, *(f"/{token}{path}" for path in self.paths))

    @property
    def errors(self) -> list[FieldError]:
        return [FieldError(path, self.code, self.message) for path in self.paths]


def text(value: Any, most: int, *, least: int = 1) -> str:
    """A trimmed text of `least` to `most` code points without U+0000 (C2.3.4)."""
    if not isinstance(value, str):
        raise Refusal("WRONG_TYPE", "must be a text")
    if "\0" in value:
        raise Refusal("INVALID_CHARACTER", "must not contain U+0000")
    trimmed = value.strip()
    if len(trimmed) < least:
        raise Refusal("TOO_SHORT", f"must have at least {least} characters")
    if len(trimmed) > most:
        raise Refusal("TOO_LONG", f"must have at most {most} characters")
    return trimmed


def whole_number(value: Any, least: int, most: int) -> int:
    """A whole number from `least` to `most`."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise Refusal("WRONG_TYPE", "must be a whole number")
    if not least <= value <= most:
        raise Refusal("OUT_OF_RANGE", f"must be from {least} to {most}")
    return value


def one_of(value: Any, kind: type[E], allowed: Collection[E] | None = None) -> E:
    """A member of `kind`, among those `allowed`."""
    if isinstance(value, str):
        for member in kind if allowed is None else allowed:
            if member.value == value.strip():
                return member
    names = ", ".join(member.value for member in (kind if allowed is None else allowed))
    raise Refusal("NOT_ALLOWED", f"must be one of {names}")


def items(value: Any, most: int, *, least: int = 0) -> Sequence[Any]:
    """An array of `least` to `most` items."""
    if not isinstance(value, (list, tuple)):
        raise Refusal("WRONG_TYPE", "must be an array")
    if len(value) < least:
        raise Refusal("TOO_FEW", f"must have at least {least} items")
    if len(value) > most:
        raise Refusal("TOO_MANY", f"must have at most {most} items")
    return value


def members(value: Any) -> Mapping[str, Any]:
    """A JSON object."""
    if not isinstance(value, dict):
        raise Refusal("WRONG_TYPE", "must be an object")
    return value


def texts(value: Any, most_items: int, most: int, *, least: int = 1) -> tuple[str, ...]:
    """An array of texts, each of `least` to `most` code points."""
    found = []
    for position, item in enumerate(items(value, most_items)):
        try:
            found.append(text(item, most, least=least))
        except Refusal as refusal:
            raise refusal.under(position) from None
    return tuple(found)
