"""The sandbox of e-mail, and the mailbox simulator before a provider: a local part says what happens (C29.4)."""

from collections.abc import Callable
from typing import Any

import pytest

from recado.channels.core.events import Inbound, Status
from recado.channels.core.provider import Accepted, Account, Down, OutboundMessage, Outcome, Refused
from recado.channels.email.sandbox import EmailSandbox
from recado.channels.email.simulator import WithSimulator
from recado.engine.clock import VirtualClock

DOMAIN = "simulator.test"
DELIVERED = ("delivered", None)


@pytest.mark.parametrize(
    ("to", "outcome", "story"),
    [
        ("ana@example.com", Accepted, [DELIVERED]),
        ("bounce@example.com", Accepted, [DELIVERED]),
        ("anybody@simulator.test", Accepted, [DELIVERED]),
        ("success@simulator.test", Accepted, [DELIVERED]),
        ("Bounce+order-7@Simulator.test", Accepted, [("bounced", "invalid_address")]),
        ("complaint@simulator.test", Accepted, [("complained", None)]),
        ("ooto+a@simulator.test", Accepted, [DELIVERED, "reply"]),
        ("suppressionlist@simulator.test", Refused, []),
    ],
)
async def test_the_local_part_decides(
    to: str,
    outcome: type[Any],
    story: list[Any],
    clock: VirtualClock,
    message_to: Callable[[str], OutboundMessage],
    account: Account,
) -> None:
    found: Outcome = await EmailSandbox(clock, 0, simulator_domain=DOMAIN).send(message_to(to), account, 1)
    assert isinstance(found, outcome)
    told: list[Any] = []
    for followup in getattr(found, "followups", ()):
        match followup.event:
            case Status() as report:
                told.append((report.status, report.code))
            case Inbound() as reply:
                assert reply.sender == to
                told.append("reply")
    assert told == story


class Away:
    """A provider that nobody reaches."""

    name, idempotent, looked_up_by, paces_pairs = "away", False, frozenset[Any](), False

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def send(self, message: OutboundMessage, account: Account, attempt: int) -> Outcome:
        self.asked.append(message.to)
        return Down("connect_failed")


async def test_in_live_the_service_itself_answers_for_the_simulator_s_domain_alone(
    clock: VirtualClock, message_to: Callable[[str], OutboundMessage], account: Account
) -> None:
    provider = Away()
    live = WithSimulator(provider, EmailSandbox(clock, 0, simulator_domain=DOMAIN), DOMAIN)
    for address, outcome in (("bounce+1", Accepted), ("suppressionlist", Refused)):
        answer = await live.send(message_to(f"{address}@simulator.test"), account, 1)
        assert isinstance(answer, outcome)
        assert answer.simulated
    assert await live.send(message_to("bounce@example.com"), account, 1) == Down("connect_failed")
    assert (live.name, provider.asked) == ("away", ["bounce@example.com"])
