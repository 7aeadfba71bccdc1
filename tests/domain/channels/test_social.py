"""What social differs by: as chat-app without templates, for people who have written (C26.1, C26.2)."""

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from recado.domain.channels.chatapp import MACHINE as OF_CHATAPP
from recado.domain.channels.social import GATES, MACHINE, POLICY
from recado.domain.dispatch.gates import Hold, SenderState
from recado.domain.messages.message import MessageEvent, Priority, WaitReason
from recado.domain.senders.number import NumberStatus, QualityRating
from recado.domain.senders.social_account import SOCIAL_ACCOUNT_MACHINE, SocialAccountStatus

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def test_it_has_the_states_of_chat_app_and_no_template_that_could_go() -> None:
    gone = [move for move in OF_CHATAPP.transitions() if move[1] is MessageEvent.TEMPLATE_UNAVAILABLE]
    assert gone
    assert {*MACHINE.transitions()} == {*OF_CHATAPP.transitions()} - {*gone}
    assert MACHINE.initial == OF_CHATAPP.initial


@pytest.mark.parametrize("kind", ["text", "media"])
@pytest.mark.parametrize("priority", Priority)
def test_all_of_it_needs_the_window_and_obeys_nothing_else(kind: str, priority: Priority) -> None:
    assert tuple(POLICY.obeys(kind, None, priority)) == (True, False, False)


def test_its_events_tell_of_departure_and_failure_alone() -> None:
    assert set(POLICY.events.values()) == {"social.message.sent", "social.message.failed"}
    assert POLICY.received == "social.message.received"


def test_it_waits_as_long_as_a_chat_app_message() -> None:
    assert [POLICY.ttl(None, each) for each in (Priority.CRITICAL, Priority.NORMAL, Priority.BULK)] == [
        timedelta(hours=hours) for hours in (1, 24, 72)
    ]


@pytest.mark.parametrize("status", SocialAccountStatus)
def test_only_a_connected_account_sends(status: SocialAccountStatus) -> None:
    nothing: Any = None
    state = SenderState(
        NumberStatus(status), QualityRating.UNKNOWN, None, False, None, 0, nothing, ZoneInfo("America/Sao_Paulo")
    )
    held = GATES.sender_hold(state, NOW)
    assert held == (None if status is SocialAccountStatus.CONNECTED else Hold(WaitReason.NUMBER_STATE))


def test_an_account_comes_back_by_its_customer_alone() -> None:
    into = {event for _, event, to in SOCIAL_ACCOUNT_MACHINE.transitions() if to is SocialAccountStatus.CONNECTED}
    assert into == {"connect"}
