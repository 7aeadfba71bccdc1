"""Deliveries of a webhook subscription: what was delivered, and once more (C23.1)."""

from dataclasses import dataclass
from datetime import timedelta
from functools import partial

import orjson

from recado.domain.access.scopes import PII
from recado.domain.core.errors import FieldError, conflict, field_refused, validation_error
from recado.domain.core.events import EVERY
from recado.domain.core.ids import DELIVERY, WEBHOOK, created_at
from recado.domain.messages.changes import DeliveriesQueued
from recado.domain.webhooks.webhook import SubscriptionStatus
from recado.http.api.call import Call
from recado.http.api.paging import Cursors, items_of
from recado.http.api.route import Route
from recado.http.problems.missing import found
from recado.http.problems.tampering import tampering_recorded
from recado.http.routes.core.dependencies import Dependencies
from recado.http.routes.core.resource import Resource
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
from recado.http.routes.webhooks.webhooks import subscription_resource
from recado.http.wire.reply import Reply
from recado.services.webhooks.webhook_payload import envelope
from recado.storage.core.connections.postgres import Connection
from recado.storage.core.crypto import KeyRing
from recado.storage.webhooks import deliveries, events
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


@dataclass(frozen=True, slots=True)
class DeliveryOperations:
    """The handlers."""

    subscriptions: Resource[Subscription]
    keys: KeyRing
    cursors: Cursors

    async def find(self, call: Call) -> Found:
        subscription = await self.subscriptions.find(call)
        if "deliveryId" not in call.path:
            return Found(subscription, None)
        database = self.subscriptions.database
        return Found(
            subscription, found(await deliveries.get(database, subscription.key, call.path["deliveryId"], call.now))
        )

    async def list(self, call: Call) -> Reply:
        query: DeliveryQuery = call.query
        operation = f"{LIST} {call.path['id']}"  # a cursor is good for its subscription only
        after_page = self.cursors.read(call, operation)
        subscription: Subscription = call.resource.subscription
        database = self.subscriptions.database
        rows = await deliveries.list_page(
            database.searches if query.searches else database,
            subscription.key,
            call.now,
            status=query.status,
            event=query.event,
            start=query.from_,
            end=query.to,
            message_id=query.message_id,
            before_id=None if after_page is None else after_page[0],
            limit=query.limit + 1,
        )
        items = items_of(call, rows, lambda row: delivery_view(row, subscription))
        return Reply(200, await self.cursors.page(call, operation, items, lambda row: [row.id]))

    async def read(self, call: Call) -> Reply:
        subscription, delivery = call.resource.subscription, call.resource.delivery
        told = await deliveries.told(self.subscriptions.database, subscription.organization_id, delivery.event_id)
        body = delivery_view(delivery, subscription)
        async with tampering_recorded(self.subscriptions.database, self.subscriptions.dependencies.ids, call):
            if told is not None:  # the event of a late replay goes before it
                unmasked = self.keys if subscription.include_pii and call.can(PII) else None
                body["payload"] = orjson.Fragment(envelope(told, subscription.organization_id, unmasked=unmasked))
            body["attempts"] = attempt_views(subscription, delivery, self.keys, unmasked=call.can(PII))
        return Reply(200, body)

    async def replay(self, call: Call) -> Reply:
        finished: Delivery = call.resource.delivery
        async with self.subscriptions.database.transaction() as connection:
            subscription = await self._replayable(connection, call)
            if finished.status == PENDING:
                raise conflict(
                    "INVALID_STATE",
                    "The delivery is still pending: only a finished one can be sent again.",
                    status=PENDING,
                )
            if created_at(finished.event_id) < call.now - events.KEPT:
                raise conflict(
                    "INVALID_STATE",
                    "The event is older than 30 days and cannot be delivered again.",
                    status=finished.status,
                )
            delivery_id = await events.replay_one(
                connection,
                self.subscriptions.dependencies.ids,
                subscription,
                finished.event_id,
                finished.event,
                call.now,
            )
            made = await deliveries.get(connection, subscription.key, delivery_id, call.now)
            if made is None:
                raise RuntimeError("the delivery that was just queued is not there")
            await self.subscriptions.note(connection, call, REPLAY, subscription, {"deliveryId": finished.id})
            call.answer = reply = Reply(202, delivery_view(made, subscription))
        self._tell(subscription)
        return reply

    async def replay_period(self, call: Call) -> Reply:
        body: WebhookReplay = call.body
        _refuse_period(body, call)
        async with self.subscriptions.database.transaction() as connection:
            subscription = await self._replayable(connection, call)
            taken = None if EVERY in subscription.events else list(subscription.events)
            if body.events is not None:
                taken = [event for event in body.events if taken is None or event in taken]
            queued = await events.replay_period(
                connection,
                self.subscriptions.dependencies.ids,
                subscription,
                start=body.from_,
                end=body.to,
                events=taken,
                only_failed=body.only_failed,
                now=call.now,
            )
            details = {"queued": queued, "onlyFailed": body.only_failed}
            await self.subscriptions.note(connection, call, REPLAY, subscription, details)
            call.answer = reply = Reply(202, {"queued": queued})
        self._tell(subscription)
        return reply

    async def _replayable(self, connection: Connection, call: Call) -> Subscription:
        """The subscription, locked: what is revoked delivers nothing, and two replays of a period are one."""
        subscription = await self.subscriptions.hold(connection, call, call.resource.subscription)
        refuse_deleted(subscription)
        if subscription.status is SubscriptionStatus.REVOKED:
            raise conflict(
                "INVALID_STATE",
                "The subscription is revoked: set its status to active first.",
                status=subscription.status.value,
            )
        return subscription

    def _tell(self, subscription: Subscription) -> None:
        self.subscriptions.dependencies.changed(DeliveriesQueued((subscription.key,)))


