"""What a bridge of RCS does and tells, besides what those of any channel do."""

from datetime import UTC, datetime
from typing import Any

from tests.channels.behaviours import says
from tests.channels.chatapp.bridge_sends import PLAIN, TAKEN
from tests.channels.conformance.tried import Outgoing, http_sends

from recado.channels.core.events import Event, Inbound, Status
from recado.channels.core.provider import Account, OutboundMessage, Outcome, Refused
from recado.channels.rcs.bridge import RcsBridge

AT = datetime(2026, 11, 20, 9, 0, 0, 250_000, tzinfo=UTC)
TIME = "2026-11-20T09:00:00.250Z"


class Told(RcsBridge):
    """It has been told that the phone has RCS: what is tried is the send alone."""

    async def send(self, message: OutboundMessage, account: Account, attempt: int) -> Outcome:
        self.capabilities.note(message.to, True, self._clock.now())
        return await super().send(message, account, attempt)


SENDS = [
    *http_sends(TAKEN, PLAIN),
    Outgoing("has no RCS", says(400, '{"code": "not_rcs_capable"}'), Refused("not_rcs_capable", f"{PLAIN} 400")),
    Outgoing(
        "wants no such card", says(422, '{"code": "content_rejected"}'), Refused("content_rejected", f"{PLAIN} 422")
    ),
    Outgoing("refuses for its own reason", says(400, '{"code": "E-7"}'), Refused("provider_error", f"{PLAIN} 400")),
]

INCOMING: list[tuple[dict[str, Any], Event]] = [
    (
        {"kind": "status", "status": "failed", "at": TIME, "reference": "msg_1", "code": "carrier_rejected"},
        Status("failed", AT, None, "msg_1", "carrier_rejected"),
    ),
    (
        {"kind": "status", "status": "read", "at": TIME, "providerMessageId": "p"},
        Status("read", AT, "p"),
    ),
    (
        {
            "kind": "inbound",
            "account": "bridge",
            "from": "+5511987654321",
            "at": TIME,
            "type": "text",
            "payload": {"text": {"body": "SAIR"}},
            "providerMessageId": "in-1",
        },
        Inbound("bridge", "+5511987654321", AT, "text", {"text": {"body": "SAIR"}}, "in-1"),
    ),
]
