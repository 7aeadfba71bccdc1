"""Reads a provider's JSON by its shape. Errors name the place of a field only: its value may be personal."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, NotRequired, TypeVar

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from recado.channels.core.callback_json import callback_json
from recado.channels.core.errors import MalformedCallback
from recado.channels.core.events import CallbackEvent
from recado.channels.core.fields import Items, text_or_none

T = TypeVar("T")
E = TypeVar("E", bound=CallbackEvent)


class Shape(Generic[T]):
    """A type of which values are read. `tag`: the field that says which type of a union it is."""

    def __init__(self, of: Any, *, tag: str | None = None) -> None:
        self.of = of
        self._validate: Callable[..., T] = TypeAdapter(of).validator.validate_python
        self._tag = tag

    def read(self, value: object, context: object = None) -> T:
        """The value; raises `MalformedCallback` with the first place in it that has another shape."""
        try:
            return self._validate(value, context=context)
        except ValidationError as error:
            place = self._place(error)
        raise MalformedCallback(place)

    def _place(self, error: ValidationError) -> str:
        first = error.errors(include_url=False, include_input=False)[0]
        path = list(first["loc"] if self._tag is None else first["loc"][1:])
        if first["type"] == "unread":
            path.append(first["ctx"]["field"])
        elif first["type"].startswith("union_tag"):
            path.append(str(self._tag))
        return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


def record(required: Mapping[str, Any], optional: Mapping[str, Any] | None = None) -> Shape[dict[str, Any]]:
    """The shape of an object by the types of its fields; optional ones may be absent. What else it has is left out."""
    fields = {**required, **{name: NotRequired[of] for name, of in (optional or {}).items()}}
    made: Any = TypedDict  # of a table, which mypy cannot follow
    return Shape(made("Record", fields))


_ITEMS = Shape[list[Any]](Items)


class Readings(Generic[E]):
    """The events that were read, and the first place that could not be: what is malformed loses itself alone."""

    def __init__(self) -> None:
        self._events: list[E] = []
        self._problem: str | None = None

    def each(self, value: Mapping[str, Any], name: str, read: Callable[[Any], Sequence[E]]) -> None:
        """`read` the events of each item of the list of that name; it may raise `MalformedCallback` with some."""
        try:
            items = _ITEMS.read(value.get(name, []))
        except MalformedCallback:
            self._problem = self._problem or name
            return
        for index, item in enumerate(items):
            try:
                self._events += read(item)
            except MalformedCallback as error:
                self._events += error.events  # type: ignore[arg-type]  # those of the same reader
                self._problem = self._problem or error.within(f"{name}[{index}]").where

    def all(self) -> list[E]:
        """All events, in their order; raises `MalformedCallback` with them when something could not be read."""
        if self._problem is not None:
            raise MalformedCallback(self._problem, self._events)
        return self._events


def read_body(body: bytes, name: str, read: Callable[[Any], Sequence[E]]) -> list[E]:
    """The events of a callback, whose items stand in a list of that name; raises `MalformedCallback`."""
    document = callback_json(body)
    if not isinstance(document, dict) or name not in document:
        raise MalformedCallback("body")
    readings = Readings[E]()
    readings.each(document, name, read)
    return readings.all()


def json_object(item: object) -> dict[str, Any]:
    """The item, which has to be one; raises `MalformedCallback`."""
    if not isinstance(item, dict):
        raise MalformedCallback("")
    return item


def word(item: object, name: str, longest: int = 64) -> str:
    """The field that says what an item is: of a kind that is not known, nothing else is read."""
    found = text_or_none(json_object(item).get(name), longest)
    if found is None:
        raise MalformedCallback(name)
    return found


def field(shape: Shape[T], item: Mapping[str, Any], name: str) -> T:
    """One field of an item; raises `MalformedCallback`."""
    try:
        return shape.read(item.get(name))
    except MalformedCallback as error:
        raise error.within(name) from None
