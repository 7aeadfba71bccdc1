"""The policy of an example channel, which differs from chat-app in all that a channel can differ by.

Its recipients are e-mail addresses; it sends through a route of two gateways instead of numbers; a message costs by its
pages of 80 characters, and its links are tracked; it knows no `sending` and no `archived`; and a page of which nothing
is heard within its `patience` is `undelivered`. An urgent page is the same, sent while its caller waits.
"""

from dataclasses import replace
from datetime import timedelta
from typing import Final

from recado.domain.channels.address import AddressKind
from recado.domain.channels.policy import AfterSent, Policy, SenderKind
from recado.domain.core.machine import Machine
from recado.domain.dispatch import gates
from recado.domain.dispatch.gates import GateTable
from recado.domain.messages.message import Cause, GenericStatus, MessageEvent, MessageStatus, Priority, Report

PAGER: Final = "pager"
URGENT: Final = "urgent_pager"
PAGE: Final = 80  # characters
ROUTE: Final = "city"
PRICE_KIND: Final = "email"
UNHEARD: Final = Cause("indeterminate", "the carrier said nothing", certain=False)

_S, _E = MessageStatus, MessageEvent

PAGES: Final = Policy(
    channel=PAGER,
    sender=SenderKind.ROUTE,
    addresses=(AddressKind.EMAIL,),
    scope="messages:send",
    machine=Machine(
        "page",
        {
            (_S.QUEUED, _E.CLAIM): _S.QUEUED,
            (_S.QUEUED, _E.RETURN_TO_QUEUE): _S.QUEUED,
            (_S.QUEUED, _E.EXPIRED): _S.FAILED,
            (_S.QUEUED, _E.OPTED_OUT): _S.FAILED,
            (_S.QUEUED, _E.SET_ASIDE): _S.FAILED,
            (_S.QUEUED, _E.WITHDRAWN): _S.FAILED,
            (_S.QUEUED, _E.REFUSED): _S.FAILED,
            (_S.QUEUED, _E.UNANSWERED): _S.QUEUED,
            (_S.QUEUED, _E.OUTCOME_UNKNOWN): _S.FAILED,
            (_S.QUEUED, _E.ACCEPTED): _S.SENT,
            (_S.QUEUED, _E.REPORT_SENT): _S.SENT,
            (_S.SENT, _E.REPORT_DELIVERED): _S.DELIVERED,
            (_S.SENT, _E.REPORT_FAILED): _S.FAILED,
            (_S.SENT, _E.OVERDUE): _S.UNDELIVERED,
            (_S.UNDELIVERED, _E.LATE_DELIVERED): _S.DELIVERED,
        },
        initial={"accepted": _S.QUEUED},
    ),
    reports={
        (_S.QUEUED, Report.DELIVERED): (_E.REPORT_SENT, _E.REPORT_DELIVERED),
        (_S.QUEUED, Report.FAILED): (_E.REPORT_SENT, _E.REPORT_FAILED),
        (_S.SENT, Report.DELIVERED): (_E.REPORT_DELIVERED,),
        (_S.SENT, Report.FAILED): (_E.REPORT_FAILED,),
        (_S.UNDELIVERED, Report.DELIVERED): (_E.LATE_DELIVERED,),
    },
    late_reports={},
    gates=GateTable(
        gates.ORGANIZATION_SUSPENDED,
        gates.OWNER_PAUSED,
        gates.QUIET_HOURS,
        gates.SLOWED_DOWN,
        gates.NO_CONNECTION,
        gates.RATE,
    ),
    needs_window=lambda kind: False,
    subject_to_consent=lambda category: True,
    obeys_quiet_hours=lambda kind, category, priority: priority is Priority.BULK,
    ttl=lambda category, priority: timedelta(hours=1),
    price_kind=lambda category, byo: PRICE_KIND,
    unanswered=UNHEARD,
    refusals=frozenset({"battery_empty"}),
    events={_S.DELIVERED: "message.delivered", _S.FAILED: "message.failed", _S.UNDELIVERED: "message.failed"},
    received="message.received",
    clicked="email.clicked",
    opens_window=False,
    answers_opt_outs=False,
    nobody_there=frozenset(),
    shown={_S.UNDELIVERED: GenericStatus.FAILED},
    after_sent={
        "silence": AfterSent(
            delay=lambda details: timedelta(seconds=details["patience"]), event=_E.OVERDUE, cause=UNHEARD
        )
    },
)
URGENT_PAGES: Final = replace(PAGES, channel=URGENT, direct=True, after_sent={})
