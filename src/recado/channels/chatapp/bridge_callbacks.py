"""The body of a bridge's callback: `{"events": [{"kind": …}, …]}` (C29.3, C29.5). Pure."""

from recado.channels.callback_json import callback_json
from recado.channels.errors import MalformedCallback
from recado.channels.events import Event, event_from_json
from recado.channels.fields import Fields

MAX_EVENTS = 50_000  # a body of 3 MiB (C29.5) holds fewer of them


def events(body: bytes) -> list[Event]:
    """All events, in their order; raises `MalformedCallback` with those that could be read when one could not."""
    document = callback_json(body)
    fields = Fields(document, "body")
    if "events" not in document:
        raise MalformedCallback("body.events")
    found: list[Event] = []
    first_problem: str | None = None
    for index, item in enumerate(fields.items("events", MAX_EVENTS)):
        if isinstance(item, dict) and item.get("kind") in ("flow", "payment"):  # of other channels and features
            continue
        try:
            found.append(event_from_json(item, f"events[{index}]"))
        except MalformedCallback as error:
            first_problem = first_problem or error.where
    if first_problem is not None:
        raise MalformedCallback(first_problem, found)
    return found
