"""What the status of a PDU means: to outcomes of sends and of binds (C29.2). Pure."""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from recado.channels.core.provider import Down, Outcome, Refused, Retry, SlowDown, Unknown
from recado.domain.channels.sms import SmsReason
from recado.domain.messages.message import FailureCode


class CommandStatus(IntEnum):
    """Those that mean something here, of `command_status`."""

    OK = 0x00
    INVALID_COMMAND_LENGTH = 0x02
    INVALID_COMMAND = 0x03
    WRONG_BIND_STATE = 0x04
    ALREADY_BOUND = 0x05
    SYSTEM_ERROR = 0x08
    INVALID_DESTINATION = 0x0B
    BIND_FAILED = 0x0D
    INVALID_PASSWORD = 0x0E
    INVALID_SYSTEM_ID = 0x0F
    QUEUE_FULL = 0x14
    SUBMIT_FAILED = 0x45
    INVALID_DESTINATION_TON = 0x50
    INVALID_DESTINATION_NPI = 0x51
    THROTTLED = 0x58
    TEMPORARY_ERROR = 0x64
    PERMANENT_ERROR = 0x65
    REJECTED = 0x66
    INVALID_OPTIONAL_PART = 0xC0
    DELIVERY_FAILURE = 0xFE
    UNKNOWN_ERROR = 0xFF


_TOO_FAST: Final = frozenset({CommandStatus.THROTTLED, CommandStatus.QUEUE_FULL})
_FOR_NOW: Final = frozenset({CommandStatus.SYSTEM_ERROR, CommandStatus.SUBMIT_FAILED, CommandStatus.TEMPORARY_ERROR})
NOT_BOUND: Final = frozenset(
    {CommandStatus.WRONG_BIND_STATE, CommandStatus.INVALID_SYSTEM_ID, CommandStatus.INVALID_PASSWORD}
)
"""To the SMS centre nobody is bound on that connection, whatever it said before."""
_IN_DOUBT: Final = frozenset({CommandStatus.UNKNOWN_ERROR})
_REFUSALS: Final[Mapping[int, str]] = {
    CommandStatus.INVALID_DESTINATION: SmsReason.INVALID_NUMBER,
    CommandStatus.INVALID_DESTINATION_TON: SmsReason.INVALID_NUMBER,
    CommandStatus.INVALID_DESTINATION_NPI: SmsReason.INVALID_NUMBER,
    CommandStatus.PERMANENT_ERROR: SmsReason.CARRIER_REJECTED,
    CommandStatus.REJECTED: SmsReason.CARRIER_REJECTED,
    CommandStatus.DELIVERY_FAILURE: SmsReason.CARRIER_REJECTED,
}
"""Whatever is in none of these tables is `provider_error`: mostly a field that this SMS centre wants otherwise."""

_BINDS: Final[Mapping[int, str]] = {
    CommandStatus.BIND_FAILED: "unauthorized",
    CommandStatus.INVALID_PASSWORD: "unauthorized",
    CommandStatus.INVALID_SYSTEM_ID: "unauthorized",
    CommandStatus.ALREADY_BOUND: "already_bound",
}


def outcome_of(status: int) -> Outcome:
    """The outcome of a submit that was answered with this status, which is not OK."""
    if status in _TOO_FAST:
        return SlowDown()
    if status in _FOR_NOW:
        return Retry()
    if status in NOT_BOUND:
        return Down("not_bound")
    if status in _IN_DOUBT:
        return Unknown()
    return Refused(
        _REFUSALS.get(status, FailureCode.PROVIDER_ERROR), f"the SMS centre answered with status 0x{status:08X}"
    )


def bind_failure(status: int) -> str:
    """The code of a `Down` for a bind that was refused with this status."""
    return _BINDS.get(status, "bind_refused")
