"""What the tables of reports can say of channels whose messages end otherwise (C15.4, C16.3)."""

from dataclasses import replace
from enum import StrEnum
from itertools import permutations
from typing import Any

import pytest

from recado.domain.channels.chatapp import POLICY
from recado.domain.core.machine import Machine


class S(StrEnum):
    """Of a text message, or of an e-mail."""

    SENDING = "sending"
    SENT = "sent"
    DELIVERED = "delivered"
    UNDELIVERED = "undelivered"
    BOUNCED = "bounced"
    COMPLAINED = "complained"


class E(StrEnum):
    """What moves it."""

    REPORT_SENT = "report_sent"
    REPORT_DELIVERED = "report_delivered"
    REPORT_UNDELIVERED = "report_undelivered"
    NO_REPORT = "no_report"
    LATE_DELIVERED = "late_delivered"
    BOUNCED = "bounced"
    COMPLAINED = "complained"


class R(StrEnum):
    """What is reported."""

    DELIVERED = "delivered"
    UNDELIVERED = "undelivered"
    BOUNCED = "bounced"
    COMPLAINED = "complained"


SMS: Any = replace(
    POLICY,
    machine=Machine(
        "text message",
        {
            (S.SENDING, E.REPORT_SENT): S.SENT,
            (S.SENT, E.REPORT_DELIVERED): S.DELIVERED,
            (S.SENT, E.REPORT_UNDELIVERED): S.UNDELIVERED,
            (S.SENT, E.NO_REPORT): S.UNDELIVERED,
            (S.UNDELIVERED, E.LATE_DELIVERED): S.DELIVERED,
        },
    ),
    reports={
        (S.SENDING, R.DELIVERED): (E.REPORT_SENT, E.REPORT_DELIVERED),
        (S.SENDING, R.UNDELIVERED): (E.REPORT_SENT, E.REPORT_UNDELIVERED),
        (S.SENT, R.DELIVERED): (E.REPORT_DELIVERED,),
        (S.SENT, R.UNDELIVERED): (E.REPORT_UNDELIVERED,),
    },
    late_reports={(S.UNDELIVERED, R.DELIVERED): (E.LATE_DELIVERED,)},
)  # type: ignore[arg-type]

EMAIL: Any = replace(
    POLICY,
    machine=Machine(
        "e-mail",
        {
            (S.SENT, E.REPORT_DELIVERED): S.DELIVERED,
            (S.SENT, E.BOUNCED): S.BOUNCED,
            (S.DELIVERED, E.BOUNCED): S.BOUNCED,
            (S.SENT, E.COMPLAINED): S.COMPLAINED,
            (S.DELIVERED, E.COMPLAINED): S.COMPLAINED,
        },
    ),
    reports={
        (S.SENT, R.DELIVERED): (E.REPORT_DELIVERED,),
        **{(state, R.BOUNCED): (E.BOUNCED,) for state in (S.SENT, S.DELIVERED)},
        **{(state, R.COMPLAINED): (E.COMPLAINED,) for state in (S.SENT, S.DELIVERED)},
    },
    late_reports={},
)  # type: ignore[arg-type]


def after(policy: Any, state: S, *reports: R, uncertain: bool = False) -> S:
    for report in reports:
        for event in policy.report_moves(state, report, uncertain=uncertain):
            state = policy.machine.move(state, event)
    return state


@pytest.mark.parametrize(("uncertain", "end"), [(True, S.DELIVERED), (False, S.UNDELIVERED)])
def test_a_text_message_of_which_nobody_reported_for_days_is_delivered_by_a_late_report(
    uncertain: bool, end: S
) -> None:
    assert after(SMS, S.UNDELIVERED, R.DELIVERED, uncertain=uncertain) is end
    assert after(SMS, S.UNDELIVERED, R.UNDELIVERED, uncertain=uncertain) is S.UNDELIVERED


def test_each_report_of_a_text_message_has_its_guard() -> None:
    assert SMS.report_guard(R.DELIVERED) == (S.DELIVERED, (S.SENDING, S.SENT), (S.UNDELIVERED,))
    assert SMS.report_guard(R.UNDELIVERED) == (S.UNDELIVERED, (S.SENDING, S.SENT), ())
    assert SMS.report_guard(R.BOUNCED) == (None, (), ())


@pytest.mark.parametrize("reports", [*permutations([R.DELIVERED, R.BOUNCED, R.COMPLAINED])])
def test_an_email_ends_as_the_first_bounce_or_complaint_says(reports: tuple[R, ...]) -> None:
    last = next(each for each in reports if each is not R.DELIVERED)
    assert after(EMAIL, S.SENT, *reports) is S(last.value)
