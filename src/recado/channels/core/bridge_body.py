"""The body of a bridge's callback, of any channel: `{"events": [{"kind": …}, …]}` (C29.3, C29.5). Pure."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from recado.channels.core.callback_json import callback_json
from recado.channels.core.errors import MalformedCallback
from recado.channels.core.fields import Fields

if TYPE_CHECKING:
    from recado.channels.core.adapters import CallbackEvent

MAX_EVENTS = 50_000  # a body of 3 MiB (C29.5) holds fewer of them

E = TypeVar("E", bound="CallbackEvent")


def events_of(body: bytes, read: Callable[[object, str], E | None]) -> list[E]:
    """All events, in their order; raises `MalformedCallback` with those that could be read when one could not.

    `read`: makes an event of an item and its place; None: it is passed over.
    """
    document = callback_json(body)
    fields = Fields(document, "body")
    if "events" not in document:
        raise MalformedCallback("body.events")
    found: list[E] = []
    first_problem: str | None = None
    for index, item in enumerate(fields.items("events", MAX_EVENTS)):
        try:
            event = read(item, f"events[{index}]")
        except MalformedCallback as error:
            first_problem = first_problem or error.where
        else:
            if event is not None:
                found.append(event)
    if first_problem is not None:
        raise MalformedCallback(first_problem, found)
    return found
