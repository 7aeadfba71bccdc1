"""What an adapter may raise. Sends raise nothing: their failures are outcome values (`provider.py`).

The texts name operations and places, never a phone, a message or a secret (C30.5).
"""

from collections.abc import Sequence
from typing import Literal

from recado.channels.core.events import CallbackEvent

ProviderErrorKind = Literal["refused", "unreachable"]


class ProviderError(Exception):
    """An operation other than a send failed at the provider.

    `refused`: the provider looked at the request and said no; the same request will be refused again.
    `unreachable`: no usable answer came; the operation may be tried later.
    """

    def __init__(self, kind: ProviderErrorKind, code: str, text: str) -> None:
        super().__init__(f"{kind}: {code}: {text}")
        self.kind = kind
        self.code = code
        self.text = text


class NothingDoneError(ProviderError):
    """As it is; and it is certain that the provider did nothing of what it was asked to."""


class MalformedCallback(Exception):
    """A callback, or one event in it, does not have the shape of the protocol.

    `events` are those of the same body that could be read: one bad report must not lose the others.
    """

    def __init__(self, where: str, events: Sequence[CallbackEvent] = ()) -> None:
        super().__init__(where)
        self.where = where
        self.events = tuple(events)

    def within(self, where: str) -> "MalformedCallback":
        """The same, of what holds it under that name."""
        return MalformedCallback(f"{where}.{self.where}" if self.where else where, self.events)
