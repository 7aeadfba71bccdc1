"""What callers see of records, by the models that describe it.

A member is read from the record's field of that name, or by a function of its own. One for which the model has a
default is left out where it is None. One that can be read from nowhere raises TypeError when the program starts.
"""

from collections.abc import Callable
from operator import attrgetter
from typing import Any, TypeVar

from pydantic import BaseModel

R = TypeVar("R")
C = TypeVar("C")

View = Callable[[R], dict[str, Any]]
"""From a record to plain values, by the names that callers read."""


def view_of(record: type[R], model: type[BaseModel], **own: Callable[[R], Any]) -> View[R]:
    """The view of what needs nothing but itself."""
    with_nothing = view_with(record, model, **{name: _alone(read) for name, read in own.items()})
    return lambda shown: with_nothing(shown, None)


def view_with(
    record: type[R], model: type[BaseModel], **own: Callable[[R, C], Any]
) -> Callable[[R, C], dict[str, Any]]:
    """The view of what needs more than itself: the present, what was counted, what the caller may see."""
    readable = {*record.__annotations__, *dir(record), *own}
    members: list[tuple[str, Callable[[R, C], Any], bool]] = []
    for name, field in model.model_fields.items():
        if name not in readable:
            raise TypeError(f"{record.__name__} has no {name}, which {model.__name__} shows")
        read = own[name] if name in own else _alone(attrgetter(name))
        members.append((field.alias or name, read, field.is_required()))

    def view(shown: R, more: C) -> dict[str, Any]:
        values = [(alias, read(shown, more), needed) for alias, read, needed in members]
        return {alias: value for alias, value, needed in values if needed or value is not None}

    return view


def _alone(read: Callable[[R], Any]) -> Callable[[R, Any], Any]:
    return lambda shown, _: read(shown)
