"""Customer events: what a customer did, when it may have been, and which message it is attributed to (C21).

An event is stored once for each `event_id` of its caller, and never changes; only a deleted contact takes its external
id out of it.
"""

import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from recado.domain.core.errors import Problem, field_refused
from recado.domain.messages.message import MessageStatus

MOST_NAME: Final = 100
MOST_EVENT_ID: Final = 255
MOST_VALUE: Final = 10**12
USUAL_CURRENCY: Final = "BRL"
"""Of an event that names none; and the only one that the conversions of a campaign add up (C15.6)."""

AHEAD: Final = timedelta(minutes=5)
OLDEST: Final = timedelta(days=365)

USUAL_WINDOW_HOURS: Final = 168
MOST_WINDOW_HOURS: Final = 720
LONGEST_WAY: Final = timedelta(days=180)
"""From acceptance to departure: 90 days of a schedule (C15.2), and as long again for all that holds a message back."""
MOST_LOOKED_AT: Final = 1_000
"""Departures to a contact, the last one first: so many are looked at for one event, as some have failed since."""

MOST_OF_ADDRESS: Final = 200
"""Contacts with one e-mail address, of whom the last one that changed is taken: so many are looked at."""

ATTRIBUTED_CHANNELS: Final = ("chatapp", "sms", "rcs", "email")
ATTRIBUTED_STATES: Final = (MessageStatus.SENT, MessageStatus.DELIVERED, MessageStatus.READ)
"""In which a message may be the last touch: it got there, as far as anybody knows."""

LONGEST_PERIOD: Final = timedelta(days=92)
"""That one list may ask for."""

_NAME: Final = re.compile(rf"[A-Za-z0-9_.:-]{{1,{MOST_NAME}}}").fullmatch
_AN_HOUR: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class ContactKeys:
    """By what a contact is looked for, in this order. The phone is canonical; `email` as `email_key` has it."""

    contact_id: str | None = None
    external_id: str | None = field(default=None, repr=False)
    phone: str | None = field(default=None, repr=False)
    email: str | None = field(default=None, repr=False)


@dataclass(slots=True, eq=False, repr=False)
class NewCustomerEvent:
    """One event to store. `properties`: a JSON text; `window`: how long before it a message may have left."""

    organization_id: str
    env: str
    id: str
    event_id: str
    name: str
    contact: ContactKeys
    occurred_at: datetime
    window: timedelta
    value: Decimal | None
    currency: str
    properties: str | None


@dataclass(frozen=True, slots=True)
class JourneyTouch:
    """What made the message: a step of a journey, in an execution."""

    journey_id: str
    step_id: str
    execution_id: str


@dataclass(frozen=True, slots=True)
class Touch:
    """The message that an event is attributed to. `campaign_id`, `journey`: of what it is a part, if of anything."""

    message_id: str
    channel: str
    sent_at: datetime
    campaign_id: str | None
    journey: JourneyTouch | None

    def hours_until(self, occurred_at: datetime) -> float:
        """From its departure to the event: hours, with two decimals; none where both are shown as one moment."""
        return max(0.0, round((occurred_at - self.sent_at) / _AN_HOUR, 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomerEvent:
    """A stored event. `contact_id` None: no contact was found; `touch` None: it is attributed to no message.

    `properties`: a JSON text.
    """

    id: str
    event_id: str
    name: str
    contact_id: str | None
    contact_external_id: str | None = field(repr=False)
    occurred_at: datetime
    value: Decimal | None
    currency: str
    properties: str | None = field(repr=False)
    touch: Touch | None


def is_event_name(text: str) -> bool:
    """Whether `text` may name a kind of event: 1 to 100 of letters, digits, `_`, `.`, `:` and `-`."""
    return _NAME(text) is not None


def check_moment(occurred_at: datetime, now: datetime) -> None:
    """Raise EVENT_IN_FUTURE beyond 5 minutes ahead, EVENT_TOO_OLD beyond 365 days ago."""
    if occurred_at > now + AHEAD:
        message = "`occurredAt` is more than 5 minutes in the future."
        raise field_refused("EVENT_IN_FUTURE", "/occurredAt", message)
    if occurred_at < now - OLDEST:
        raise field_refused("EVENT_TOO_OLD", "/occurredAt", "`occurredAt` is more than 365 days ago.")


def check_period(start: datetime, end: datetime) -> None:
    """Raise INVALID_PERIOD where a list would go over more than 92 days."""
    if end - start > LONGEST_PERIOD:
        raise Problem("INVALID_PERIOD", f"The period is not valid: it has at most {LONGEST_PERIOD.days} days.")
