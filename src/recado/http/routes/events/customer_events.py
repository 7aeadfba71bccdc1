"""Customer events: post one, list them (C21)."""

from collections.abc import Awaitable
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any, Final

import orjson

from recado.domain.contacts.contact import email_key
from recado.domain.core.errors import FieldError, validation_error
from recado.domain.core.ids import CUSTOMER_EVENT
from recado.domain.core.metadata import metadata_errors
from recado.domain.core.retention import EVENTS_MONTHS, months_before
from recado.domain.events.customer_event import (
    ContactKeys,
    CustomerEvent,
    NewCustomerEvent,
    Touch,
    check_moment,
    check_period,
)
from recado.http.api.call import Call
from recado.http.api.page_items import PageItems, each
from recado.http.api.route import Route
from recado.http.routes.core.dependencies import Dependencies
from recado.http.routes.core.groups import Group
from recado.http.routes.core.phones import phone_at
from recado.http.routes.events.customer_event_models import (
    ContactOfEvent,
    CustomerEventIn,
    CustomerEventOut,
    CustomerEventPage,
    CustomerEventQuery,
)
from recado.http.wire.reply import Reply
from recado.services.events.customer_events import CustomerEvents
from recado.storage.core.statements.rows import Page
from recado.storage.events import customer_event_pages, customer_events
from recado.storage.events.customer_event_pages import CustomerEventFilter

LIST: Final = "listCustomerEvents"


class CustomerEventOperations:
    """The handlers."""

    def __init__(self, dependencies: Dependencies, events: CustomerEvents) -> None:
        self._database = dependencies.database
        self._cursors = dependencies.cursors
        self._ids = dependencies.ids
        self._events = events

    async def create(self, call: Call) -> Reply:
        recorded = await self._events.record(self.examine(call))
        event, status = recorded.event, 200 if recorded.duplicate else 201
        # What a repeat under a key is shown is read again: the contact may have been deleted meanwhile (C12.6).
        kept = {"eventId": event.event_id, "duplicate": recorded.duplicate}
        return Reply(status, event_view(event, duplicate=recorded.duplicate), stored=kept)

    async def replay(self, call: Call, status: int, kept: Any) -> Reply:
        """The answer of the first request under a key, of the event as it is stored."""
        key = (call.principal.organization_id, call.principal.env, kept["eventId"])
        stored = await customer_events.known(self._database, [key])  # it outlives every key
        return Reply(status, event_view(stored[key], duplicate=kept["duplicate"]))

    async def list(self, call: Call) -> Reply:
        query: CustomerEventQuery = call.query
        after = self._cursors.read(call, LIST)
        check_period(query.from_, query.to)
        wanted = CustomerEventFilter(
            organization_id=call.principal.organization_id,
            env=call.principal.env,
            start=max(query.from_, months_before(call.now, EVENTS_MONTHS)),
            end=query.to,
            name=query.name,
            contact_id=query.contact_id,
        )
        read = partial(customer_event_pages.list_page, self._database, wanted)

        def rest(last: CustomerEvent, left: int) -> Awaitable[Page[CustomerEvent]]:
            return read(limit=left, after=(last.occurred_at, last.id))

        first = await read(
            limit=query.limit, after=None if after is None else (datetime.fromisoformat(after[0]), after[1])
        )
        items = PageItems(first, each(partial(event_view, duplicate=False)), rest, query.limit)
        body = await self._cursors.page(call, LIST, items, lambda event: [event.occurred_at.isoformat(), event.id])
        return Reply(200, body)

    def examine(self, call: Call) -> NewCustomerEvent:
        """The event of the body. Raises `Problem` 422."""
        body: CustomerEventIn = call.body
        if body.properties is not None and (wrong := metadata_errors(body.properties, "/properties")):
            raise validation_error(wrong, code="METADATA_INVALID")
        contact = contact_keys(body.contact, "/contact")
        occurred_at = body.occurred_at or call.now
        check_moment(occurred_at, call.now)
        return NewCustomerEvent(
            organization_id=call.principal.organization_id,
            env=call.principal.env,
            id=self._ids.new(CUSTOMER_EVENT),
            event_id=body.event_id,
            name=body.name,
            contact=contact,
            occurred_at=occurred_at,
            window=timedelta(hours=body.attribution_window_hours),
            value=None if body.value is None else Decimal(repr(body.value)),
            currency=body.currency.upper(),
            properties=None if body.properties is None else orjson.dumps(body.properties).decode(),
        )


def contact_keys(contact: ContactOfEvent, path: str) -> ContactKeys:
    """By what the contact is looked for that stands at `path` of the body. Raises `Problem` 422."""
    keys = (contact.contact_id, contact.external_id, contact.phone, contact.email)
    if all(key is None for key in keys):
        message = "needs at least one of contactId, externalId, phone and email"
        raise validation_error([FieldError(path, "REQUIRED", message)])
    return ContactKeys(
        contact_id=contact.contact_id,
        external_id=contact.external_id,
        phone=None if contact.phone is None else phone_at(f"{path}/phone", contact.phone),
        email=None if contact.email is None else email_key(contact.email),
    )


def event_view(event: CustomerEvent, *, duplicate: bool) -> dict[str, Any]:
    """The record as callers see it."""
    view: dict[str, Any] = {"id": event.id, "name": event.name, "eventId": event.event_id}
    if event.contact_id is not None:
        view["contactId"] = event.contact_id
    if event.contact_external_id is not None:
        view["contactExternalId"] = event.contact_external_id
    view["occurredAt"] = event.occurred_at
    if event.value is not None:
        view["value"] = float(event.value)
    view["currency"] = event.currency
    if event.properties is not None:
        view["properties"] = orjson.Fragment(event.properties)
    view["attribution"] = None if event.touch is None else _attribution(event.touch, event.occurred_at)
    view["duplicate"] = duplicate
    return view


def _attribution(touch: Touch, occurred_at: datetime) -> dict[str, Any]:
    view: dict[str, Any] = {
        "messageId": touch.message_id,
        "channel": touch.channel,
        "sentAt": touch.sent_at,
        "horasAteOEvento": touch.hours_until(occurred_at),
    }
    if touch.campaign_id is not None:
        view["campaignId"] = touch.campaign_id
    if touch.journey is not None:
        view["journeyId"] = touch.journey.journey_id
        view["journeyStepId"] = touch.journey.step_id
        view["journeyRunId"] = touch.journey.execution_id
    return view


def customer_event_routes(dependencies: Dependencies, *, events: CustomerEvents) -> tuple[Route, ...]:
    """The operations on customer events."""
    operations = CustomerEventOperations(dependencies, events)
    group = Group("Customer events", "contacts:read", "contacts:write")
    return (
        group.route(
            "GET /v2/events", LIST, "List customer events, the last one that occurred first", operations.list,
            query=CustomerEventQuery, responses={200: CustomerEventPage},
        ),
        group.route(
            "POST /v2/events", "createCustomerEvent", "Tell what a customer did", operations.create,
            body=CustomerEventIn, responses={201: CustomerEventOut, 200: CustomerEventOut}, rate_class="send",
            creates=True, examine=operations.examine, replay=operations.replay,
            errors=("METADATA_INVALID", "PHONE_INVALID", "EVENT_IN_FUTURE", "EVENT_TOO_OLD"),
            description=(
                "The event is stored once for each `eventId`: 201. A repeat gets 200 and what is stored, whatever it "
                "says. It is attributed to the last message that was sent to the contact within the window and named "
                "the contact when it was made. Where no contact is found, the event is stored without one."
            ),
        ),
    )  # fmt: skip
