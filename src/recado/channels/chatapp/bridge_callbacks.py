"""The events of a bridge's callback, without those of other channels and features (C29.3, C29.5). Pure."""

from recado.channels.core.bridge_body import events_of
from recado.channels.core.events import Event, event_from_json


def events(body: bytes) -> list[Event]:
    """All events, in their order; raises `MalformedCallback` with those that could be read when one could not."""
    return events_of(body, _read)


def _read(item: object, where: str) -> Event | None:
    if isinstance(item, dict) and item.get("kind") in ("flow", "payment"):
        return None
    return event_from_json(item, where)
