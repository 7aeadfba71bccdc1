"""By what RCS differs, as pure rules: prices, ways on, what a departure takes, and what its SMS says (C17, C25.2)."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.domain.channels.policy import TakenPrice
from recado.domain.channels.rcs import (
    POLICY,
    REFUSALS,
    RcsReason,
    RcsRoute,
    by_sms,
    carried_by,
    category_in,
    category_of,
    is_rich,
    priority_of,
    reason_of,
    sms_kind,
)
from recado.domain.messages.message import FailureCode, Priority

coins = st.integers(0, 10_000)
AT = datetime(2026, 1, 1, tzinfo=UTC)


@st.composite
def messages(draw: st.DrawFn) -> dict[str, Any]:
    """The details of an RCS message as it is accepted."""
    route = draw(st.sampled_from(RcsRoute))
    rich = route is RcsRoute.EASY and draw(st.booleans())
    details: dict[str, Any] = {"route": route, "deliveredVia": "rcs"}
    if rich:
        details["rich"] = True
    if draw(st.booleans()):
        details["transactional"] = True
    if draw(st.booleans()):
        details["fallback"] = {
            "route": "premium", "encoding": "GSM-7", "length": 5, "segments": draw(st.integers(1, 10)),
            "afterSeconds": draw(st.integers(30, 86_400)),
        }  # fmt: skip
    if draw(st.booleans()):
        details["price"] = {"coins": draw(coins), "kind": "rcs_text"}
        if "fallback" in details:
            details["fallback"]["price"] = {"coins": draw(coins), "kind": "sms_premium"}
    return details


def taken(details: dict[str, Any]) -> TakenPrice | None:
    assert POLICY.taken is not None
    return POLICY.taken(details)


def onward(details: dict[str, Any], code: str) -> Any:
    assert POLICY.onward is not None
    return POLICY.onward(details, code)


@given(messages(), st.sampled_from(sorted({*REFUSALS, *FailureCode})))
def test_a_refusal_sends_on_by_sms_once_and_never_whoever_wants_nothing(details: dict[str, Any], code: str) -> None:
    way = onward(details, code)
    assert (way is not None) == ("fallback" in details and code != FailureCode.OPTED_OUT)
    if way is not None:
        after = {**details, **way.details}
        assert (carried_by(after), way.units) == ("sms", details["fallback"]["segments"])
        assert onward(after, code) is None
        assert list(POLICY.deadlines(after, AT)) == []


@given(messages())
def test_what_departures_take_is_the_price_of_the_last_way(details: dict[str, Any]) -> None:
    first = taken(details)
    if "price" not in details:
        assert first is None
        return
    own = details["price"]["coins"]
    assert first == TakenPrice(own, 1, "rcs_text")
    if "fallback" not in details:
        return
    sms = details["fallback"]["price"]["coins"]
    refused = taken({**details, **by_sms(details).details})
    assert refused == TakenPrice(sms, details["fallback"]["segments"], "sms_premium")
    revoked = taken({**details, **by_sms(details, revoked=True).details})
    assert revoked is not None
    assert (revoked.coins, own + (revoked.adjusted or 0)) == (0, sms)


@given(messages())
def test_the_rest_of_the_price_is_held_until_the_sms_would_leave(details: dict[str, Any]) -> None:
    found = POLICY.deadlines(details, AT)
    if "fallback" not in details:
        assert list(found) == []
        return
    (due,) = found
    assert (due.due_at, due.holds_rest) == (AT + timedelta(seconds=details["fallback"]["afterSeconds"]), True)


@given(messages())
def test_its_sms_says_its_own_text_and_nothing_of_the_rest(details: dict[str, Any]) -> None:
    if "fallback" not in details:
        return
    assert POLICY.carried is not None
    payload, told = POLICY.carried({"text": {"body": "rcs"}, "fallback": {"text": "sms"}}, details)
    assert payload == {"text": {"body": "sms"}}
    assert set(told) <= {"route", "encoding", "length", "segments", "transactional"}
    assert told.get("transactional") == details.get("transactional")


@given(messages())
def test_only_marketing_obeys_consent_and_quiet_hours(details: dict[str, Any]) -> None:
    obeys = POLICY.obeys("text", category_in(details), Priority.NORMAL)
    marketing = details["route"] is RcsRoute.EASY and "transactional" not in details
    assert obeys == (False, marketing, marketing)


@pytest.mark.parametrize(
    ("route", "rich", "kind", "hours", "priority"),
    [
        (RcsRoute.EASY, False, "rcs_text", 24, Priority.NORMAL),
        (RcsRoute.EASY, True, "rcs_other", 24, Priority.NORMAL),
        (RcsRoute.OTP, False, "rcs_otp", 1, Priority.CRITICAL),
        (RcsRoute.OTP, True, "rcs_otp", 1, Priority.CRITICAL),
    ],
)
@pytest.mark.parametrize("transactional", [False, True])
def test_a_route_has_a_price_a_time_and_a_class(
    route: RcsRoute, rich: bool, kind: str, hours: int, priority: Priority, transactional: bool
) -> None:
    category = category_of(route, rich=rich, transactional=transactional)
    assert POLICY.price_kind(category, False) == kind
    assert POLICY.ttl(category, Priority.NORMAL) == timedelta(hours=hours)
    assert priority_of(route) is priority
    assert sms_kind(route) == ("sms_otp" if route is RcsRoute.OTP else "sms_premium")


@given(st.text(max_size=200) | st.none(), st.booleans(), st.booleans())
def test_a_short_text_alone_is_no_rich_message(text: str | None, card: bool, suggestions: bool) -> None:
    plain = text is not None and len(text) <= 160 and not card and not suggestions
    assert is_rich(text, card=card, suggestions=suggestions) is not plain


def test_every_code_has_a_reason_of_the_record() -> None:
    assert reason_of(None) is None
    for code in (*FailureCode, *REFUSALS, "anything"):
        assert reason_of(code) in RcsReason
