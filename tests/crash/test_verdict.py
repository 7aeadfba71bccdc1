"""The judge of the crash rounds sees every kind of fault that they look for."""

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.crash.endpoint import Arrival
from tests.crash.rows import CHARGE, Counts, Entry, Event, Untold
from tests.crash.samples import (
    Change,
    at,
    batch,
    killed,
    letter,
    of_third,
    provider_died,
    request,
    sound,
    sound_events,
    sound_wallet,
    unasked,
    uncharged,
    with_arrivals,
    with_events,
    with_message,
    with_requests,
    with_rows,
    with_wallet,
    without_message,
)
from tests.crash.verdict import tightest, violations

from recado.simulator.behaviour import Given

LEDGER, PRICES = sound_wallet().ledger, sound_wallet().prices
WRONG = "its X-SVC-Signature is wrong"
UNCERTAIN = {"status": "sending", "waiting": {"reason": "uncertain"}, "sentAt": None}

FAULTS: dict[str, tuple[Change, ...]] = {
    "was accepted and is gone": (
        lambda it: replace(it, messages={name: each for name, each in it.messages.items() if name != "msg_3"}),
    ),
    "was never answered": (lambda it: replace(it, letters=[*it.letters, replace(letter(99), ids=[])]),),
    "is not the message that was accepted": (with_message(3, templateVars=["another"]),),
    "the message msg_3 was sent 2 times": (of_third(lambda it: [it, replace(it, at=at(9), recipient="else")]),),
    "the recipient person-3 was sent 2 times": (of_third(lambda it: [it, replace(it, id="msg_9x")]),),
    "accepted once more under the same key": (with_message(31, to=letter(3).recipient),),
    "no answer named it": (of_third(lambda it: [it, request(77)]),),
    "was sent under the key": (of_third(lambda it: [replace(it, idempotency_key="other")]),),
    "msg_3 is queued": (with_message(3, status="queued"),),
    "msg_3 is sent": (with_message(3, status="sent"),),
    "msg_3 is uncertain": (with_message(3, **UNCERTAIN),),
    "without a definite reason": (
        with_message(3, status="failed", lastError="provider_error: it went wrong"),
        of_third(lambda it: [replace(it, outcome=Given.REFUSED)]),
    ),
    "without readAt": (with_message(3, readAt=None),),
    "before the kill, and not settled": (killed("msg_3", seconds=9.0),),
    "had begun at a kill and did not arrive": (killed(*(f"msg_{index}" for index in range(100, 103))),),
    "11 departures within 0:00:00.9": (with_message(13, sentAt=at(1.25).isoformat()),),
    "11 departures within 0:00:00.5": (
        # After a restart, at the old pace at once: nobody recorded these departures but the provider.
        with_requests(lambda it: [replace(it, outcome=Given.LOST, at=at(int(it.id[4:]) / 20), answered_at=None)]),
    ),
    "msg_3 left at 2026-11-20 12:00:00.300000+00:00 and arrived at 2026-11-20 12:00:00.200000": (
        of_third(lambda it: [replace(it, at=at(0.2))]),
    ),
    "msg_3 left at 2026-11-20 12:00:00.300000+00:00 and arrived at 2026-11-20 12:00:06": (
        of_third(lambda it: [replace(it, at=at(6))]),
    ),
    "msg_3 is uncertain (": (
        with_message(3, **UNCERTAIN),
        of_third(lambda it: [replace(it, referenced=False)]),
        provider_died(1.0),  # its answer had 0.7 s
    ),
    "msg_3 is uncertain ({": (
        with_message(3, **UNCERTAIN),
        of_third(lambda it: [replace(it, referenced=False, answered_at=None)]),
        provider_died(30.0),  # no call lasts that long
    ),
    "messages are uncertain that the provider never saw": (
        provider_died(2.0, **{f"msg_{index}": 1.9 for index in range(100, 103)}),
    ),
    "msg_3 is read and has no event message.read": (with_events(3, "sent", "delivered"),),
    "msg_3 is read and has an event message.failed": (with_events(3, "sent", "read", "failed"),),
    "msg_3 is failed and has an event message.sent": (
        with_message(3, status="failed", lastError="policy_blocked: no", sentAt=None),
        with_events(3, "sent", "failed"),
    ),
    "msg_3 has 2 events message.sent": (
        with_rows(events=(*sound_events(), Event("evt_more", "message.sent", "msg_3"))),
    ),
    "msg_99, which does not exist": (with_events(99, "sent"),),
    "evt_3_read, message.read of msg_3, never reached": (
        with_arrivals(lambda it: [arrival for arrival in it if arrival.event_id != "evt_3_read"]),
    ),
    "3 deliveries are still to be made: dlv_1; dlv_2; dlv_3": (
        with_rows(
            untold=(
                Untold("dlv_1", attempts=0, due_in=-0.1, pause=None),
                Untold("dlv_2", attempts=4, due_in=-5.1, pause=64.0),
                Untold("dlv_3", attempts=3, due_in=30.0, pause=64.0),
            )
        ),
    ),
    "1 deliveries were given up": (with_rows(dropped=1),),
    "evt_3_read arrived, and its X-SVC-Signature is wrong": (
        with_arrivals(lambda it: [*it, Arrival("evt_3_read", "message.read", "msg_3", (WRONG,))]),
    ),
    "evt_77 arrived, and is not in the database": (
        with_arrivals(lambda it: [*it, Arrival("evt_77", "message.read", "msg_3")]),
    ),
    "evt_3_read told message.read of msg_4": (
        with_arrivals(lambda it: [*it, Arrival("evt_3_read", "message.read", "msg_4")]),
    ),
}


