"""Deliveries of a webhook subscription: what was delivered, and once more (C23.1)."""

from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

import orjson

from recado.domain.access.scopes import PII
from recado.domain.core.errors import FieldError, conflict, field_refused, not_found, validation_error
from recado.domain.core.events import EVERY
from recado.domain.core.ids import DELIVERY, WEBHOOK, IdSource, created_at
from recado.domain.messages.changes import DeliveriesQueued, OnChange
from recado.domain.webhooks.webhook import SubscriptionStatus
from recado.http.api.audit import record
from recado.http.api.call import Call
from recado.http.api.paging import Cursors, items_of
from recado.http.api.route import Idempotency, Route
from recado.http.api.tampering import tampering_recorded
from recado.http.routes.webhooks.webhook_edits import refuse_deleted
from recado.http.routes.webhooks.webhook_models import DeliveryQuery, WebhookReplay
from recado.http.routes.webhooks.webhook_views import (
    DeliveryDetail,
    DeliveryOut,
    DeliveryPage,
    ReplayOut,
    attempt_views,
    delivery_view,
)
from recado.http.wire.reply import Reply
from recado.services.webhooks.webhook_payload import envelope
from recado.storage.core.crypto import KeyRing
from recado.storage.core.postgres import Connection, Database
from recado.storage.webhooks import deliveries, events, webhooks
from recado.storage.webhooks.deliveries import PENDING, Delivery
from recado.storage.webhooks.webhooks import Subscription

LIST = "listWebhookDeliveries"
REPLAY = "webhook.replay"  # in the audit
LONGEST_REPLAY = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Found:
    """A subscription, and one of its deliveries where the path names one."""

    subscription: Subscription
    delivery: Delivery | None


class DeliveryOperations:
    """The handlers."""

    def __init__(self, database: Database, ids: IdSource, keys: KeyRing, cursors: Cursors, changed: OnChange) -> None:
        self._database = database
        self._ids = ids
        self._keys = keys
        self._cursors = cursors
        self._changed = changed

    async def find(self, call: Call) -> Found:
        principal, path = call.principal, call.path
        subscription = await webhooks.get(self._database, principal.organization_id, principal.env, path["id"])
        if subscription is None:
            raise not_found()
        if "deliveryId" not in path:
            return Found(subscription, None)
        delivery = await deliveries.get(self._database, subscription.key, path["deliveryId"], call.now)
        if delivery is None:
            raise not_found()
        return Found(subscription, delivery)

    async def list(self, call: Call) -> Reply:
        query: DeliveryQuery = call.query
        operation = f"{LIST} {call.path['id']}"  # a cursor is good for its subscription only
        after_page = self._cursors.read(call, operation)
        subscription: Subscription = call.resource.subscription
        rows = await deliveries.list_page(
            self._database,
            subscription.key,
            call.now,
            status=query.status,
            event=query.event,
            start=query.from_,
            end=query.to,
            before_id=None if after_page is None else after_page[0],
            limit=query.limit + 1,
        )
        items = items_of(call, rows, partial(delivery_view, subscription))
        return Reply(200, await self._cursors.page(call, operation, items, lambda row: [row.id]))

    async def read(self, call: Call) -> Reply:
        subscription, delivery = call.resource.subscription, call.resource.delivery
        told = await deliveries.told(self._database, subscription.organization_id, delivery.event_id)
        body = delivery_view(subscription, delivery)
        if told is not None:  # the event of a late replay goes before it
            unmasked = subscription.include_pii and call.can(PII)
            body["payload"] = orjson.Fragment(envelope(told, subscription.organization_id, unmasked=unmasked))
        async with tampering_recorded(self._database, self._ids, call):
            body["attempts"] = attempt_views(subscription, delivery, self._keys, unmasked=call.can(PII))
        return Reply(200, body)

    async def replay(self, call: Call) -> Reply:
        found: Delivery = call.resource.delivery
        async with self._database.transaction() as connection:
            subscription = await self._replayable(connection, call)
            if found.status == PENDING:
                raise conflict(
                    "INVALID_STATE",
                    "The delivery is still pending: only a finished one can be sent again.",
                    status=PENDING,
                )
            if created_at(found.event_id) < call.now - events.KEPT:
                raise conflict(
                    "INVALID_STATE",
                    "The event is older than 30 days and cannot be delivered again.",
                    status=found.status,
                )
            delivery_id = await events.replay_one(
                connection, self._ids, subscription, found.event_id, found.event, call.now
            )
            made = await deliveries.get(connection, subscription.key, delivery_id, call.now)
            if made is None:
                raise RuntimeError("the delivery that was just queued is not there")
            await record(connection, self._ids, call, REPLAY, subscription.id, {"deliveryId": found.id})
            call.answer = reply = Reply(202, delivery_view(subscription, made))
        self._changed(DeliveriesQueued((subscription.key,)))
        return reply

    async def replay_period(self, call: Call) -> Reply:
        body: WebhookReplay = call.body
        _refuse_period(body, call)
        async with self._database.transaction() as connection:
            subscription = await self._replayable(connection, call)
            taken = None if EVERY in subscription.events else list(subscription.events)
            if body.events is not None:
                taken = [event for event in body.events if taken is None or event in taken]
            queued = await events.replay_period(
                connection,
                self._ids,
                subscription,
                start=body.from_,
                end=body.to,
                events=taken,
                only_failed=body.only_failed,
                now=call.now,
            )
            details = {"queued": queued, "onlyFailed": body.only_failed}
            await record(connection, self._ids, call, REPLAY, subscription.id, details)
            call.answer = reply = Reply(202, {"queued": queued})
        self._changed(DeliveriesQueued((subscription.key,)))
        return reply

    async def _replayable(self, connection: Connection, call: Call) -> Subscription:
        """The subscription, locked: what is revoked delivers nothing, and two replays of a period are one."""
        found: Subscription = call.resource.subscription
        subscription = await webhooks.get_locked(connection, found.organization_id, found.env, found.id)
        if subscription is None:
            raise not_found()
        call.check_revision(subscription.revision)
        refuse_deleted(subscription)
        if subscription.status is SubscriptionStatus.REVOKED:
            raise conflict(
                "INVALID_STATE",
                "The subscription is revoked: set its status to active first.",
                status=subscription.status.value,
            )
        return subscription


