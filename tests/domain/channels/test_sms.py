"""What SMS is sent by, and how it ends (C16.3, C12.5.4, C25.3)."""

from datetime import timedelta

import pytest

from recado.domain.channels.policy import MessageFacts
from recado.domain.channels.sms import POLICY, SmsReason, SmsRoute, category_of, priority_of, reason_of
from recado.domain.messages.message import FailureCode, MessageStatus, Priority, Report

S, R = MessageStatus, Report


@pytest.mark.parametrize("route", SmsRoute)
@pytest.mark.parametrize("transactional", [False, True])
def test_only_what_is_neither_a_code_nor_transactional_obeys_consent_and_quiet_hours(
    route: SmsRoute, transactional: bool
) -> None:
    category = category_of(route, transactional=transactional)
    marketing = route is not SmsRoute.OTP and not transactional
    for priority in Priority:
        assert POLICY.obeys("text", category, priority) == (False, marketing, marketing)


def test_a_code_lives_an_hour_goes_first_and_costs_as_such() -> None:
    otp, premium = category_of(SmsRoute.OTP, transactional=False), category_of(SmsRoute.PREMIUM, transactional=True)
    assert POLICY.ttl(otp, Priority.CRITICAL) == timedelta(hours=1)
    assert POLICY.ttl(premium, Priority.NORMAL) == timedelta(hours=24)
    assert [priority_of(route) for route in SmsRoute] == [Priority.NORMAL, Priority.CRITICAL, Priority.NORMAL]
    prices = [POLICY.price_kind(route, False) for route in SmsRoute]
    assert prices == ["sms_premium", "sms_otp", "sms_la_dedicada"]


@pytest.mark.parametrize(
    ("state", "report", "uncertain", "end"),
    [
        (S.SENDING, R.DELIVERED, False, S.DELIVERED),
        (S.SENDING, R.FAILED, False, S.UNDELIVERED),
        (S.SENT, R.FAILED, False, S.UNDELIVERED),
        (S.SENT, R.READ, False, S.SENT),
        (S.DELIVERED, R.FAILED, False, S.DELIVERED),
        (S.UNDELIVERED, R.DELIVERED, False, S.UNDELIVERED),
        (S.UNDELIVERED, R.DELIVERED, True, S.DELIVERED),
        (S.UNDELIVERED, R.FAILED, True, S.UNDELIVERED),
        (S.FAILED, R.DELIVERED, False, S.FAILED),
        (S.FAILED, R.DELIVERED, True, S.DELIVERED),
    ],
)
def test_a_report_moves_what_it_may(state: S, report: R, uncertain: bool, end: S) -> None:
    for event in POLICY.report_moves(state, report, uncertain=uncertain):
        state = POLICY.machine.move(state, event)
    assert state is end


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (None, None),
        ("invalid_number", SmsReason.INVALID_NUMBER),
        (FailureCode.RECIPIENT_UNREACHABLE, SmsReason.INVALID_NUMBER),
        (FailureCode.OPTED_OUT, SmsReason.ABANDONED),
        (FailureCode.WITHDRAWN, SmsReason.ABANDONED),
        (FailureCode.EXPIRED, SmsReason.EXPIRED),
        (FailureCode.PROVIDER_ERROR, SmsReason.CARRIER_REJECTED),
        ("a word of tomorrow", SmsReason.CARRIER_REJECTED),
    ],
)
def test_every_failure_has_a_reason_of_the_record(code: str | None, reason: SmsReason | None) -> None:
    assert reason_of(code) is reason
    assert (code in POLICY.nobody_there) is (reason is SmsReason.INVALID_NUMBER)  # its contact is marked (C13.2)


@pytest.mark.parametrize(
    ("status", "code", "told"),
    [
        ("delivered", None, {}),
        ("undelivered", "blacklisted", {"reason": "blacklisted"}),
        ("undelivered", None, {"reason": "indeterminate"}),
        ("failed", "opted_out", {"reason": "abandoned"}),
    ],
)
def test_an_event_tells_route_size_region_and_why_it_did_not_arrive(
    status: str, code: str | None, told: dict[str, str]
) -> None:
    assert POLICY.tells is not None
    facts = MessageFacts("+351912345678", {"route": "otp"}, 2, code, None)
    assert POLICY.tells(status, facts) == {"route": "otp", "segments": 2, "region": "INTL", **told}


@pytest.mark.parametrize(("content", "text"), [({"text": {"body": "OK"}}, "OK"), ({"media": {}}, None), (None, None)])
def test_the_event_of_what_came_in_tells_its_text(content: dict[str, object] | None, text: str | None) -> None:
    assert POLICY.tells is not None
    assert POLICY.tells("received", MessageFacts("+5511987654321", {}, 1, None, content)) == {"text": text}
