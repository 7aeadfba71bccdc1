"""From a message to the bodies of its submits: whom it goes to, whom it comes from, and its parts. Pure.

Only the last part asks for a receipt, and its id is the message's: a phone shows a message of several parts when it has
all of them, and an SMS centre brings them in their order, one after another. So the receipt of the last one says what
became of the message, and nothing needs to be remembered until then. What this cannot tell is that an earlier part was
lost on its way although the last one arrived.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol
from zlib import crc32

from recado.channels.sms.smpp.texts import Alphabet, parts_of

_INTERNATIONAL: Final = 1
_NETWORK_SPECIFIC: Final = 3
_ALPHANUMERIC: Final = 5
_ISDN: Final = 1  # numbering plan of phones
_LONGEST_NAME: Final = 11  # characters
_LONGEST_SHORT_CODE: Final = 6  # digits
_LONGEST_ADDRESS: Final = 20
_RECEIPT: Final = b"\x01"
_NO_RECEIPT: Final = b"\0"


class Segments(Protocol):
    """Splits a text into what fits into one short message each. `wide`: beside a header with a reference of two octets,
    which is longer."""

    def __call__(self, text: str, *, wide: bool) -> Sequence[str]: ...


@dataclass(frozen=True, slots=True)
class SmppAddress:
    """An address with its type of number and numbering plan."""

    ton: int
    npi: int
    text: str

    @property
    def octets(self) -> bytes:
        return bytes((self.ton, self.npi)) + self.text.encode("latin-1") + b"\0"


def source_address(text: str) -> SmppAddress:
    """Whom messages come from: a phone, a short code, a name, or, where it is empty, what the SMS centre has for us.

    Raises ValueError for anything else.
    """
    digits = text.removeprefix("+")
    if not text:
        return SmppAddress(0, 0, "")
    if digits.isascii() and digits.isdigit() and len(digits) <= _LONGEST_ADDRESS:
        if len(digits) <= _LONGEST_SHORT_CODE and digits == text:
            return SmppAddress(_NETWORK_SPECIFIC, 0, text)
        return SmppAddress(_INTERNATIONAL, _ISDN, digits)
    if text.isascii() and text.isprintable() and len(text) <= _LONGEST_NAME:
        return SmppAddress(_ALPHANUMERIC, 0, text)
    raise ValueError(f"it is no phone, no short code, and no name of at most {_LONGEST_NAME} ASCII characters")


class Submits:
    """Makes the bodies for one SMS centre. All but the recipient and the text is made once for each source."""

    def __init__(self, segments: Segments, *, alphabet: Alphabet, wide_reference: bool) -> None:
        self._segments = segments
        self._alphabet: Alphabet = alphabet
        self._wide = wide_reference

    def bodies(self, message_id: str, source: SmppAddress, to: str, text: str) -> list[bytes]:
        """One for each part, in their order. Raises ValueError, which quotes nothing, for what cannot be sent.

        `to`: a phone with its country code. The reference that parts have in common follows from the message's id: of a
        message that is handed over again, a phone drops the parts that it has.
        """
        digits = to.removeprefix("+")
        if not digits.isascii() or not digits.isdigit() or len(digits) > _LONGEST_ADDRESS:
            raise ValueError("the recipient is no phone")
        parts = parts_of(
            self._segments(text, wide=self._wide), self._alphabet, crc32(message_id.encode()), wide=self._wide
        )
        # service_type, both addresses; then esm_class, protocol, priority, schedule, validity, receipt, replacement,
        # coding, canned message, length of the text, the text.
        head = b"\0%b\x01\x01%b\0" % (source.octets, digits.encode())
        last = len(parts) - 1
        return [
            b"%b%c\0\0\0\0%b\0%c\0%c%b"
            % (
                head,
                part.esm_class,
                _RECEIPT if place == last else _NO_RECEIPT,
                part.data_coding,
                len(part.octets),
                part.octets,
            )
            for place, part in enumerate(parts)
        ]
