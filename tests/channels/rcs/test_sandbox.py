"""The sandbox of RCS: a phone's last four digits say what happens to its messages (C29.4)."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from recado.channels.core.events import Inbound, LinkOpened, Status
from recado.channels.core.provider import Accepted, Account, OutboundMessage, Refused, Retry, SlowDown, Unknown
from recado.channels.rcs.sandbox import RcsSandbox
from recado.engine.clock import VirtualClock

DELIVERED, READ = ("delivered", None), ("read", None)


@pytest.mark.parametrize(
    ("ending", "attempt", "outcome", "story"),
    [
        ("0000", 1, Accepted, [DELIVERED, READ]),
        ("9001", 1, Refused("invalid_number", "the number does not exist"), []),
        ("9002", 1, Accepted, [("failed", "carrier_rejected")]),
        ("9003", 1, Accepted, []),
        ("9004", 1, Accepted, [DELIVERED]),
        ("9005", 2, Retry, []),
        ("9005", 3, Accepted, [DELIVERED, READ]),
        ("9006", 1, Unknown, [DELIVERED]),
        ("9007", 1, Accepted, [DELIVERED, READ, "OK"]),
        ("9008", 1, Accepted, [DELIVERED, "SAIR"]),
        ("9009", 1, Accepted, [DELIVERED]),
        ("9010", 1, Refused("not_rcs_capable", "this phone has no RCS"), []),
        ("9011", 1, Refused("policy_blocked", "the policy of the provider forbids it"), []),
        ("9012", 1, Accepted, [("failed", "expired")]),
        ("9013", 1, SlowDown, []),
        ("9014", 1, Unknown, []),
    ],
)
async def test_the_last_digits_decide(
    ending: str,
    attempt: int,
    outcome: Any,
    story: list[Any],
    clock: VirtualClock,
    message_to: Callable[[str], OutboundMessage],
    account: Account,
) -> None:
    sandbox = RcsSandbox(clock, 0)
    found = await sandbox.send(message_to(f"+551198765{ending}"), account, attempt)
    assert found == outcome if isinstance(outcome, Refused) else isinstance(found, outcome)
    told: list[Any] = []
    for followup in getattr(found, "followups", ()):
        match followup.event:
            case Status() as report:
                told.append((report.status, report.code))
            case Inbound() as reply:
                told.append(reply.payload["text"]["body"])
    assert told == story
    assert await sandbox.revoke("msg_1", "p-1", "+5511987650000", account)


LINK = "https://go.example.com/l/aB3dE5gH"
OPENS = {"type": "url", "text": "Track it", "value": LINK}


@pytest.mark.parametrize(
    "content",
    [
        {"text": {"body": f"It is on its way: {LINK}"}},
        {"text": {"body": "It is on its way"}, "suggestions": [{**OPENS, "type": "reply", "value": "thanks"}, OPENS]},
        {"card": {"title": "Your order", "description": f"See {LINK}", "suggestions": []}},
        {"card": {"title": "Your order", "mediaUrl": "https://example.com/a.png", "suggestions": [OPENS]}},
    ],
)
async def test_the_first_link_that_a_person_sees_is_opened(
    content: dict[str, Any], clock: VirtualClock, message_to: Callable[[str], OutboundMessage], account: Account
) -> None:
    message = replace(message_to("+5511987659009"), payload={**content, "fallback": {"text": "https://x.y/l/00000000"}})
    found = await RcsSandbox(clock, 0).send(message, account, 1)
    assert isinstance(found, Accepted)
    opened = [each.event for each in found.followups if isinstance(each.event, LinkOpened)]
    assert opened == [LinkOpened("aB3dE5gH")]