FAULTS |= {
    "the balance is 9819 coins, the ledger's sum 9820": (with_wallet(balance=9_819),),
    "says that 9993 coins were left, not 9994": (
        with_wallet(ledger=(*LEDGER[:1], replace(LEDGER[1], balance_after=9_993), *LEDGER[2:])),
    ),
    "7 coins are held, by rows of the queue 0": (with_wallet(held=7),),
    "6 coins are held of a balance of 5": (with_wallet(balance=5, held=6),),
    "msg_3 was charged 2 times": (with_wallet(ledger=(*LEDGER, Entry("led_more", CHARGE, -6, 9_814, "msg_3"))),),
    "msg_3 is read, was charged None and holds None of 6": (uncharged(3),),
    "msg_3 is read, was charged 6 and holds None of 7": (with_wallet(prices={**PRICES, "msg_3": 7}),),
    "msg_3 is failed and never sent, was charged 6": (
        with_message(3, status="failed", lastError="policy_blocked: no", sentAt=None),
    ),
    "msg_3 is sending, was charged 6 and holds None": (with_message(3, **UNCERTAIN),),
    "msg_3 has no price": (with_wallet(prices={**PRICES, "msg_3": None}),),
    "msg_99 was charged, and does not exist": (
        with_wallet(ledger=(*LEDGER, Entry("led_more", CHARGE, -6, 9_814, "msg_99"))),
    ),
    "31 units count for the tier, and 30 were charged": (with_wallet(units=31),),
}

FAULTS |= {
    "1 of 2 messages of btc_1 are missing": (batch(3, 4), without_message(3)),
    "1 messages of btc_1 were not asked for": (
        batch(3, 4),
        with_message(5, batchId="btc_1"),
    ),
    "no answer named btc_1": (batch(3, 4), unasked),
    "btc_1 is running, and none of its messages": (batch(3, 4, status="running"),),
    "btc_1 is canceled, and none of its messages": (batch(3, 4, status="canceled"),),
    "msg_3 is archived": (
        batch(3, 4, status="canceled", orders=("cancel",)),
        with_message(3, status="archived", batchId="btc_1"),
    ),
    "the totals of btc_1 say": (batch(3, 4, delivered=1),),
    "the totals of spring say": (batch(3, 4), with_message(5, campaignId="spring")),
}


def test_a_sound_record_holds_no_fault() -> None:
    assert violations(sound()) == []


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_seen(fault: str) -> None:
    evidence = sound()
    for spoil in FAULTS[fault]:
        evidence = spoil(evidence)

    assert any(fault in line for line in violations(evidence)), violations(evidence)


