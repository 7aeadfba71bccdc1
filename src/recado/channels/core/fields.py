"""Strict reading of a provider's JSON: every value has its type and bound, and fits PostgreSQL (no U+0000).

Errors name the place of the field only: its value may be personal.
"""

from collections.abc import Mapping, Set
from datetime import UTC, datetime
from typing import Any, TypeVar, cast

from recado.channels.core.errors import MalformedCallback
from recado.domain.core.timestamps import parse_timestamp

MAX_DEPTH = 32
_LAST_SECOND = 253_402_300_799  # of the year 9999
_LONGEST_MOMENT = 12  # digits

Choice = TypeVar("Choice", bound=str)


class Fields:
    """One JSON object under reading; `where` is its place in the body, as in `events[3]`."""

    __slots__ = ("_values", "where")

    def __init__(self, value: object, where: str) -> None:
        if not isinstance(value, dict):
            raise MalformedCallback(where)
        self._values: dict[str, Any] = value
        self.where = where

    def text(self, name: str, longest: int) -> str:
        value = self._values.get(name)
        if not isinstance(value, str) or not 0 < len(value) <= longest or "\0" in value:
            raise self._wrong(name)
        return value

    def optional_text(self, name: str, longest: int) -> str | None:
        return None if self._values.get(name) is None else self.text(name, longest)

    def choice(self, name: str, choices: Set[Choice]) -> Choice:
        value = self._values.get(name)
        if not isinstance(value, str) or value not in choices:
            raise self._wrong(name)
        return cast("Choice", value)

    def optional_choice(self, name: str, choices: Set[Choice]) -> Choice | None:
        return None if self._values.get(name) is None else self.choice(name, choices)

    def flag(self, name: str) -> bool:
        value = self._values.get(name)
        if not isinstance(value, bool):
            raise self._wrong(name)
        return value

    def optional_count(self, name: str, highest: int) -> int | None:
        value = self._values.get(name)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= highest:
            raise self._wrong(name)
        return value

    def get(self, name: str) -> Any:
        """The value as it is, whatever it is."""
        return self._values.get(name)

    def inner(self, name: str) -> "Fields":
        """The object under a name."""
        return Fields(self._values.get(name), f"{self.where}.{name}")

    def id(self, name: str, longest: int) -> str:
        """An id that comes as a text or as a whole number."""
        value = self._values.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return str(value)
        return self.text(name, longest)

    def moment(self, name: str) -> datetime:
        """An instant in UTC, from seconds since 1970 as a whole number or as a text of digits."""
        value = self._values.get(name)
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= _LONGEST_MOMENT:
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _LAST_SECOND:
            raise self._wrong(name)
        return datetime.fromtimestamp(value, UTC)

    def time(self, name: str) -> datetime:
        """An instant in UTC."""
        try:
            return parse_timestamp(self.text(name, 64))
        except ValueError:
            raise self._wrong(name) from None

    def items(self, name: str, most: int) -> list[Any]:
        value = self._values.get(name, [])
        if not isinstance(value, list) or len(value) > most:
            raise self._wrong(name)
        return value

    def tree(self, name: str) -> Mapping[str, Any]:
        """A JSON object of any content, at most `MAX_DEPTH` deep, with U+0000 replaced by U+FFFD."""
        value = self._values.get(name)
        if not isinstance(value, dict):
            raise self._wrong(name)
        return cast("dict[str, Any]", self._clean(value, name, MAX_DEPTH))

    def trees(self, name: str, most: int) -> list[Mapping[str, Any]]:
        """A list of such objects."""
        items = self.items(name, most)
        if not all(isinstance(item, dict) for item in items):
            raise self._wrong(name)
        return cast("list[Mapping[str, Any]]", self._clean(items, name, MAX_DEPTH + 1))

    def _clean(self, value: object, name: str, depth: int) -> object:
        if isinstance(value, str):
            return value.replace("\0", "\ufffd") if "\0" in value else value
        if depth == 0 and isinstance(value, (dict, list)):
            raise self._wrong(name)
        if isinstance(value, dict):
            return {self._clean(key, name, 1): self._clean(inner, name, depth - 1) for key, inner in value.items()}
        if isinstance(value, list):
            return [self._clean(inner, name, depth - 1) for inner in value]
        return value

    def _wrong(self, name: str) -> MalformedCallback:
        return MalformedCallback(f"{self.where}.{name}")
