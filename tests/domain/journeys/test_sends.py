"""A send holds while it is silent, and is skipped where it cannot be made or would be too much (C9.8, C9.9)."""

from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from tests.domain.journeys.cases import BERLIN, SAO_PAULO, person

from recado.domain.contacts.contact import Contact
from recado.domain.dispatch.quiet_hours import QuietHours
from recado.domain.journeys.execution import Awaited, SkipReason
from recado.domain.journeys.outcomes import Await, SendMessage, SkipSend
from recado.domain.journeys.sends import QuietWindow, SendFacts, counts_after, decide_send
from recado.domain.journeys.steps import (
    ChatappSend,
    ContactVariable,
    EmailSend,
    RcsSend,
    SendStep,
    SmsSend,
)

TICK = timedelta(microseconds=1)
NOON = datetime(2026, 3, 13, 15, tzinfo=UTC)  # in São Paulo
ADA = person(name="Ada", email="ada@example.com")
SMS = SendStep("s", SmsSend("Oi {{1}}"), "next", {"1": ContactVariable("name")})
SENT = SendMessage(SmsSend("Oi Ada"), {"1": "Ada"}, "next")


def decided(
    step: SendStep = SMS, contact: Contact = ADA, now: datetime = NOON, *, test: bool = False, **known: Any
) -> SendMessage | SkipSend | Await:
    return decide_send(step, SendFacts(**known), contact, {}, SAO_PAULO, now, test=test)


def silence(start: str, end: str, zone: ZoneInfo = SAO_PAULO) -> QuietWindow:
    return QuietWindow(QuietHours(time.fromisoformat(start), time.fromisoformat(end)), zone)


def local(text: str, zone: ZoneInfo = SAO_PAULO) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=zone).astimezone(UTC)


def holds(until: datetime) -> Await:
    return Await(Awaited.SILENCE_END, until)


def test_a_send_with_nothing_against_it_leaves_with_its_texts() -> None:
    assert decided() == SENT
    template = SendStep("s", ChatappSend("tpl_1", "num_1"), "next", {"1": ContactVariable("name")})
    assert decided(template) == SendMessage(template.content, {"1": "Ada"}, "next")


NIGHT = silence("22:00", "08:00")


@pytest.mark.parametrize(
    ("now", "until"),
    [
        ("2026-03-13T21:59:59.999999", None),
        ("2026-03-13T22:00", "2026-03-14T08:00"),
        ("2026-03-14T00:00", "2026-03-14T08:00"),
        ("2026-03-14T07:59:59.999999", "2026-03-14T08:00"),
        ("2026-03-14T08:00", None),
    ],
)
def test_silence_includes_its_start_excludes_its_end_and_crosses_midnight(now: str, until: str | None) -> None:
    found = decided(now=local(now), silences=[NIGHT])
    assert found == (SENT if until is None else holds(local(until)))


@pytest.mark.parametrize("turned", [False, True])
def test_of_two_windows_the_later_end_counts(turned: bool) -> None:
    both = [NIGHT, silence("20:00", "09:30")]
    found = decided(now=local("2026-03-14T03:00"), silences=both[::-1] if turned else both)
    assert found == holds(local("2026-03-14T09:30"))


def test_each_window_follows_the_clock_of_its_own_zone() -> None:
    # 22:00 in Berlin is 18:00 in São Paulo, four hours before its own silence begins.
    both = [NIGHT, silence("22:00", "06:00", BERLIN)]
    assert decided(now=local("2026-03-13T17:59"), silences=both) == SENT
    assert decided(now=local("2026-03-13T18:00"), silences=both) == holds(local("2026-03-14T06:00", BERLIN))
    assert decided(now=local("2026-03-13T23:00"), silences=both) == holds(local("2026-03-14T08:00"))


