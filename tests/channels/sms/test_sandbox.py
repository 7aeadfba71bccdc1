"""The sandbox of SMS: a phone's last four digits say what happens to its messages (C29.4)."""

from collections.abc import Callable
from typing import Any

import pytest

from recado.channels.core.events import Inbound, Status
from recado.channels.core.provider import (
    Accepted,
    Account,
    OutboundMessage,
    Outcome,
    Refused,
    Retry,
    SlowDown,
    Unknown,
)
from recado.channels.sms.sandbox import SmsSandbox
from recado.engine.clock import VirtualClock

DELIVERED = ("delivered", None)


@pytest.mark.parametrize(
    ("ending", "attempt", "outcome", "story"),
    [
        ("0000", 1, Accepted, [DELIVERED]),
        ("9001", 1, Refused, []),
        ("9002", 1, Accepted, [("failed", "carrier_rejected")]),
        ("9003", 1, Accepted, []),
        ("9004", 1, Accepted, [DELIVERED]),
        ("9005", 2, Retry, []),
        ("9005", 3, Accepted, [DELIVERED]),
        ("9006", 1, Unknown, [DELIVERED]),
        ("9007", 1, Accepted, [DELIVERED, "OK"]),
        ("9008", 1, Accepted, [DELIVERED, "SAIR"]),
        ("9010", 1, Accepted, [DELIVERED]),
        ("9011", 1, Refused, []),
        ("9012", 1, Accepted, [("failed", "expired")]),
        ("9013", 1, SlowDown, []),
        ("9014", 1, Unknown, []),
    ],
)
async def test_the_last_digits_decide(
    ending: str,
    attempt: int,
    outcome: type[Any],
    story: list[Any],
    clock: VirtualClock,
    message_to: Callable[[str], OutboundMessage],
    account: Account,
) -> None:
    found: Outcome = await SmsSandbox(clock, 0).send(message_to(f"+551198765{ending}"), account, attempt)
    assert isinstance(found, outcome)
    told: list[Any] = []
    for followup in getattr(found, "followups", ()):
        match followup.event:
            case Status() as report:
                told.append((report.status, report.code))
            case Inbound() as reply:
                told.append(reply.payload["text"]["body"])
    assert told == story


@pytest.mark.parametrize(("ending", "code"), [("9001", "invalid_number"), ("9011", "blacklisted")])
async def test_a_refusal_is_one_of_the_channel(
    ending: str, code: str, clock: VirtualClock, message_to: Callable[[str], OutboundMessage], account: Account
) -> None:
    found = await SmsSandbox(clock, 0).send(message_to(f"+551198765{ending}"), account, 1)
    assert isinstance(found, Refused)
    assert found.code == code
