"""A channel of the tests: letters, which differ from chat-app messages in their states and in how these show.

Being sent shows as queued; what is not delivered is `undelivered`, and what nobody wanted `complained`; one that is
withdrawn has failed. A letter of which nothing is heard in three days is undelivered, perhaps: until then the rest of
its price stays held. Enter it with `monkeypatch.setitem(POLICIES, POST, LETTERS)`.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from recado.domain.channels import chatapp
from recado.domain.channels.policy import AfterSent
from recado.domain.core.machine import Machine
from recado.domain.messages.message import Cause, GenericStatus, MessageEvent, MessageStatus, Report

POST: Final = "post"
REPORT, RECEIPT = "report", "receipt"
UNHEARD: Final = Cause("indeterminate", "nothing was heard of it", certain=False)

_S, _E, _R = MessageStatus, MessageEvent, Report


def _delay(details: Mapping[str, Any]) -> timedelta | None:
    return None if details.get("unreported") else timedelta(hours=details.get("hours", 72))


def _receipt_delay(details: Mapping[str, Any]) -> timedelta | None:
    return timedelta(hours=1) if details.get("receipt") else None


LETTERS: Final = replace(
    chatapp.POLICY,
    channel=POST,
    machine=Machine(
        "letter",
        {
            (_S.QUEUED, _E.CLAIM): _S.SENDING,
            (_S.QUEUED, _E.EXPIRED): _S.FAILED,
            (_S.QUEUED, _E.OPTED_OUT): _S.FAILED,
            (_S.QUEUED, _E.WITHDRAWN): _S.FAILED,
            (_S.SENDING, _E.ACCEPTED): _S.SENT,
            (_S.SENDING, _E.REPORT_SENT): _S.SENT,
            (_S.SENDING, _E.RETURN_TO_QUEUE): _S.QUEUED,
            (_S.SENDING, _E.REFUSED): _S.FAILED,
            (_S.SENT, _E.REPORT_DELIVERED): _S.DELIVERED,
            (_S.SENT, _E.REPORT_FAILED): _S.UNDELIVERED,
            (_S.SENT, _E.OVERDUE): _S.UNDELIVERED,
            (_S.DELIVERED, _E.REPORT_READ): _S.COMPLAINED,
            (_S.UNDELIVERED, _E.LATE_DELIVERED): _S.DELIVERED,
        },
        initial={"accepted": _S.QUEUED, "inbound": _S.DELIVERED},
    ),
    reports={
        (_S.SENDING, _R.SENT): (_E.REPORT_SENT,),
        (_S.SENDING, _R.DELIVERED): (_E.REPORT_SENT, _E.REPORT_DELIVERED),
        (_S.SENDING, _R.FAILED): (_E.REPORT_SENT, _E.REPORT_FAILED),
        (_S.SENT, _R.DELIVERED): (_E.REPORT_DELIVERED,),
        (_S.SENT, _R.FAILED): (_E.REPORT_FAILED,),
        (_S.DELIVERED, _R.READ): (_E.REPORT_READ,),
    },
    late_reports={(_S.UNDELIVERED, _R.DELIVERED): (_E.LATE_DELIVERED,)},
    events={_S.DELIVERED: "sms.delivered", _S.FAILED: "sms.failed", _S.UNDELIVERED: "sms.undelivered"},
    shown={
        _S.SENDING: GenericStatus.QUEUED,
        _S.UNDELIVERED: GenericStatus.FAILED,
        _S.COMPLAINED: GenericStatus.DELIVERED,
    },
    after_sent={
        REPORT: AfterSent(delay=_delay, event=_E.OVERDUE, cause=UNHEARD, holds_rest=True),
        RECEIPT: AfterSent(delay=_receipt_delay),
    },
)
"""A receipt is due by a handler of the channel's own."""
