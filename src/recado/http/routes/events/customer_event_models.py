"""What callers send and receive of customer events (C21)."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from recado.domain.contacts.contact import MOST_EMAIL, MOST_EXTERNAL_ID
from recado.domain.events.customer_event import (
    ATTRIBUTED_CHANNELS,
    MOST_EVENT_ID,
    MOST_NAME,
    MOST_VALUE,
    MOST_WINDOW_HOURS,
    USUAL_CURRENCY,
    USUAL_WINDOW_HOURS,
    is_event_name,
)
from recado.http.api.models import ApiModel, QueryInt, Timestamp
from recado.http.api.paging import CursorPage, CursorQuery, PeriodQuery
from recado.http.routes.messages.message_models import Id, Metadata

USUAL_LIMIT, MOST_LISTED = 100, 500


def _name(text: str) -> str:
    if not is_event_name(text):
        raise PydanticCustomError("event_name", "must be letters, digits, _ . : and - only")
    return text


Name = Annotated[
    str,
    Field(min_length=1, max_length=MOST_NAME, description="What happened: of A-Za-z0-9 and _ . : -"),
    AfterValidator(_name),
]
EventId = Annotated[
    str,
    Field(
        min_length=1, max_length=MOST_EVENT_ID, description="Yours. A repeat gets the event that is stored under it."
    ),
]
Currency = Annotated[str, Field(pattern="^[A-Za-z]{3}$", description="ISO 4217")]
Properties = Annotated[Metadata, Field(description="As `metadata` of messages, and no personal data either.")]


class ContactOfEvent(ApiModel):
    """Whose event it is, by at least one of the four; the first that finds a contact counts, in this order."""

    contact_id: Id | None = None
    external_id: Annotated[str, Field(min_length=1, max_length=MOST_EXTERNAL_ID)] | None = None
    phone: Annotated[str, Field(min_length=1, examples=["+5511987654321"])] | None = None
    email: Annotated[str, Field(min_length=1, max_length=MOST_EMAIL)] | None = None


class CustomerEventIn(ApiModel):
    """What a customer did."""

    name: Name
    event_id: EventId
    contact: ContactOfEvent
    occurred_at: Annotated[
        Timestamp | None, Field(description="By default now; at most 365 days ago, and 5 minutes ahead.")
    ] = None
    value: Annotated[float, Field(ge=0, le=MOST_VALUE)] | None = None
    currency: Currency = USUAL_CURRENCY
    properties: Properties = None
    attribution_window_hours: Annotated[
        int, Field(ge=1, le=MOST_WINDOW_HOURS, description="How long before the event a message may have left.")
    ] = USUAL_WINDOW_HOURS


class Attribution(ApiModel):
    """The last message that was sent to the contact before the event, within the window."""

    message_id: str
    channel: Literal[ATTRIBUTED_CHANNELS]  # type: ignore[valid-type]
    sent_at: Timestamp
    horas_ate_o_evento: Annotated[float, Field(description="From `sentAt` to `occurredAt`, with two decimals.")]
    campaign_id: str | None = None
    journey_id: str | None = None
    journey_step_id: str | None = None
    journey_run_id: Annotated[str | None, Field(description="The execution.")] = None


class CustomerEventOut(ApiModel):
    """A stored event. `contactId` is absent where no contact was found."""

    id: str
    name: str
    event_id: str
    contact_id: str | None = None
    contact_external_id: str | None = None
    occurred_at: Timestamp
    value: float | None = None
    currency: str
    properties: dict[str, Any] | None = None
    attribution: Attribution | None
    duplicate: Annotated[bool, Field(description="Whether an earlier request had stored it.")]


class CustomerEventPage(CursorPage[CustomerEventOut]):
    """Events, the last one that occurred first."""


class CustomerEventQuery(CursorQuery, PeriodQuery):
    """A period of at most 92 days, and filters."""

    from_: Annotated[Timestamp, Field(alias="from", description="Nothing from before this moment.")]
    to: Annotated[Timestamp, Field(description="Nothing from this moment on.")]
    name: Annotated[str | None, Field(min_length=1, max_length=MOST_NAME)] = None
    contact_id: Annotated[str | None, Field(min_length=1, max_length=64)] = None
    limit: Annotated[QueryInt, Field(ge=1, le=MOST_LISTED, description="How many items to answer.")] = USUAL_LIMIT