def _refuse_period(body: WebhookReplay, call: Call) -> None:
    if body.from_ > body.to:
        raise validation_error([FieldError("/to", "INVALID", "must not be earlier than from")])
    if body.to - body.from_ > LONGEST_REPLAY:
        raise field_refused("PERIOD_TOO_LONG", "/to", "A replay covers at most 7 days.")
    if body.from_ < call.now - events.KEPT:
        raise validation_error([FieldError("/from", "OUT_OF_RANGE", "must not be more than 30 days ago")])


def webhook_delivery_routes(dependencies: Dependencies) -> tuple[Route, ...]:
    """Lists, single reads and replays."""
    resource = subscription_resource(dependencies)
    operations = DeliveryOperations(resource, dependencies.keys, dependencies.cursors)
    of_one = partial(resource.route, load=operations.find)
    one = partial(of_one, path_ids={"id": WEBHOOK, "deliveryId": DELIVERY})
    return (
        of_one(
            "GET /webhooks/{id}/deliveries", LIST, "List what was delivered and what waits", operations.list,
            query=DeliveryQuery, responses={200: DeliveryPage},
        ),
        one(
            "GET /webhooks/{id}/deliveries/{deliveryId}", "getWebhookDelivery",
            "Read a delivery with its payload and attempts", operations.read, responses={200: DeliveryDetail},
        ),
        one(
            "POST /webhooks/{id}/deliveries/{deliveryId}/replay", "replayWebhookDelivery",
            "Deliver an event once more", operations.replay, rate_class="bulk",
            responses={202: DeliveryOut}, errors=("INVALID_STATE",),
            answers_in_commit=True, matches=True,
        ),
        of_one(
            "POST /webhooks/{id}/replay", "replayWebhook", "Deliver the events of a period once more",
            operations.replay_period, rate_class="bulk", body=WebhookReplay,
            responses={202: ReplayOut}, errors=("INVALID_STATE", "PERIOD_TOO_LONG"),
            answers_in_commit=True, matches=True,
            description="At most 10,000, the oldest first; by default those that never arrived.",
        ),
    )  # fmt: skip
