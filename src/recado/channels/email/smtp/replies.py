"""What a server's reply means: to outcomes, by the step it answers (RFC 5321, RFC 3463; C10.2.13, C29.2). Pure."""

import re
from collections.abc import Mapping, Sequence
from enum import Enum, auto
from typing import Final, NamedTuple

from recado.channels.core.provider import Down, Outcome, Refused, Retry, SlowDown
from recado.channels.core.refusals import bounded_text
from recado.domain.channels.email import EmailReason

CLOSING: Final = 421
_ENHANCED = re.compile(r"\s*([245]\.\d{1,3}\.\d{1,3})\b")


class Step(Enum):
    """What a server answers."""

    OPENING = auto()  # its greeting, EHLO, STARTTLS
    LOGIN = auto()
    SENDER = auto()  # MAIL
    RECIPIENT = auto()  # RCPT
    DATA = auto()  # before the content
    CONTENT = auto()  # after its final dot


class SmtpReply(NamedTuple):
    """A code of three digits, and the text of its lines."""

    code: int
    text: str

    @property
    def enhanced(self) -> str | None:
        """Its status by RFC 3463, such as `5.1.1`, where it begins with one."""
        found = _ENHANCED.match(self.text)
        return None if found is None else found[1]


_BY_STATUS: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("5.1.0", "5.1.1", "5.1.2", "5.1.3", "5.1.6", "5.1.10", "5.2.0", "5.2.1", "5.4.1", "5.4.4"),
        EmailReason.INVALID_ADDRESS,
    ),
    **dict.fromkeys(
        ("5.2.3", "5.3.4", "5.6.0", "5.6.1", "5.6.2", "5.6.3", "5.6.5", "5.6.6", "5.7.3", "5.7.7"),
        EmailReason.CONTENT_REJECTED,
    ),
}
"""Refusals for good whose status says enough, whatever is refused."""
_OF_RECIPIENT: Final[Mapping[int, str]] = dict.fromkeys((550, 551, 553), EmailReason.INVALID_ADDRESS)
_OF_CONTENT: Final[Mapping[int, str]] = dict.fromkeys((550, 552, 554, 571), EmailReason.CONTENT_REJECTED)
_BY_CODE: Final[Mapping[Step, Mapping[int, str]]] = {
    Step.RECIPIENT: _OF_RECIPIENT,
    Step.DATA: _OF_CONTENT,
    Step.CONTENT: _OF_CONTENT,
}
"""Refusals for good without a status that says it. Of the sender, and whatever is in no table: `provider_error`."""
_POLICY: Final = "5.7."  # of content it says that the content is not wanted; of a recipient, that we are not

_TOO_FAST: Final = frozenset({"4.3.1", "4.3.2", "4.4.5", "4.7.28"})
_HOST_OF_MAILBOX: Final = "4.3.2"
"""The host of the mailbox takes nothing now (RFC 3463), as servers say that have strangers come twice. Said of a
recipient, it is that one's host: others go on."""
_NOT_LET_IN: Final = frozenset({454, 530, 534, 535, 538})


def refused(reply: SmtpReply, step: Step, personal: Sequence[str] = ()) -> Outcome:
    """The outcome of a send of which the server did not take a step. `personal`: what must not be in its text."""
    code, status = reply.code, reply.enhanced
    if step is Step.LOGIN or (code in _NOT_LET_IN and step is not Step.CONTENT):
        return SlowDown() if code == CLOSING else Down("unauthorized" if code != 454 else "connect_failed")
    if step is Step.OPENING:
        too_fast = 400 <= code < 500 and (code != CLOSING or (status or "").startswith("4.7."))
        return SlowDown() if too_fast else Down("forbidden" if code >= 500 else "unavailable")
    of_recipient = step is Step.RECIPIENT and status == _HOST_OF_MAILBOX
    if code == CLOSING or (status in _TOO_FAST and not of_recipient):
        return SlowDown()
    if 400 <= code < 500:
        return Retry()
    if not 500 <= code < 600:  # no reply that this step has
        return Down("protocol")
    return Refused(_code_of(code, status, step), bounded_text(f"{code} {reply.text}", personal))


def _code_of(code: int, status: str | None, step: Step) -> str:
    if step is Step.SENDER:
        return EmailReason.CONTENT_REJECTED if status == "5.3.4" else EmailReason.PROVIDER_ERROR
    if status is not None and (found := _BY_STATUS.get(status)) is not None:
        return found
    if status is not None and status.startswith(_POLICY):
        return EmailReason.PROVIDER_ERROR if step is Step.RECIPIENT else EmailReason.CONTENT_REJECTED
    if status is not None and status != "5.0.0":
        return EmailReason.PROVIDER_ERROR
    return _BY_CODE[step].get(code, EmailReason.PROVIDER_ERROR)
