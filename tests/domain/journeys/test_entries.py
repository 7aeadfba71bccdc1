"""Who enters, who enters again, and what an event brings along (C9.7)."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from recado.domain.contacts.consent import ConsentStatus
from recado.domain.events.customer_event import CustomerEvent
from recado.domain.journeys.entries import (
    EntryHistory,
    EntryRefusal,
    entry_of,
    entry_refusal,
    event_enters,
)

NOW = datetime(2026, 3, 13, 12, tzinfo=UTC)
TICK = timedelta(microseconds=1)
DAY = timedelta(hours=24)
NEVER_ENTERED = EntryHistory()


def refused(
    interval: timedelta | None, history: EntryHistory, consent: ConsentStatus = ConsentStatus.UNKNOWN
) -> EntryRefusal | None:
    return entry_refusal(consent, interval, history, NOW)


@pytest.mark.parametrize("interval", [None, DAY])
@pytest.mark.parametrize("consent", [ConsentStatus.UNKNOWN, ConsentStatus.GRANTED])
def test_whoever_did_not_refuse_enters_a_first_time(interval: timedelta | None, consent: ConsentStatus) -> None:
    assert refused(interval, NEVER_ENTERED, consent) is None


@pytest.mark.parametrize("interval", [None, DAY])
def test_whoever_refused_never_enters(interval: timedelta | None) -> None:
    for history in (NEVER_ENTERED, EntryHistory(NOW - 9 * DAY), EntryHistory(NOW, active=True)):
        assert refused(interval, history, ConsentStatus.DENIED) is EntryRefusal.OPTED_OUT


def test_without_reentry_one_entry_is_all() -> None:
    for history in (EntryHistory(NOW - 999 * DAY), EntryHistory(NOW, active=True)):
        assert refused(None, history) is EntryRefusal.ENTERED_BEFORE


def test_whoever_is_under_way_does_not_enter_again_however_long_that_takes() -> None:
    assert refused(DAY, EntryHistory(NOW - 80 * DAY, active=True)) is EntryRefusal.UNDER_WAY


def test_the_interval_counts_from_the_last_entry() -> None:
    assert refused(DAY, EntryHistory(NOW - DAY + TICK)) is EntryRefusal.TOO_SOON
    assert refused(DAY, EntryHistory(NOW - DAY)) is None


ACTIVATED = NOW - 10 * DAY
EVENT = CustomerEvent(
    id="cev_1", event_id="ev-1", name="order", contact_id="cnt_1", contact_external_id=None,
    occurred_at=NOW - timedelta(hours=1), value=None, currency="BRL", properties=None, touch=None,
)  # fmt: skip


def enters(event: CustomerEvent, *, live: bool = True, duplicate: bool = False) -> bool:
    return event_enters(event, "order", ACTIVATED, NOW, live=live, duplicate=duplicate)


def test_a_recent_event_of_the_name_brings_its_contact_in() -> None:
    assert enters(EVENT)
    assert enters(replace(EVENT, occurred_at=NOW + timedelta(minutes=1)))  # the clocks of callers are ahead, too


@pytest.mark.parametrize("changes", [{"contact_id": None}, {"name": "Order"}, {"name": "orders"}])
def test_any_other_event_does_not(changes: dict[str, object]) -> None:
    assert not enters(replace(EVENT, **changes))  # type: ignore[arg-type]


def test_neither_a_test_key_nor_a_repeat_brings_anybody_in() -> None:
    assert not enters(EVENT, live=False)
    assert not enters(EVENT, duplicate=True)


def test_an_event_is_younger_than_the_activation_and_than_72_hours() -> None:
    assert not enters(replace(EVENT, occurred_at=NOW - timedelta(hours=72)))
    assert enters(replace(EVENT, occurred_at=NOW - timedelta(hours=72) + TICK))
    just = replace(EVENT, occurred_at=NOW - TICK)
    assert not event_enters(just, "order", NOW - TICK, NOW, live=True, duplicate=False)
    assert event_enters(just, "order", NOW - 2 * TICK, NOW, live=True, duplicate=False)


def test_an_entry_has_what_the_event_says_and_its_own_fields_come_first() -> None:
    event = replace(EVENT, value=Decimal("199.9"), properties='{"plan": "Anual", "name": "hers", "eventId": 1}')
    assert entry_of(event) == {
        "plan": "Anual",
        "value": 199.9,
        "currency": "BRL",
        "name": "order",
        "eventId": "ev-1",
    }
    assert entry_of(EVENT) == {"currency": "BRL", "name": "order", "eventId": "ev-1"}
    assert entry_of(replace(EVENT, value=Decimal(0)))["value"] == 0
