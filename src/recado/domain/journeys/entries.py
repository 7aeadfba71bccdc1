"""Who enters a journey, and who enters again (C9.7)."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from recado.domain.contacts.consent import ConsentStatus
from recado.domain.journeys.field_values import Entry

EVENT_RECENCY: Final = timedelta(hours=72)
"""How long after it occurred an event still brings its contact in; not a moment longer."""


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


@dataclass(frozen=True, slots=True)
class OccurredEvent:
    """A customer event, as the rules of entry see it. `contact_id` None: it belongs to nobody who is known."""

    event_id: str
    name: str
    occurred_at: datetime
    contact_id: str | None
    live: bool
    duplicate: bool = False
    value: int | float | None = None
    currency: str | None = None
    properties: Entry = field(default_factory=dict)


def event_enters(event: OccurredEvent, name: str, activated_at: datetime, now: datetime) -> bool:
    """Whether an event brings its contact into a journey that its `name` triggers."""
    return (
        event.live
        and not event.duplicate
        and event.contact_id is not None
        and event.name == name
        and event.occurred_at > activated_at
        and now - event.occurred_at < EVENT_RECENCY
    )


def entry_of(event: OccurredEvent) -> Entry:
    """The data of an entry by an event: its properties, and over them what is the event's own (C9.7.6)."""
    own = {"value": event.value, "currency": event.currency, "name": event.name, "eventId": event.event_id}
    return {**event.properties, **{key: value for key, value in own.items() if value is not None}}
