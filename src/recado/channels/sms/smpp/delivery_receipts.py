"""Delivery receipts, as SMS centres send them: a text of fields, or TLVs, or both (SMPP 3.4, appendix B). Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from recado.channels.core.events import ReportStatus
from recado.channels.sms.smpp.pdu import DataMessage, Pdu, ShortMessage, Tag
from recado.channels.sms.smpp.texts import UCS2
from recado.domain.channels.sms import SmsReason

MessageIds = Literal["text", "hex", "hex_decimal", "decimal_hex"]
"""How ids of messages are written in answers and in receipts: the same text, both in hexadecimal digits, or one in
hexadecimal and the other in decimal digits, that of answers named first."""

_TYPE: Final = 0x3C  # of `esm_class`
_RECEIPTS: Final = frozenset({0x04, 0x20})  # of an SMS centre: final, or on the way
_LONGEST: Final = 1_024  # octets of a text that are looked at
_FIELD: Final = re.compile(r"\b(id|stat|err):\s*([^\s]{1,255})", re.IGNORECASE)
_LONGEST_ID: Final = 255  # characters
_GSM: Final = 3  # of the first octet of a network's error code
_UNKNOWN_SUBSCRIBER: Final = 1

_DELIVERED: Final = ("delivered", None)
_UNDERWAY: Final = ("sent", None)
_EXPIRED: Final = ("failed", SmsReason.EXPIRED)
_NOT_DELIVERED: Final = ("failed", SmsReason.CARRIER_REJECTED)
_MEANINGS: Final[Mapping[str, tuple[ReportStatus, str | None]]] = {
    "ENROUTE": _UNDERWAY,
    "DELIVRD": _DELIVERED,
    "EXPIRED": _EXPIRED,
    "DELETED": _NOT_DELIVERED,
    "UNDELIV": _NOT_DELIVERED,
    "ACCEPTD": _UNDERWAY,
    "REJECTD": _NOT_DELIVERED,
}
"""`UNKNOWN`, and what some say besides, is not among them: it says nothing of the message, and something may follow."""
_STATES: Final = {
    1: "ENROUTE", 2: "DELIVRD", 3: "EXPIRED", 4: "DELETED", 5: "UNDELIV", 6: "ACCEPTD", 7: "UNKNOWN", 8: "REJECTD",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class DeliveryReceipt:
    """`message_id`: as in `canonical_id`; `status` None: nothing that a message could be moved by; `code`: of a
    failure; `told`: the receipt as the SMS centre gave it, in the fields of `providerReceipt` (C16.1)."""

    message_id: str
    status: ReportStatus | None
    code: str | None = None
    told: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)


def is_receipt(pdu: Pdu) -> bool:
    """Whether it is one, and not a message of a person."""
    body = pdu.body
    if not isinstance(body, ShortMessage | DataMessage):
        return False
    return body.esm_class & _TYPE in _RECEIPTS or pdu.tlv(Tag.RECEIPTED_MESSAGE_ID) is not None


def read_receipt(pdu: Pdu, ids: MessageIds) -> DeliveryReceipt | None:
    """What a receipt tells; None where it names no message. TLVs are believed before the text."""
    body = pdu.body
    if not isinstance(body, ShortMessage | DataMessage):
        return None
    text = body.short_message if isinstance(body, ShortMessage) else b""
    text = (text or pdu.tlv(Tag.MESSAGE_PAYLOAD) or b"")[:_LONGEST]
    # Some write the receipt in the coding of the message that it is of; others only say so.
    wide = body.data_coding == UCS2 and text[:1] == b"\0"
    fields: dict[str, str] = {}
    for name, value in _FIELD.findall(text.decode("utf-16-be", "replace") if wide else text.decode("latin-1")):
        fields.setdefault(name.lower(), value)  # what follows `text:` is a person's
    named = pdu.tlv(Tag.RECEIPTED_MESSAGE_ID)
    given_id = fields.get("id", "") if named is None else named.rstrip(b"\0").decode("latin-1")
    message_id = canonical_id(given_id, ids, receipt=True)
    if not message_id or len(message_id) > _LONGEST_ID or "\0" in message_id:
        return None
    state = pdu.tlv(Tag.MESSAGE_STATE) or b""
    word = _STATES.get(state[0], "") if state else fields.get("stat", "").upper()[:7]
    status, code = _MEANINGS.get(word, (None, None))
    if status == "failed" and _no_such_number(pdu.tlv(Tag.NETWORK_ERROR_CODE) or b""):
        code = SmsReason.INVALID_NUMBER
    told = {"id": given_id, "status": word}
    if body.source_addr:
        told["to"] = body.source_addr
    if "err" in fields:
        told["statusDescription"] = f"err:{fields['err']}"
    return DeliveryReceipt(message_id, status, code, told)


def canonical_id(message_id: str, ids: MessageIds, *, receipt: bool) -> str:
    """An id so that the one of an answer equals the one of a receipt: in decimal digits, unless it is a text."""
    match ids:
        case "text":
            return message_id
        case "hex":
            base = 16
        case "hex_decimal":
            base = 10 if receipt else 16
        case "decimal_hex":
            base = 16 if receipt else 10
    digits = message_id.strip()
    if not digits.isascii() or not digits.isalnum() or len(digits) > 64:
        return message_id
    try:
        return str(int(digits, base))
    except ValueError:
        return message_id


def _no_such_number(error: bytes) -> bool:
    """Unknown subscriber, in the words of GSM networks. What stands after `err:` each SMS centre has its own way."""
    return len(error) == 3 and error[0] == _GSM and int.from_bytes(error[1:], "big") == _UNKNOWN_SUBSCRIBER
