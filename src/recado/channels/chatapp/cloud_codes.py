"""The hosted API's error codes, and what each of them means for a send and for a report: one table (C29.2). Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from recado.channels.core.provider import ACCOUNT_BLOCKED, Down, Outcome, Refused, Retry, SlowDown, SlowPair
from recado.domain.messages.message import FailureCode

PAIR_WAIT: Final = 6.0
"""Seconds after which the same recipient may be written to again (C14.5, pair)."""

_F = FailureCode


@dataclass(frozen=True, slots=True)
class SlowNumber:
    """The number, its account or the application goes too fast."""


@dataclass(frozen=True, slots=True)
class DelayPair:
    """Too many messages of this number to this recipient."""


@dataclass(frozen=True, slots=True)
class Again:
    """A passing fault at the provider's: this message was refused for now. `code`: of a report that says so."""

    code: FailureCode = _F.PROVIDER_ERROR


@dataclass(frozen=True, slots=True)
class Unavailable:
    """The account is not let in or not in service: nothing of it leaves until somebody repairs it."""

    code: str


@dataclass(frozen=True, slots=True)
class Fail:
    """This message is refused for good."""

    code: FailureCode


Meaning = SlowNumber | DelayPair | Again | Unavailable | Fail

_UNAUTHORIZED = Unavailable("unauthorized")
_FORBIDDEN = Unavailable("forbidden")
_BLOCKED = Unavailable(ACCOUNT_BLOCKED)

MEANINGS: Final[Mapping[int, Meaning]] = {
    # The access token or its permissions.
    0: _UNAUTHORIZED,
    190: _UNAUTHORIZED,
    3: _FORBIDDEN,
    10: _FORBIDDEN,
    **dict.fromkeys(range(200, 300), _FORBIDDEN),
    131005: _FORBIDDEN,
    # The account or the number as a whole.
    33: Unavailable("not_found"),  # the number was deleted
    368: _BLOCKED,
    131031: _BLOCKED,
    131037: Unavailable("name_not_approved"),
    131042: Unavailable("payment_missing"),
    131045: Unavailable("not_registered"),
    133010: Unavailable("not_registered"),
    # Too fast.
    4: SlowNumber(),
    613: SlowNumber(),
    80007: SlowNumber(),
    80008: SlowNumber(),
    130429: SlowNumber(),
    131048: SlowNumber(),  # people blocked or reported the number: it may send fewer for some time
    131057: SlowNumber(),  # the account is in maintenance for some minutes
    131064: SlowNumber(),  # the day's limit of recipients
    131056: DelayPair(),
    # Passing faults.
    1: Again(),
    2: Again(),
    131000: Again(),
    131016: Again(),
    132069: Again(),  # a flow that is throttled for an hour
    133004: Again(),
    135000: Again(),
    132015: Again(_F.TEMPLATE_UNAVAILABLE),  # paused: the news of it, which holds the others back, is on its way
    # The recipient.
    131021: Fail(_F.RECIPIENT_UNREACHABLE),  # the sender itself
    131026: Fail(_F.RECIPIENT_UNREACHABLE),
    131030: Fail(_F.RECIPIENT_UNREACHABLE),  # not on the list of a number on trial
    131062: Fail(_F.RECIPIENT_UNREACHABLE),  # this kind of message needs a phone
    137000: Fail(_F.RECIPIENT_UNREACHABLE),
    131047: Fail(_F.WINDOW_CLOSED),
    131050: Fail(_F.OPTED_OUT),
    # What the provider does not let through.
    130472: Fail(_F.POLICY_BLOCKED),
    130497: Fail(_F.POLICY_BLOCKED),
    131049: Fail(_F.POLICY_BLOCKED),
    # The content.
    132000: Fail(_F.TEMPLATE_VARS),
    132005: Fail(_F.TEMPLATE_VARS),  # too long with its variables filled in
    132008: Fail(_F.TEMPLATE_VARS),
    132012: Fail(_F.TEMPLATE_VARS),
    132018: Fail(_F.TEMPLATE_VARS),
    132001: Fail(_F.TEMPLATE_UNAVAILABLE),
    132007: Fail(_F.TEMPLATE_UNAVAILABLE),
    131063: Fail(_F.TEMPLATE_UNAVAILABLE),  # marketing is switched off here: the number's other messages go on
    132016: Fail(_F.TEMPLATE_UNAVAILABLE),
    132068: Fail(_F.TEMPLATE_UNAVAILABLE),
    131051: Fail(_F.MEDIA_INVALID),
    131052: Fail(_F.MEDIA_INVALID),
    131053: Fail(_F.MEDIA_INVALID),
    100: Fail(_F.PROVIDER_ERROR),
    131008: Fail(_F.PROVIDER_ERROR),
    131009: Fail(_F.PROVIDER_ERROR),
}

_REPORTED: Final[Mapping[type[Meaning], FailureCode]] = {
    SlowNumber: _F.RATE_LIMITED,
    DelayPair: _F.RATE_LIMITED,
    Unavailable: _F.NUMBER_UNAVAILABLE,
}


def outcome_of(meaning: Meaning, text: str, after: float | None) -> Outcome:
    """The outcome of a send that was answered with such an error. `after`: seconds that the provider asked for."""
    match meaning:
        case SlowNumber():
            return SlowDown(after)
        case DelayPair():
            return SlowPair(max(after or 0.0, PAIR_WAIT))
        case Again():
            return Retry(after)
        case Unavailable(code):
            return Down(code)
        case Fail(failure):
            return Refused(failure.value, text)


def reported_code(code: int | None) -> str:
    """The failure code of a report that names this error: the message was taken, so nothing repeats it."""
    meaning = MEANINGS.get(code) if code is not None else None
    if meaning is None:
        return _F.PROVIDER_ERROR.value
    return (meaning.code if isinstance(meaning, Fail | Again) else _REPORTED[type(meaning)]).value
