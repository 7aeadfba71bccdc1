"""Ids of messages from people that were not answered: an SMS centre brings those again, and nothing tells a repeat.

Whether such a message is stored nobody knows: its commit may be in doubt. Under the same id it is stored once.
"""

from collections import deque
from hashlib import blake2b
from typing import Final

from recado.channels.sms.smpp.pdu import DataMessage, Pdu, ShortMessage, Tag

MOST: Final = 4_000  # as many as wait for their answer at once; beyond, the oldest go
KEPT: Final = 3_600.0  # seconds: what comes later is taken for another message

_Unanswered = tuple[float, str]
"""When (monotonic), and the id."""


class RepeatedTexts:
    """Keeps hashes of what people wrote, no texts."""

    def __init__(self) -> None:
        self._ids: dict[bytes, deque[_Unanswered]] = {}  # by text
        self._count = 0

    def id_of(self, pdu: Pdu, now: float) -> str | None:
        """The id under which it was brought before without an answer; None: it is new. An id is given once."""
        key = _key(pdu)
        while key in self._ids:
            unanswered_at, known = self._pop(key)
            if now - unanswered_at < KEPT:
                return known
        return None

    def unanswered(self, pdu: Pdu, known: str, now: float) -> None:
        """It will be brought again: it was not answered, or the answer asked for that."""
        self._ids.setdefault(_key(pdu), deque()).append((now, known))
        self._count += 1
        if self._count > MOST:
            self._pop(next(iter(self._ids)))

    def _pop(self, key: bytes) -> _Unanswered:
        ids = self._ids[key]
        self._count -= 1
        first = ids.popleft()
        if not ids:
            del self._ids[key]
        return first


def _key(pdu: Pdu) -> bytes:
    body = pdu.body
    assert isinstance(body, ShortMessage | DataMessage)  # noqa: S101 - only texts are asked for
    octets = body.short_message if isinstance(body, ShortMessage) else b""
    octets = octets or pdu.tlv(Tag.MESSAGE_PAYLOAD) or b""
    head = f"{body.source_addr}\0{body.destination_addr}\0{body.esm_class}\0{body.data_coding}\0"
    return blake2b(head.encode() + octets, digest_size=16).digest()
