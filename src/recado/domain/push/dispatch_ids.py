"""Ids of dispatches, one for each device of a message, which are computed and stand nowhere (C1.16).

After the prefix: the creation time of the message, the place of the device, and eight characters that only the key of
the message makes. So a million ids take no room, and nobody who got one guesses another.
"""

from hashlib import blake2b

from recado.domain.core.ids import BASE62, BODY_LENGTH, PUSH_DISPATCH, PUSH_MESSAGE, base62, is_id, time_in

KEY_BYTES = 16
_PLACE_LENGTH, _SEAL_LENGTH = 5, 8
_VALUES = {character: value for value, character in enumerate(BASE62)}


def dispatch_id(message_id: str, place: int, key: bytes) -> str:
    """The id of the device at `place`, counted from 0."""
    told = base62(place, _PLACE_LENGTH)
    return f"{PUSH_DISPATCH}{time_in(message_id)}{told}{_seal(message_id, told, key)}"


def place_in(text: str, message_id: str, key: bytes) -> int | None:
    """The place that an id tells; None when it is none of this message."""
    if not is_id(PUSH_DISPATCH, text) or time_in(text) != time_in(message_id):
        return None
    told = text[-_PLACE_LENGTH - _SEAL_LENGTH : -_SEAL_LENGTH]
    if _seal(message_id, told, key) != text[-_SEAL_LENGTH:]:
        return None
    place = 0
    for character in told:
        place = place * 62 + _VALUES[character]
    return place


def messages_of(text: str) -> tuple[str, str]:
    """Between which ids the message of a dispatch lies: those of one millisecond."""
    first = PUSH_MESSAGE + time_in(text)
    return first + "0" * (BODY_LENGTH - 8), first + "~"


def _seal(message_id: str, told: str, key: bytes) -> str:
    digest = blake2b(f"{message_id}{told}".encode(), key=key, digest_size=8).digest()
    return base62(int.from_bytes(digest, "big"), _SEAL_LENGTH)
