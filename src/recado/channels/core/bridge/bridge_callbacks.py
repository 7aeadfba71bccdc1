"""How a bridge's callbacks are believed and read: `{"events": [{"kind": …}, …]}`, signed (C29.3, C29.5)."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import ClassVar

from recado.channels.core.event_json import EVENT
from recado.channels.core.events import Event
from recado.channels.core.reading import read_body
from recado.channels.core.refusals import PROVIDER_CODES
from recado.channels.core.signing import PROVIDER_SIGNATURE, header, is_signed, signing_key

EVENTS = "events"
BRIDGE = "bridge"


def channel_events(body: bytes, codes: Collection[str] = PROVIDER_CODES) -> list[Event]:
    """All events of a channel's messages, in their order. `codes`: those that a failure may have there.

    Raises `MalformedCallback` with those that could be read when one could not.
    """

    def read(item: object) -> Sequence[Event]:
        if isinstance(item, dict) and item.get("kind") == "payment":
            return ()  # for another address
        return (EVENT.read(item, context=codes),)

    return read_body(body, EVENTS, read)


class SignedCallbacks:
    """The callbacks of a bridge. `secret`: what it signs them with; `name`: as in their path."""

    challenged = False
    read_with: ClassVar[tuple[str, ...]] = ()

    def __init__(self, secret: str, name: str = BRIDGE) -> None:
        self.name = name
        self._keys = (signing_key(secret),)

    def verify_callback(self, headers: Mapping[str, str], body: bytes, now: datetime) -> bool:
        """Whether the bridge sent the callback, at most 300 s ago."""
        return is_signed(header(headers, PROVIDER_SIGNATURE), self._keys, body, now)

    def answer_challenge(self, query: Mapping[str, str]) -> str | None:
        return None