ALLOWED: dict[str, tuple[Change, ...]] = {
    "lost answer": (
        with_message(3, **UNCERTAIN),
        with_events(3),
        uncharged(3, msg_3=6),
        of_third(lambda it: [replace(it, outcome=Given.LOST, receipts=())]),
    ),
    "claimed at a kill": (
        with_message(3, **UNCERTAIN),
        with_events(3),
        uncharged(3, msg_3=6),
        of_third(lambda it: []),
        killed("msg_3", seconds=0.3),
    ),
    "nameless receipts": (
        with_message(3, **UNCERTAIN),
        with_events(3),
        uncharged(3, msg_3=6),
        of_third(lambda it: [replace(it, referenced=False)]),
        killed("msg_3"),
    ),
    "refused": (
        with_message(3, status="failed", lastError="policy_blocked: no", sentAt=None),
        with_events(3, "failed"),
        uncharged(3),
        of_third(lambda it: [replace(it, outcome=Given.REFUSED, receipts=())]),
    ),
    "failed after it was sent": (
        with_message(3, status="failed", lastError="recipient_unreachable: no"),
        with_events(3, "sent", "failed"),
        of_third(lambda it: [replace(it, receipts=("failed",))]),
    ),
    "slowed down first": (of_third(lambda it: [replace(it, outcome=Given.SLOW_DOWN, at=at(0)), it]),),
    "told to try again first": (of_third(lambda it: [replace(it, outcome=Given.CODED, at=at(0)), it]),),
    "without a key at the hosted API": (of_third(lambda it: [replace(it, protocol="cloud", idempotency_key=None)]),),
    "answer cut off by the provider's death": (
        with_message(3, **UNCERTAIN),
        with_events(3),
        uncharged(3, msg_3=6),
        of_third(lambda it: [replace(it, referenced=False, answered_at=None)]),
        provider_died(0.31),
    ),
    "never seen by the provider that died": (
        with_message(3, **UNCERTAIN),
        with_events(3),
        uncharged(3, msg_3=6),
        of_third(lambda it: []),
        provider_died(0.3, msg_3=0.29),
    ),
    "sent in a batch": (batch(3, 4),),
    "withdrawn with its batch": (
        batch(3, 4, status="canceled", orders=("cancel",)),
        with_message(3, status="archived", batchId="btc_1", campaignId="spring", sentAt=None),
        with_events(3),
        uncharged(3),
        of_third(lambda it: []),
        with_rows(totals={key: Counts(2, read=1, archived=1, charged_coins=6) for key in ("btc_1", "spring")}),
    ),
    "slowed down, and not seen again by the provider that died": (
        with_message(3, **UNCERTAIN),
        with_events(3),
        uncharged(3, msg_3=6),
        of_third(lambda it: [replace(it, outcome=Given.SLOW_DOWN, at=at(0))]),
        provider_died(0.3, msg_3=0.29),
    ),
    "answered while the database was away": (
        killed("msg_3", seconds=9.0),
        lambda it: replace(it, database_deaths=[at(0.4)]),
    ),
    "answered while the service stood still": (
        killed("msg_3", seconds=9.0),
        lambda it: replace(it, stops=[at(0.4)]),
    ),
    "put off once, and claimed again at the kill": (
        with_message(3, **UNCERTAIN),
        with_events(3),
        uncharged(3, msg_3=6),
        of_third(lambda it: [replace(it, outcome=Given.CODED)]),
        killed("msg_3", seconds=9.0, since=8.9),
    ),
    "refused four times, and due in half a minute": (
        with_rows(
            untold=(
                Untold("dlv_1", attempts=4, due_in=30.0, pause=57.6),
                Untold("dlv_2", attempts=4, due_in=30.0, pause=70.4),
                Untold("dlv_3", attempts=1, due_in=-1.0, pause=1.0),  # its attempt is under way
            )
        ),
    ),
    "told twice": (with_arrivals(lambda it: [*it, it[0]]),),
}


@pytest.mark.parametrize("allowed", ALLOWED)
def test_what_may_happen_is_no_fault(allowed: str) -> None:
    evidence = sound()
    for change in ALLOWED[allowed]:
        evidence = change(evidence)

    assert violations(evidence) == []


def test_the_tightest_departures_are_found_wherever_they_lie() -> None:
    times = [at(0), at(5), at(5.3), at(5.4), at(9)]

    assert tightest(times, 2) == timedelta(seconds=0.4)
    assert tightest(times, 5) is None
