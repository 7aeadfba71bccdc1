"""The sandbox: a phone's last four digits say what happens to its messages (C29.4)."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from recado.channels.chatapp.sandbox import Sandbox
from recado.channels.core.events import Inbound, Status, TemplateVerdict
from recado.channels.core.provider import (
    Accepted,
    Account,
    OutboundMessage,
    Outcome,
    Refused,
    Retry,
    SlowDown,
    TemplateSubmission,
    Unknown,
)
from recado.engine.clock import VirtualClock

DELIVERED = (1.0, "delivered", None)
READ = (2.0, "read", None)

TABLE: list[tuple[str, type[Any], list[tuple[Any, ...]]]] = [
    ("0000", Accepted, [DELIVERED, READ]),
    ("9000", Accepted, [DELIVERED, READ]),
    ("9002", Accepted, [(1.0, "failed", "provider_error")]),
    ("9003", Accepted, []),
    ("9004", Accepted, [DELIVERED]),
    ("9006", Unknown, [(30.0, "delivered", None)]),
    ("9007", Accepted, [DELIVERED, READ, (3.0, "OK")]),
    ("9008", Accepted, [DELIVERED, (3.0, "SAIR")]),
    ("9009", Accepted, [DELIVERED, READ]),
    ("9010", Accepted, [DELIVERED, READ]),
    ("9012", Accepted, [(1.0, "failed", "expired")]),
    ("9014", Unknown, []),
]

MessageTo = Callable[[str], OutboundMessage]


async def handed_over(
    sandbox: Sandbox, clock: VirtualClock, message: OutboundMessage, account: Account, attempt: int = 1
) -> Outcome:
    sending = asyncio.create_task(sandbox.send(message, account, attempt))
    await clock.advance(0.1)
    assert sending.done(), "the sandbox takes 100 ms"
    return sending.result()


@pytest.mark.parametrize(("suffix", "outcome", "story"), TABLE)
async def test_the_last_digits_decide(
    suffix: str,
    outcome: type[Any],
    story: list[tuple[Any, ...]],
    clock: VirtualClock,
    message_to: MessageTo,
    account: Account,
) -> None:
    message = message_to(f"+551198765{suffix}")

    result = await handed_over(Sandbox(clock), clock, message, account)

    assert isinstance(result, outcome)
    told: list[tuple[Any, ...]] = []
    for followup in result.followups:
        assert followup.event.at == clock.now() + timedelta(seconds=followup.after_seconds)
        match followup.event:
            case Status() as report:
                assert report.reference == message.id
                assert report.account == account.provider_id
                told.append((followup.after_seconds, report.status, report.code))
            case Inbound() as reply:
                assert (reply.account, reply.sender, reply.type) == ("pn-1", message.to, "text")
                told.append((followup.after_seconds, reply.payload["text"]["body"]))
            case other:
                raise AssertionError(other)
    assert told == story


@pytest.mark.parametrize(("suffix", "code"), [("9001", "recipient_unreachable"), ("9011", "policy_blocked")])
async def test_some_are_refused(
    suffix: str, code: str, clock: VirtualClock, message_to: MessageTo, account: Account
) -> None:
    result = await handed_over(Sandbox(clock), clock, message_to(f"+551198765{suffix}"), account)

    assert isinstance(result, Refused)
    assert result.code == code


async def test_9005_is_retried_twice_and_then_delivered(
    clock: VirtualClock, message_to: MessageTo, account: Account
) -> None:
    sandbox, message = Sandbox(clock), message_to("+5511987659005")

    assert await handed_over(sandbox, clock, message, account, 1) == Retry()
    assert await handed_over(sandbox, clock, message, account, 2) == Retry()
    assert isinstance(await handed_over(sandbox, clock, message, account, 3), Accepted)


async def test_9013_slows_down_once_although_that_spends_no_attempt(
    clock: VirtualClock, message_to: MessageTo, account: Account
) -> None:
    sandbox, message = Sandbox(clock), message_to("+5511987659013")

    assert await handed_over(sandbox, clock, message, account, 1) == SlowDown(2.0)
    assert isinstance(await handed_over(sandbox, clock, message, account, 1), Accepted)
    assert isinstance(await handed_over(Sandbox(clock), clock, message, account, 2), Accepted)


async def test_time_is_scaled(clock: VirtualClock, message_to: MessageTo, account: Account) -> None:
    sandbox = Sandbox(clock, time_scale=0.5)
    sending = asyncio.create_task(sandbox.send(message_to("+5511987659007"), account, 1))
    await clock.advance(0.049)
    assert not sending.done()
    await clock.advance(0.001)

    result = sending.result()

    assert isinstance(result, Accepted)
    assert [followup.after_seconds for followup in result.followups] == [0.5, 1.0, 1.5]
    assert sandbox.verification_delay == 0.5


def test_without_time_a_send_does_not_even_yield(
    clock: VirtualClock, message: OutboundMessage, account: Account
) -> None:
    sending = Sandbox(clock, time_scale=0).send(message, account, 1)

    with pytest.raises(StopIteration) as end:
        sending.send(None)

    assert [followup.after_seconds for followup in end.value.value.followups] == [0, 0]


async def test_the_same_message_has_the_same_provider_id_and_others_another(
    clock: VirtualClock, message: OutboundMessage, account: Account
) -> None:
    sandbox = Sandbox(clock, time_scale=0)
    first, again = await sandbox.send(message, account, 1), await sandbox.send(message, account, 2)
    other = await sandbox.send(replace(message, id="msg_0000000100000000000a2"), account, 1)

    assert isinstance(first, Accepted)
    assert isinstance(other, Accepted)
    assert first == again
    assert first.provider_message_id != other.provider_message_id


@pytest.mark.parametrize(
    ("name", "after", "status"),
    [
        ("ola", 2.0, "approved"),
        ("please_reject", 2.0, "rejected"),
        ("slow_ola", 60.0, "approved"),
        ("slow_reject", 60.0, "rejected"),
    ],
)
async def test_a_template_is_taken_for_review_and_judged_by_its_name(
    name: str, after: float, status: str, clock: VirtualClock, account: Account
) -> None:
    template = TemplateSubmission(
        id="tpl_000000010000000000001", name=name, language="pt-BR", category="utility", components=[]
    )

    submission = await Sandbox(clock).submit_template(account, template)

    (verdict,) = submission.followups
    assert isinstance(verdict.event, TemplateVerdict)
    assert (verdict.after_seconds, verdict.event.status) == (after, status)
    assert verdict.event.provider_template_id == submission.provider_template_id
    assert verdict.event.at == clock.now() + timedelta(seconds=after)
    assert (verdict.event.reason is not None) is (status == "rejected")


async def test_a_number_is_verified_within_two_seconds_and_otherwise_as_stored(
    clock: VirtualClock, account: Account
) -> None:
    sandbox = Sandbox(clock)

    health = await sandbox.number_health(account)

    assert sandbox.verification_delay < 2
    assert health.verified
    assert (health.status, health.quality_rating, health.messaging_tier, health.profile) == (None, None, None, None)
