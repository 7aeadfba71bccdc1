"""What a bridge of e-mail does and tells, besides what those of any channel do."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from tests.channels.behaviours import says
from tests.channels.chatapp.bridge_sends import PLAIN, TAKEN
from tests.channels.conformance.tried import Outgoing, http_sends

from recado.channels.core.events import Event, Status
from recado.channels.core.provider import Account, OutboundMessage, Outcome, Refused
from recado.channels.email.bridge import EmailBridge
from recado.domain.email.content import EmailContent

AT = datetime(2026, 11, 20, 9, 0, 0, 250_000, tzinfo=UTC)
TIME = "2026-11-20T09:00:00.250Z"
CONTENT = EmailContent(
    from_address="hello@example.com",
    from_name="Example",
    subject="the secret of the house",
    html="<p>Hello</p>",
    headers=(("List-Unsubscribe", "<https://example.com/u/1>"),),
)

SENDS = [
    *http_sends(TAKEN, PLAIN),
    Outgoing("refuses it", says(400, '{"code": "invalid_address"}'), Refused("invalid_address", f"{PLAIN} 400")),
    Outgoing("has suppressed it", says(422, '{"code": "suppressed"}'), Refused("suppressed", f"{PLAIN} 422")),
    Outgoing("refuses for its own reason", says(400, '{"code": "E-7"}'), Refused("provider_error", f"{PLAIN} 400")),
    Outgoing(
        "quotes the content",
        says(400, '{"code": "content_rejected", "message": "no the secret of the house to a@b.c"}'),
        Refused("content_rejected", f"{PLAIN} 400"),
    ),
]  # fmt: skip


def _bounce(code: str | None, told: str | None, read: str) -> tuple[dict[str, Any], Event]:
    event: dict[str, Any] = {"kind": "status", "status": "bounced", "at": TIME, "reference": "msg_1"}
    event |= {} if code is None else {"code": code}
    event |= {} if told is None else {"bounceType": told}
    return event, Status("bounced", AT, None, "msg_1", read, bounce_type=told)  # type: ignore[arg-type]


INCOMING: list[tuple[dict[str, Any], Event]] = [
    _bounce("mailbox_full", None, "mailbox_full"),
    _bounce("invalid_address", "permanent", "invalid_address"),
    _bounce("E-7", "permanent", "invalid_address"),
    _bounce("invalid_address", "temporary", "provider_error"),
    _bounce(None, None, "provider_error"),
    (
        {"kind": "status", "status": "complained", "at": TIME, "providerMessageId": "p", "code": "spam"},
        Status("complained", AT, "p"),
    ),
]


class WithContent(EmailBridge):
    """Gives each message of the suite what an e-mail has."""

    async def send(self, message: OutboundMessage, account: Account, attempt: int) -> Outcome:
        return await super().send(replace(message, channel="email", details={"content": CONTENT}), account, attempt)
