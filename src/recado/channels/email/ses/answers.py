"""What SES answers to a send, and what becomes of one that it did not answer: to outcomes (C29.2). Pure."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from recado.channels.core.provider import ACCOUNT_BLOCKED, Down, Outcome, Refused, SlowDown, Unknown
from recado.channels.core.refusals import bounded_text
from recado.domain.channels.email import EmailReason

_LARGE: Final = 413


def _of_message(text: str) -> EmailReason:
    """SES refuses a sender that it does not know by the same code as what is in a message."""
    return EmailReason.PROVIDER_ERROR if "not verified" in text else EmailReason.CONTENT_REJECTED


def _of_request(text: str) -> EmailReason:
    told = text.lower()
    return EmailReason.INVALID_ADDRESS if "address" in told or "domain" in told else EmailReason.PROVIDER_ERROR


_TOO_FAST: Final = frozenset(
    {
        "TooManyRequestsException", "LimitExceededException", "Throttling", "ThrottlingException",
        "RequestLimitExceeded", "RequestThrottled", "SlowDown",
    }
)  # fmt: skip
_DOWN: Final[Mapping[str, str]] = {
    "AccountSuspendedException": ACCOUNT_BLOCKED,
    "SendingPausedException": ACCOUNT_BLOCKED,
    "NotFoundException": "not_found",
}
_BY_STATUS: Final[Mapping[int, str]] = {401: "unauthorized", 403: "unauthorized", 404: "not_found", 405: "not_found"}
_NOT_ALLOWED: Final = "AccessDeniedException"
_OF_IDENTITY: Final = re.compile(r":identity/", re.IGNORECASE)
_REFUSALS: Final[Mapping[str, Callable[[str], EmailReason]]] = {
    "MessageRejected": _of_message,
    "BadRequestException": _of_request,
}


def outcome_of(code: str, status: int, text: str, personal: Sequence[str]) -> Outcome:
    """Of an error that SES answered with. `personal`: what must not be in a refusal's text."""
    if code in _TOO_FAST or status in (429, 503):
        return SlowDown()
    if code == _NOT_ALLOWED and _OF_IDENTITY.search(text):
        # Of who sends as that identity, not of the account. The text names the credentials, which are not theirs.
        return Refused(EmailReason.PROVIDER_ERROR, f"{code} of the identity")
    if (down := _DOWN.get(code) or _BY_STATUS.get(status)) is not None:
        return Down(down)
    if not 400 <= status < 500 or status == 408:
        return Unknown()
    read = _REFUSALS.get(code)
    meaning = EmailReason.PROVIDER_ERROR if read is None else read(text)
    if status == _LARGE:
        meaning = EmailReason.CONTENT_REJECTED
    return Refused(meaning, bounded_text(f"{code} {text}", personal))
