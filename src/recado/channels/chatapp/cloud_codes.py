"""The hosted API's error codes, and what each of them means for a send and for a report: one table (C29.2). Pure."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from recado.channels.core.provider import ACCOUNT_BLOCKED, Down, Outcome, Refused, Retry, SlowDown, SlowPair
from recado.domain.messages.message import FailureCode

PAIR_WAIT: Final = 6.0
"""Seconds after which the same recipient may be written to again (C14.5, pair)."""

_F = FailureCode
_PAUSED = 132015  # the template
_UNAUTHORIZED, _FORBIDDEN, _BLOCKED = Down("unauthorized"), Down("forbidden"), Down(ACCOUNT_BLOCKED)


def _fail(code: FailureCode) -> Refused:
    return Refused(code.value, "")


MEANINGS: Final[Mapping[int, Outcome]] = {
    # The access token or its permissions.
    0: _UNAUTHORIZED,
    190: _UNAUTHORIZED,
    3: _FORBIDDEN,
    10: _FORBIDDEN,
    **dict.fromkeys(range(200, 300), _FORBIDDEN),
    131005: _FORBIDDEN,
    # The account or the number as a whole.
    33: Down("not_found"),  # the number was deleted
    368: _BLOCKED,
    131031: _BLOCKED,
    131037: Down("name_not_approved"),
    131042: Down("payment_missing"),
    131045: Down("not_registered"),
    133010: Down("not_registered"),
    # Too fast.
    4: SlowDown(),
    613: SlowDown(),
    80007: SlowDown(),
    80008: SlowDown(),
    130429: SlowDown(),
    131048: SlowDown(),  # people blocked or reported the number: it may send fewer for some time
    131057: SlowDown(),  # the account is in maintenance for some minutes
    131064: SlowDown(),  # the day's limit of recipients
    131056: SlowPair(PAIR_WAIT),
    # Passing faults.
    1: Retry(),
    2: Retry(),
    131000: Retry(),
    131016: Retry(),
    132069: Retry(),  # a flow that is throttled for an hour
    133004: Retry(),
    135000: Retry(),
    _PAUSED: Retry(),  # paused: the news of it, which holds the others back, is on its way
    # The recipient.
    131021: _fail(_F.RECIPIENT_UNREACHABLE),  # the sender itself
    131026: _fail(_F.RECIPIENT_UNREACHABLE),
    131030: _fail(_F.RECIPIENT_UNREACHABLE),  # not on the list of a number on trial
    131062: _fail(_F.RECIPIENT_UNREACHABLE),  # this kind of message needs a phone
    137000: _fail(_F.RECIPIENT_UNREACHABLE),
    131047: _fail(_F.WINDOW_CLOSED),
    131050: _fail(_F.OPTED_OUT),
    # What the provider does not let through.
    130472: _fail(_F.POLICY_BLOCKED),
    130497: _fail(_F.POLICY_BLOCKED),
    131049: _fail(_F.POLICY_BLOCKED),
    # The content.
    132000: _fail(_F.TEMPLATE_VARS),
    132005: _fail(_F.TEMPLATE_VARS),  # too long with its variables filled in
    132008: _fail(_F.TEMPLATE_VARS),
    132012: _fail(_F.TEMPLATE_VARS),
    132018: _fail(_F.TEMPLATE_VARS),
    132001: _fail(_F.TEMPLATE_UNAVAILABLE),
    132007: _fail(_F.TEMPLATE_UNAVAILABLE),
    131063: _fail(_F.TEMPLATE_UNAVAILABLE),  # marketing is switched off here: the number's other messages go on
    132016: _fail(_F.TEMPLATE_UNAVAILABLE),
    132068: _fail(_F.TEMPLATE_UNAVAILABLE),
    131051: _fail(_F.MEDIA_INVALID),
    131052: _fail(_F.MEDIA_INVALID),
    131053: _fail(_F.MEDIA_INVALID),
    100: _fail(_F.PROVIDER_ERROR),
    131008: _fail(_F.PROVIDER_ERROR),
    131009: _fail(_F.PROVIDER_ERROR),
}


def outcome_of(meaning: Outcome, text: str, after: float | None) -> Outcome:
    """The outcome of a send that was answered with such an error. `after`: seconds that the provider asked for."""
    match meaning:
        case Refused():
            return replace(meaning, text=text)
        case SlowPair():
            return SlowPair(max(after or 0.0, PAIR_WAIT))
        case SlowDown() | Retry():
            return replace(meaning, after=after)
    return meaning


def reported_code(code: int | None) -> str:
    """The failure code of a report that names this error: the message was taken, so nothing repeats it."""
    match MEANINGS.get(code) if code is not None else None:
        case Refused(failure):
            return failure
        case SlowDown() | SlowPair():
            return _F.RATE_LIMITED.value
        case Down():
            return _F.NUMBER_UNAVAILABLE.value
    return (_F.TEMPLATE_UNAVAILABLE if code == _PAUSED else _F.PROVIDER_ERROR).value
