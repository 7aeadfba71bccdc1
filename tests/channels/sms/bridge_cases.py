"""What a bridge of SMS does and tells, besides what those of any channel do."""

from datetime import UTC, datetime
from typing import Any

from tests.channels.behaviours import says
from tests.channels.chatapp.bridge_sends import PLAIN, TAKEN
from tests.channels.conformance.tried import Outgoing, http_sends

from recado.channels.core.events import Event, Inbound, Status
from recado.channels.core.provider import Refused

AT = datetime(2026, 11, 20, 9, 0, 0, 250_000, tzinfo=UTC)
TIME = "2026-11-20T09:00:00.250Z"
RECEIPT = {
    "id": "r-1",
    "type": "api_message",
    "to": "+5511987654321",
    "status": "DELIVRD",
    "bill_factor": 1.5,
    "account_id": 7,
    "channel": None,
}

SENDS = [
    *http_sends(TAKEN, PLAIN),
    Outgoing("refuses the number", says(400, '{"code": "invalid_number"}'), Refused("invalid_number", f"{PLAIN} 400")),
    Outgoing("lets nothing through", says(422, '{"code": "blacklisted"}'), Refused("blacklisted", f"{PLAIN} 422")),
    Outgoing("refuses for its own reason", says(400, '{"code": "E-7"}'), Refused("provider_error", f"{PLAIN} 400")),
]

INCOMING: list[tuple[dict[str, Any], Event]] = [
    (
        {"kind": "status", "status": "failed", "at": TIME, "reference": "msg_1", "code": "carrier_rejected"},
        Status("failed", AT, None, "msg_1", "carrier_rejected"),
    ),
    (
        {"kind": "status", "status": "delivered", "at": TIME, "providerMessageId": "p", "receipt": RECEIPT},
        Status("delivered", AT, "p", receipt=RECEIPT),
    ),
    (
        {
            "kind": "status",
            "status": "delivered",
            "at": TIME,
            "providerMessageId": "p",
            "receipt": {"id": "", "type": "other", "bill_factor": True, "account_id": 1e300, "channel": 1, "more": 1},
        },
        Status("delivered", AT, "p", receipt={}),
    ),
    (
        {"kind": "status", "status": "delivered", "at": TIME, "providerMessageId": "p", "receipt": "odd"},
        Status("delivered", AT, "p", receipt={}),
    ),
    (
        {
            "kind": "inbound",
            "account": "28282",
            "from": "+5511987654321",
            "at": TIME,
            "type": "text",
            "payload": {"text": {"body": "SAIR"}},
            "providerMessageId": "in-1",
        },
        Inbound("28282", "+5511987654321", AT, "text", {"text": {"body": "SAIR"}}, "in-1"),
    ),
]
