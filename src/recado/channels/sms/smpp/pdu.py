"""PDUs of SMPP 3.4 as values, and their octets: what a sender (ESME) says to an SMS centre, and hears. Pure.

A kind of PDU has a body, a frozen value whose layout is a table; several kinds share one. Optional parameters (TLVs)
stay as they came, also unknown ones. Reading raises `MalformedPdu` alone.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final, TypeVar

HEADER: Final = struct.Struct(">IIII")
"""Length of the whole, command, status, sequence number."""
HEADER_LENGTH: Final = HEADER.size
RESPONSE: Final = 0x8000_0000
LAST_SEQUENCE: Final = 0x7FFF_FFFF
LONGEST_TEXT: Final = 254  # octets of a `short_message`; longer ones go as a TLV
MOST_TLVS: Final = 100  # of one PDU
_TLV: Final = struct.Struct(">HH")


class Command(IntEnum):
    """The kinds of PDUs."""

    GENERIC_NACK = 0x8000_0000
    BIND_RECEIVER = 0x0000_0001
    BIND_RECEIVER_RESP = 0x8000_0001
    BIND_TRANSMITTER = 0x0000_0002
    BIND_TRANSMITTER_RESP = 0x8000_0002
    SUBMIT_SM = 0x0000_0004
    SUBMIT_SM_RESP = 0x8000_0004
    DELIVER_SM = 0x0000_0005
    DELIVER_SM_RESP = 0x8000_0005
    UNBIND = 0x0000_0006
    UNBIND_RESP = 0x8000_0006
    BIND_TRANSCEIVER = 0x0000_0009
    BIND_TRANSCEIVER_RESP = 0x8000_0009
    ENQUIRE_LINK = 0x0000_0015
    ENQUIRE_LINK_RESP = 0x8000_0015
    DATA_SM = 0x0000_0103
    DATA_SM_RESP = 0x8000_0103


class Tag(IntEnum):
    """The optional parameters that matter here."""

    NETWORK_ERROR_CODE = 0x0423
    MESSAGE_PAYLOAD = 0x0424
    RECEIPTED_MESSAGE_ID = 0x001E
    MESSAGE_STATE = 0x0427


class MalformedPdu(Exception):
    """A PDU that is none. `status`: what its sender is answered; `command`, `sequence`: as its header has them."""

    def __init__(self, text: str, status: int, command: int = 0, sequence: int = 0) -> None:
        super().__init__(text)
        self.status = status
        self.command = command
        self.sequence = sequence


# The values of `CommandStatus` in `statuses.py`: this module knows PDUs alone, and not what a status means.
_BAD_LENGTH: Final = 0x02
_BAD_COMMAND: Final = 0x03
_BAD_TLVS: Final = 0xC0


@dataclass(frozen=True, slots=True)
class Nothing:
    """The body of `enquire_link`, `unbind`, their responses, and `generic_nack`."""


@dataclass(frozen=True, slots=True)
class Bind:
    """Who logs in. `repr` holds no password."""

    system_id: str = ""
    password: str = field(default="", repr=False)
    system_type: str = ""
    interface_version: int = 0x34
    addr_ton: int = 0
    addr_npi: int = 0
    address_range: str = ""


@dataclass(frozen=True, slots=True)
class BindResponse:
    """The answer to a bind."""

    system_id: str = ""


@dataclass(frozen=True, slots=True)
class ShortMessage:
    """The body of `submit_sm` and `deliver_sm`. `repr` holds no address and no text."""

    service_type: str = ""
    source_addr_ton: int = 0
    source_addr_npi: int = 0
    source_addr: str = field(default="", repr=False)
    dest_addr_ton: int = 0
    dest_addr_npi: int = 0
    destination_addr: str = field(default="", repr=False)
    esm_class: int = 0
    protocol_id: int = 0
    priority_flag: int = 0
    schedule_delivery_time: str = ""
    validity_period: str = ""
    registered_delivery: int = 0
    replace_if_present_flag: int = 0
    data_coding: int = 0
    sm_default_msg_id: int = 0
    short_message: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class DataMessage:
    """The body of `data_sm`, whose content is in its TLVs."""

    service_type: str = ""
    source_addr_ton: int = 0
    source_addr_npi: int = 0
    source_addr: str = field(default="", repr=False)
    dest_addr_ton: int = 0
    dest_addr_npi: int = 0
    destination_addr: str = field(default="", repr=False)
    esm_class: int = 0
    registered_delivery: int = 0
    data_coding: int = 0


@dataclass(frozen=True, slots=True)
class Taken:
    """The answer to a message: the id under which it was taken, empty where it was not."""

    message_id: str = ""


Body = Nothing | Bind | BindResponse | ShortMessage | DataMessage | Taken


@dataclass(frozen=True, slots=True, kw_only=True)
class Pdu:
    """One PDU. `tlvs`: tag and value, in their order."""

    command: Command
    status: int = 0
    sequence: int = 1
    body: Body = Nothing()
    tlvs: tuple[tuple[int, bytes], ...] = ()

    @property
    def content_length(self) -> int:
        """Octets of its text and its TLVs."""
        text = self.body.short_message if isinstance(self.body, ShortMessage) else b""
        return len(text) + sum(len(value) for _, value in self.tlvs)

    def tlv(self, tag: Tag) -> bytes | None:
        """The first value under the tag."""
        return next((value for each, value in self.tlvs if each == tag), None)


# Fields ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Field:
    """`write`: its octets, ValueError where it has none; `read`: the value and where it ends, LookupError or ValueError
    where there is none."""

    write: Callable[[Any], bytes]
    read: Callable[[bytes, int], tuple[Any, int]]


def _octet(value: int) -> bytes:
    if not 0 <= value <= 0xFF:
        raise ValueError("it is no octet")
    return bytes((value,))


_BYTE: Final = _Field(_octet, lambda octets, at: (octets[at], at + 1))


def _text(longest: int) -> _Field:
    """A C string of at most `longest` octets, its NUL among them."""

    def write(value: str) -> bytes:
        octets = value.encode("latin-1")
        if len(octets) >= longest or 0 in octets:
            raise ValueError(f"it is longer than {longest - 1} octets, or holds a NUL")
        return octets + b"\0"

    def read(octets: bytes, at: int) -> tuple[str, int]:
        end = octets.index(0, at, at + longest)
        return octets[at:end].decode("latin-1"), end + 1

    return _Field(write, read)


def _write_short(value: bytes) -> bytes:
    if len(value) > LONGEST_TEXT:
        raise ValueError(f"it is longer than {LONGEST_TEXT} octets")
    return bytes((len(value),)) + value


def _read_short(octets: bytes, at: int) -> tuple[bytes, int]:
    end = at + 1 + octets[at]
    if end > len(octets):
        raise ValueError("it ends too early")
    return octets[at + 1 : end], end


_SHORT: Final = _Field(_write_short, _read_short)
_ADDRESS: Final = (_BYTE, _BYTE, _text(21))

_LAYOUTS: Final[Mapping[type[Body], Sequence[_Field]]] = {
    Nothing: (),
    Bind: (_text(16), _text(9), _text(13), _BYTE, _BYTE, _BYTE, _text(41)),
    BindResponse: (_text(16),),
    ShortMessage: (
        _text(6),
        *_ADDRESS,
        *_ADDRESS,
        _BYTE,
        _BYTE,
        _BYTE,
        _text(17),
        _text(17),
        _BYTE,
        _BYTE,
        _BYTE,
        _BYTE,
        _SHORT,
    ),
    DataMessage: (_text(6), _BYTE, _BYTE, _text(65), _BYTE, _BYTE, _text(65), _BYTE, _BYTE, _BYTE),
    Taken: (_text(65),),
}
_NAMES: Final = {body: tuple(body.__dataclass_fields__) for body in _LAYOUTS}

BODIES: Final[Mapping[Command, type[Body]]] = {
    Command.GENERIC_NACK: Nothing,
    Command.BIND_RECEIVER: Bind,
    Command.BIND_RECEIVER_RESP: BindResponse,
    Command.BIND_TRANSMITTER: Bind,
    Command.BIND_TRANSMITTER_RESP: BindResponse,
    Command.SUBMIT_SM: ShortMessage,
    Command.SUBMIT_SM_RESP: Taken,
    Command.DELIVER_SM: ShortMessage,
    Command.DELIVER_SM_RESP: Taken,
    Command.UNBIND: Nothing,
    Command.UNBIND_RESP: Nothing,
    Command.BIND_TRANSCEIVER: Bind,
    Command.BIND_TRANSCEIVER_RESP: BindResponse,
    Command.ENQUIRE_LINK: Nothing,
    Command.ENQUIRE_LINK_RESP: Nothing,
    Command.DATA_SM: DataMessage,
    Command.DATA_SM_RESP: Taken,
}

B = TypeVar("B", bound=Body)


def encode(pdu: Pdu) -> bytes:
    """Its octets; raises ValueError, which quotes no value, for what does not fit."""
    body = body_octets(pdu.body) + tlv_octets(pdu.tlvs)
    return HEADER.pack(HEADER_LENGTH + len(body), pdu.command, pdu.status, pdu.sequence) + body


def body_octets(body: Body) -> bytes:
    """The octets of its mandatory part; raises ValueError, naming the field, for what does not fit."""
    kind = type(body)
    parts = []
    for name, layout in zip(_NAMES[kind], _LAYOUTS[kind], strict=True):
        try:
            parts.append(layout.write(getattr(body, name)))
        except UnicodeEncodeError:
            raise ValueError(f"{name}: it holds a character that has no octet") from None
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return b"".join(parts)


def tlv_octets(tlvs: Sequence[tuple[int, bytes]]) -> bytes:
    """Raises ValueError for a value of more than 65,535 octets."""
    if any(len(value) > 0xFFFF for _, value in tlvs):
        raise ValueError("a TLV is longer than 65,535 octets")
    return b"".join(_TLV.pack(tag, len(value)) + value for tag, value in tlvs)


def decode(octets: bytes) -> Pdu:
    """The PDU of its octets, which are whole; raises `MalformedPdu`.

    A response may have no body, as those of a refusal have none.
    """
    if len(octets) < HEADER_LENGTH:
        raise MalformedPdu("it is shorter than a header", _BAD_LENGTH)
    length, command_id, status, sequence = HEADER.unpack_from(octets)
    if length != len(octets):
        raise MalformedPdu("its length is wrong", _BAD_LENGTH, command_id, sequence)
    try:
        command = Command(command_id)
    except ValueError:
        raise MalformedPdu("its command is unknown", _BAD_COMMAND, command_id, sequence) from None
    kind = BODIES[command]
    if length == HEADER_LENGTH and command & RESPONSE:
        return Pdu(command=command, status=status, sequence=sequence, body=kind())
    at = HEADER_LENGTH
    values = []
    try:
        for layout in _LAYOUTS[kind]:
            value, at = layout.read(octets, at)
            values.append(value)
    except (LookupError, ValueError):
        field_name = _NAMES[kind][len(values)]
        raise MalformedPdu(f"its {field_name} is wrong", _BAD_LENGTH, command_id, sequence) from None
    return Pdu(
        command=command,
        status=status,
        sequence=sequence,
        body=kind(*values),
        tlvs=_read_tlvs(octets, at, command_id, sequence) if at < length else (),
    )


def _read_tlvs(octets: bytes, at: int, command: int, sequence: int) -> tuple[tuple[int, bytes], ...]:
    tlvs: list[tuple[int, bytes]] = []
    while at < len(octets):
        if len(tlvs) == MOST_TLVS:
            raise MalformedPdu("it has too many TLVs", _BAD_TLVS, command, sequence)
        start = at + _TLV.size
        if start > len(octets):
            raise MalformedPdu("a TLV is cut short", _BAD_TLVS, command, sequence)
        tag, length = _TLV.unpack_from(octets, at)
        at = start + length
        if at > len(octets):
            raise MalformedPdu("a TLV is cut short", _BAD_TLVS, command, sequence)
        tlvs.append((tag, octets[start:at]))
    return tuple(tlvs)
