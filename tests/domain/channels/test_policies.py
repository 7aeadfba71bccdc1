"""What holds for the policy of every channel."""

from datetime import UTC, datetime, timedelta

import pytest
from tests.post import LETTERS, POST, RECEIPT, REPORT

from recado.domain.access.scopes import ALL_SCOPES
from recado.domain.channels import chatapp, sms
from recado.domain.channels.address import MASK
from recado.domain.channels.policies import (
    POLICIES,
    heard_as,
    shown,
    states_after,
    states_before,
    states_shown_as,
    withdrawn_as,
)
from recado.domain.channels.policy import Deadline, Policy
from recado.domain.core.events import EVENT_NAMES
from recado.domain.messages.message import (
    FAILURES,
    REACHED_AT,
    GenericStatus,
    MessageEvent,
    MessageStatus,
    Priority,
    Report,
)
from recado.domain.templates.template import TemplateCategory

each_policy = pytest.mark.parametrize("policy", [*POLICIES.values(), LETTERS], ids=[*POLICIES, POST])
CATEGORIES = (None, *TemplateCategory)
CATEGORIES_OF = {
    sms.SMS: [sms.category_of(route, transactional=said) for route in sms.SmsRoute for said in (False, True)],
}
"""Of channels that tell their messages apart by other words."""
E = MessageEvent


@each_policy
def test_every_state_is_reached_from_where_messages_begin(policy: Policy) -> None:
    reached = set(policy.machine.initial.values())
    while more := {to for state, _, to in policy.machine.transitions() if state in reached} - reached:
        reached |= more
    assert reached == set(policy.machine.states)


@each_policy
def test_every_state_that_tells_something_is_one_of_its_states_and_every_event_can_be_subscribed_to(
    policy: Policy,
) -> None:
    assert set(policy.events) <= set(policy.machine.states)
    assert {*policy.events.values(), policy.received} - {None} <= set(EVENT_NAMES)


@each_policy
def test_what_shows_as_another_state_has_its_moment_in_the_same_column(policy: Policy) -> None:
    assert set(policy.shown) <= set(policy.machine.states)
    for state, status in policy.shown.items():
        assert REACHED_AT.get(state) == REACHED_AT.get(MessageStatus(status))


@each_policy
def test_what_is_due_after_a_departure_is_known_to_the_states_that_it_may_find(policy: Policy) -> None:
    for due in policy.after_sent.values():
        assert due.event is None or MessageStatus.SENT in policy.machine.sources(due.event)
    assert sum(due.holds_rest for due in policy.after_sent.values()) <= 1


def test_what_is_due_follows_from_the_departure_and_from_what_the_channel_knows_of_the_message() -> None:
    left_at = datetime(2026, 11, 25, tzinfo=UTC)
    assert chatapp.POLICY.deadlines(None, left_at) == ()
    assert LETTERS.deadlines(None, left_at) == [Deadline(REPORT, left_at + timedelta(hours=72), holds_rest=True)]
    assert LETTERS.deadlines({"unreported": True}, left_at) == []
    assert LETTERS.deadlines({"hours": 2, "receipt": True}, left_at) == [
        Deadline(REPORT, left_at + timedelta(hours=2), holds_rest=True),
        Deadline(RECEIPT, left_at + timedelta(hours=1), holds_rest=False),
    ]


@each_policy
def test_it_answers_for_every_message(policy: Policy) -> None:
    for category in CATEGORIES_OF.get(policy.channel, CATEGORIES):
        assert policy.price_kind(category, False)
        assert all(policy.ttl(category, priority) for priority in Priority)


@each_policy
def test_its_addresses_have_a_mask_and_its_scope_exists(policy: Policy) -> None:
    assert policy.addresses
    assert set(policy.addresses) <= set(MASK)
    assert policy.scope in ALL_SCOPES


@pytest.mark.parametrize("event", MessageEvent)
def test_a_guard_has_the_states_of_every_channel(event: MessageEvent) -> None:
    states = {state for policy in POLICIES.values() for state in policy.machine.sources(event)}
    assert {MessageStatus(state) for state in states_before(event)} == states


def test_a_chat_app_message_shows_as_it_is_and_a_state_of_another_channel_as_its_policy_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(POLICIES, POST, LETTERS)
    for status in GenericStatus:
        assert shown("chatapp", status) == shown("of no policy", status) == status
    assert [shown(POST, state) for state in ("sending", "undelivered", "complained", "sent")] == [
        "queued", "failed", "delivered", "sent",
    ]  # fmt: skip
    assert states_shown_as("chatapp", "failed") == ["failed"]
    assert states_shown_as(POST, "failed") == ["failed", "undelivered"]
    assert states_shown_as(POST, "sending") == []


def test_what_becomes_of_messages_is_read_from_the_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    assert states_after(MessageStatus.SENT) == [
        "archived", "bounced", "complained", "delivered", "failed", "queued", "read", "sent", "undelivered",
    ]  # fmt: skip
    assert withdrawn_as() == {
        "chatapp": "archived", "sms": "failed", "rcs": "failed", "email": "failed", "social": "archived",
    }  # fmt: skip
    monkeypatch.setitem(POLICIES, POST, LETTERS)
    assert states_after(MessageStatus.UNDELIVERED) == ["complained", "delivered", "undelivered"]
    assert withdrawn_as() == {
        "chatapp": "archived", "sms": "failed", "rcs": "failed", "email": "failed", "social": "archived",
        POST: "failed",
    }  # fmt: skip


@each_policy
@pytest.mark.parametrize("report", Report)
def test_a_report_leads_to_one_state_along_its_machine(policy: Policy, report: Report) -> None:
    """A statement moves its messages there at once, from wherever they may leave."""
    ends = set()
    for (state, each), events in [*policy.reports.items(), *policy.late_reports.items()]:
        if each is report:
            assert events
            for event in events:
                state = policy.machine.move(state, event)
            ends.add(state)
    assert len(ends) <= 1


@each_policy
def test_no_report_moves_a_message_that_may_wait_in_the_queue_unless_it_makes_it_sent_first(policy: Policy) -> None:
    for (state, _), events in policy.reports.items():
        waits = state in policy.machine.sources(E.RETURN_TO_QUEUE) | policy.machine.sources(E.CLAIM)
        assert (events[0] is E.REPORT_SENT) is waits


@each_policy
def test_a_late_report_moves_only_what_did_not_arrive(policy: Policy) -> None:
    assert {state for state, _ in policy.late_reports} <= FAILURES
    assert not set(policy.reports) & set(policy.late_reports)


def test_what_people_write_is_told_by_channel_and_what_answers_rcs_as_sms() -> None:
    told = {channel: POLICIES[heard_as(channel)].received for channel in POLICIES}
    sms = "sms.received"
    social = "social.message.received"
    assert told == {"chatapp": "message.received", "sms": sms, "rcs": sms, "social": social, "email": None}
    assert {channel for channel, policy in POLICIES.items() if policy.answers_opt_outs} == {"chatapp", "rcs"}


def test_the_generic_view_has_words_of_its_own_for_what_only_sms_and_emails_can_be() -> None:
    told = {
        (channel, state.value): status
        for channel in ("sms", "email")
        for state, status in POLICIES[channel].shown.items()
    }
    assert told == {
        ("sms", "undelivered"): "failed",
        ("email", "bounced"): "failed",
        ("email", "complained"): "delivered",
    }
