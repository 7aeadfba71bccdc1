"""Texts of messages as octets, their parts held together by a user data header, and back. Pure."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from recado.channels.sms.smpp import gsm7
from recado.channels.sms.smpp.pdu import LONGEST_TEXT, DataMessage, Pdu, ShortMessage, Tag

Alphabet = Literal["gsm7", "gsm7_packed", "latin1"]
"""How an SMS centre takes texts that GSM-7 can hold: a septet in each octet, packed, or as Latin-1 where that can."""

WITH_HEADER: Final = 0x40  # of `esm_class`
GSM7: Final = 0
LATIN1: Final = 3
UCS2: Final = 8
LONGEST_READ: Final = 8 * 1024
"""Octets of a person's text: four times what the longest of a phone takes. What is beyond is cut."""
_ASCII: Final = 1
_TOO_LONG: Final = f"a segment is longer than {LONGEST_TEXT} octets"
_CONCATENATIONS: Final = {0: 3, 8: 4}  # information elements, with the octets of each
_CONCATENATION: Final = struct.Struct(">BBBBBB")
_WIDE_CONCATENATION: Final = struct.Struct(">BBBHBB")


@dataclass(frozen=True, slots=True)
class Part:
    """One short message: what a submit says of its text."""

    data_coding: int
    esm_class: int
    octets: bytes = field(repr=False)


def parts_of(segments: Sequence[str], alphabet: Alphabet, reference: int, *, wide: bool = False) -> list[Part]:
    """The parts of a text that is split already, all in one coding. ValueError for a segment that is too long.

    `reference`: what parts of one message have in common, of which an octet is used, or two where it is `wide`.
    """
    if len(segments) == 1 and alphabet == "gsm7" and (septets := gsm7.encode(segments[0])) is not None:
        if len(septets) > LONGEST_TEXT:
            raise ValueError(_TOO_LONG)
        return [Part(GSM7, 0, septets)]  # what most messages are
    coding, bodies = _encoded(segments, alphabet)
    if len(bodies) == 1:
        headers = [b""]
    elif wide:
        headers = [
            _WIDE_CONCATENATION.pack(6, 8, 4, reference & 0xFFFF, len(bodies), place + 1)
            for place in range(len(bodies))
        ]
    else:
        headers = [
            _CONCATENATION.pack(5, 0, 3, reference & 0xFF, len(bodies), place + 1) for place in range(len(bodies))
        ]
    if coding == GSM7 and alphabet == "gsm7_packed":
        bodies = [gsm7.pack(body, len(header)) for header, body in zip(headers, bodies, strict=True)]
    octets = [header + body for header, body in zip(headers, bodies, strict=True)]
    if any(len(each) > LONGEST_TEXT for each in octets):
        raise ValueError(_TOO_LONG)
    esm_class = WITH_HEADER if len(bodies) > 1 else 0
    return [Part(coding, esm_class, each) for each in octets]


def _encoded(segments: Sequence[str], alphabet: Alphabet) -> tuple[int, list[bytes]]:
    septets = [gsm7.encode(segment) for segment in segments]
    if any(each is None for each in septets):
        return UCS2, [segment.encode("utf-16-be", "surrogatepass") for segment in segments]
    if alphabet == "latin1":
        try:
            return LATIN1, [segment.encode("latin-1") for segment in segments]
        except UnicodeEncodeError:  # a euro sign, or Greek
            pass
    return GSM7, [each for each in septets if each is not None]


def part_of(body: ShortMessage) -> tuple[int, int]:
    """Which part of how many it is, by its user data header; (1, 1) of one that is a whole message, or says nothing."""
    octets = body.short_message
    if body.esm_class & WITH_HEADER and octets:
        at, end = 1, 1 + octets[0]
        while at + 2 <= end <= len(octets):
            length = octets[at + 1]
            if _CONCATENATIONS.get(octets[at]) == length and at + 2 + length <= end:
                return octets[at + 1 + length], octets[at + length]
            at += 2 + length
    return 1, 1


def text_of(pdu: Pdu, alphabet: Alphabet) -> str | None:
    """What a person wrote; None for a message that is no text. NUL, which cannot be kept, becomes U+FFFD."""
    body = pdu.body
    if not isinstance(body, ShortMessage | DataMessage):
        return None
    octets = body.short_message if isinstance(body, ShortMessage) else b""
    if not octets:
        octets = (pdu.tlv(Tag.MESSAGE_PAYLOAD) or b"")[:LONGEST_READ]
    header = 1 + octets[0] if body.esm_class & WITH_HEADER and octets else 0
    text = _decoded(octets[header:], body.data_coding, alphabet, header)
    return None if text is None else text.replace("\0", "\ufffd")


def _decoded(octets: bytes, coding: int, alphabet: Alphabet, header: int) -> str | None:
    if coding & 0xF0 == 0xF0:  # with a class
        coding = GSM7 if coding & 0x04 == 0 else 0x04
    if coding == GSM7:
        return gsm7.decode(gsm7.unpack(octets, header) if alphabet == "gsm7_packed" else octets)
    if coding in (_ASCII, LATIN1):
        return octets.decode("latin-1")
    if coding == UCS2:
        return octets.decode("utf-16-be", "replace")
    return None