def test_a_window_that_begins_where_the_other_ends_holds_it_again() -> None:
    both = [NIGHT, silence("08:00", "09:00")]
    first = decided(now=local("2026-03-14T07:00"), silences=both)
    assert first == holds(local("2026-03-14T08:00"))
    assert decided(now=local("2026-03-14T08:00"), silences=both) == holds(local("2026-03-14T09:00"))
    assert decided(now=local("2026-03-14T09:00"), silences=both) == SENT


def test_silence_ends_with_the_clock_on_the_wall_also_when_that_is_changed() -> None:
    night = [silence("22:00", "02:30", BERLIN)]
    assert decided(now=local("2026-03-29T01:00", BERLIN), silences=night) == holds(local("2026-03-29T03:00", BERLIN))


def test_the_cap_skips_when_it_is_reached() -> None:
    assert decided(most=3, recent=2) == SENT
    assert decided(most=3, recent=3) == SkipSend(SkipReason.FREQUENCY_CAP, "next")
    assert decided(most=3, recent=9) == SkipSend(SkipReason.FREQUENCY_CAP, "next")
    assert decided(recent=9) == SENT


def test_the_cap_counts_days_of_24_hours() -> None:
    now = local("2026-03-29T12:00", BERLIN)  # that day had 23
    assert counts_after(2, now) == now - timedelta(hours=48)


@pytest.mark.parametrize(
    ("content", "lacks", "reason"),
    [
        (SmsSend("Oi"), {"phone": ""}, SkipReason.NO_PHONE),
        (ChatappSend("tpl_1", "num_1"), {"phone": ""}, SkipReason.NO_PHONE),
        (RcsSend("Oi"), {"phone": ""}, SkipReason.NO_PHONE),
        (EmailSend("etpl_1"), {"email": None}, SkipReason.NO_EMAIL),
    ],
)
def test_whoever_has_no_address_of_the_channel_is_skipped(content: Any, lacks: Any, reason: SkipReason) -> None:
    step = SendStep("s", content, "next")
    assert decided(step) == SendMessage(content, {}, "next")
    assert decided(step, replace(ADA, **lacks)) == SkipSend(reason, "next")
    others = {"phone": "", "email": None}
    assert decided(step, replace(ADA, **{name: others[name] for name in others if name not in lacks})) == SendMessage(
        content, {}, "next"
    )


def test_an_obstacle_skips_with_its_own_reason_before_the_cap() -> None:
    for obstacle in (SkipReason.TEMPLATE_UNAVAILABLE, SkipReason.NUMBER_UNAVAILABLE, SkipReason.EMAIL_SUPPRESSED):
        assert decided(obstacle=obstacle, most=1, recent=1) == SkipSend(obstacle, "next")


def test_an_empty_variable_skips_and_nothing_is_sent_broken() -> None:
    assert decided(contact=replace(ADA, name=None)) == SkipSend(SkipReason.VARIABLE_EMPTY, "next")


def test_what_would_be_skipped_is_held_too_and_looked_at_when_the_silence_is_over() -> None:
    late = local("2026-03-13T23:00")
    nameless = replace(ADA, name=None)
    assert decided(contact=nameless, now=late, silences=[NIGHT]) == holds(local("2026-03-14T08:00"))
    assert decided(contact=ADA, now=local("2026-03-14T08:00"), silences=[NIGHT]) == SENT


def test_a_test_knows_neither_silence_nor_cap_but_every_obstacle() -> None:
    known: dict[str, Any] = {"silences": [NIGHT], "most": 1, "recent": 5}
    late = local("2026-03-13T23:00")
    assert decided(now=late, test=True, **known) == SENT
    assert decided(contact=replace(ADA, name=None), now=late, test=True, **known) == SkipSend(
        SkipReason.VARIABLE_EMPTY, "next"
    )
    assert decided(now=late, test=True, obstacle=SkipReason.CONTENT_INVALID, **known) == SkipSend(
        SkipReason.CONTENT_INVALID, "next"
    )