def _refuse_period(body: WebhookReplay, call: Call) -> None:
    if body.from_ > body.to:
        raise validation_error([FieldError("/to", "INVALID", "must not be earlier than from")])
    if body.to - body.from_ > LONGEST_REPLAY:
        raise field_refused("PERIOD_TOO_LONG", "/to", "A replay covers at most 7 days.")
    if body.from_ < call.now - events.KEPT:
        raise validation_error([FieldError("/from", "OUT_OF_RANGE", "must not be more than 30 days ago")])


def webhook_delivery_routes(
    *, database: Database, ids: IdSource, keys: KeyRing, cursors: Cursors, changed: OnChange
) -> tuple[Route, ...]:
    """Lists, single reads and replays."""
    operations = DeliveryOperations(database, ids, keys, cursors, changed)
    of_one: dict[str, Any] = {"load": operations.find, "path_ids": {"id": WEBHOOK}, "tag": "Webhooks"}
    one = {**of_one, "path_ids": {"id": WEBHOOK, "deliveryId": DELIVERY}}
    return (
        Route(
            method="GET",
            path="/webhooks/{id}/deliveries",
            handler=operations.list,
            operation_id=LIST,
            summary="List what was delivered and what waits",
            scope="webhooks:read",
            rate_class="read",
            query=DeliveryQuery,
            responses={200: DeliveryPage},
            **of_one,
        ),
        Route(
            method="GET",
            path="/webhooks/{id}/deliveries/{deliveryId}",
            handler=operations.read,
            operation_id="getWebhookDelivery",
            summary="Read a delivery with its payload and attempts",
            scope="webhooks:read",
            rate_class="read",
            responses={200: DeliveryDetail},
            **one,
        ),
        Route(
            method="POST",
            path="/webhooks/{id}/deliveries/{deliveryId}/replay",
            handler=operations.replay,
            operation_id="replayWebhookDelivery",
            summary="Deliver an event once more",
            scope="webhooks:write",
            rate_class="bulk",
            responses={202: DeliveryOut},
            errors=("INVALID_STATE",),
            idempotency=Idempotency.ACCEPTED,
            answers_in_commit=True,
            matches=True,
            **one,
        ),
        Route(
            method="POST",
            path="/webhooks/{id}/replay",
            handler=operations.replay_period,
            operation_id="replayWebhook",
            summary="Deliver the events of a period once more",
            description="At most 10,000, the oldest first; by default those that never arrived.",
            scope="webhooks:write",
            rate_class="bulk",
            body=WebhookReplay,
            responses={202: ReplayOut},
            errors=("INVALID_STATE", "PERIOD_TOO_LONG"),
            idempotency=Idempotency.ACCEPTED,
            answers_in_commit=True,
            matches=True,
            **of_one,
        ),
    )
