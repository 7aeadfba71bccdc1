"""Who enters a journey, and who enters again (C9.7)."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

import orjson

from recado.domain.contacts.consent import ConsentStatus
from recado.domain.core.ids import created_at
from recado.domain.events.customer_event import CustomerEvent
from recado.domain.journeys.field_values import Entry

EVENT_RECENCY: Final = timedelta(hours=72)
"""How long after it occurred an event still brings its contact in; not a moment longer."""

TOOK_OVER: Final = timedelta(seconds=30)
"""How long after the moment of an activation its commit may be (C31): what is told until then may be the former's."""


class EntryRefusal(StrEnum):
    """Why a contact does not enter (`motivo`)."""

    OPTED_OUT = "opt_out"
    ENTERED_BEFORE = "ja_entrou"
    UNDER_WAY = "em_andamento"
    TOO_SOON = "intervalo"


@dataclass(frozen=True, slots=True)
class EntryHistory:
    """What is known of the contact in all versions of the journey together. `last_at`: None when it never entered."""

    last_at: datetime | None = None
    active: bool = False


def entry_refusal(
    consent: ConsentStatus, interval: timedelta | None, history: EntryHistory, now: datetime
) -> EntryRefusal | None:
    """Why the contact does not enter now; None when it does (C9.7.2, C9.7.3).

    `interval`: the least time between two entries, of which the first has ended; None: there is no second one.
    """
    if consent is ConsentStatus.DENIED:
        return EntryRefusal.OPTED_OUT
    if history.last_at is None:
        return None
    if interval is None:
        return EntryRefusal.ENTERED_BEFORE
    if history.active:
        return EntryRefusal.UNDER_WAY
    return EntryRefusal.TOO_SOON if now - history.last_at < interval else None


def event_enters(
    event: CustomerEvent, name: str, activated_at: datetime, now: datetime, *, live: bool, duplicate: bool
) -> bool:
    """Whether an event brings its contact into a journey that its `name` triggers.

    `live`: it was made with a live key; `duplicate`: an earlier request had stored it.
    """
    return (
        live
        and not duplicate
        and event.contact_id is not None
        and event.name == name
        and event.occurred_at > activated_at
        and now - event.occurred_at < EVENT_RECENCY
    )


def told_before(event: CustomerEvent, moment: datetime) -> bool:
    """Whether an event came in before a moment, whenever it had occurred."""
    return created_at(event.id) < moment


def entry_of(event: CustomerEvent) -> Entry:
    """The data of an entry by an event: its properties, and over them what is the event's own (C9.7.6)."""
    properties: Entry = {} if event.properties is None else orjson.loads(event.properties)
    own: Entry = {"currency": event.currency, "name": event.name, "eventId": event.event_id}
    return {**properties, **own} if event.value is None else {**properties, **own, "value": float(event.value)}
