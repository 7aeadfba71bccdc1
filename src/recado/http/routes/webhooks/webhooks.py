"""Webhook subscriptions: made, changed, rotated, tested, revoked (C23.1). Their deliveries have a file of their own."""

from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

from recado.actors.webhooks.webhook_attempt import error_of
from recado.actors.webhooks.webhook_endpoint import headers_of
from recado.actors.webhooks.webhooks import Webhooks
from recado.channels.http.outbound_guard import OutboundGuard, UrlRefused
from recado.channels.webhooks.webhook_signing import new_secret
from recado.domain.core.errors import FieldError, validation_error
from recado.domain.core.events import EVERY
from recado.domain.core.ids import WEBHOOK
from recado.domain.messages.changes import DeliveriesQueued, SubscriptionChanged
from recado.http.api.audit import PII_GRANT
from recado.http.api.call import Call
from recado.http.api.route import Route
from recado.http.callers.principal import Principal
from recado.http.problems.tampering import tampering_recorded
from recado.http.routes.core.dependencies import Dependencies
from recado.http.routes.core.groups import Group
from recado.http.routes.core.resource import Resource
from recado.http.routes.webhooks.webhook_edits import (
    deleted,
    edited,
    headers_after,
    place_of,
    plain_headers,
    refuse_deleted,
    refuse_without_pii,
    replaced,
    rotated,
    sealed_headers,
    sealed_secret,
    sends_phones_anew,
)
from recado.http.routes.webhooks.webhook_models import (
    USUAL_RETRY,
    SecretRotation,
    WebhookCreate,
    WebhookPatch,
    WebhookQuery,
    WebhookTest,
)
from recado.http.routes.webhooks.webhook_views import (
    WebhookOut,
    WebhookPage,
    WebhookTested,
    WebhookWithSecret,
    webhook_view,
)
from recado.http.wire.reply import Reply
from recado.storage.core.connections.changing import changing
from recado.storage.core.crypto import KeyRing
from recado.storage.core.statements.rows import Executor
from recado.storage.webhooks import webhooks
from recado.storage.webhooks.webhooks import SUBSCRIPTIONS, Subscription

DEFAULT_TEST = "message.delivered"


@dataclass(frozen=True, slots=True)
class WebhookOperations:
    """What is particular to subscriptions: their addresses, secrets and headers."""

    subscriptions: Resource[Subscription]
    keys: KeyRing
    guard: OutboundGuard
    actors: Webhooks

    async def examine(self, call: Call) -> None:
        """Raise `Problem` 403 and 422 for a subscription that the caller cannot have, or nobody."""
        refuse_without_pii(call, call.body.include_pii)
        await self._check_url(call.body.url, call.principal)

    async def create(self, call: Call) -> Reply:
        await self.examine(call)
        principal, body = call.principal, call.body
        secret = new_secret(self.subscriptions.dependencies.random_bytes)
        born = self.subscriptions.born(call)
        place = place_of(born["organization_id"], born["id"])
        retry = body.retry or USUAL_RETRY
        new = Subscription(
            **born,
            url=body.url,
            secret_cipher=sealed_secret(secret, place, self.keys),
            headers_cipher=sealed_headers(plain_headers(body.headers, []), place, self.keys),
            events=tuple(body.events),
            description=body.description,
            include_pii=body.include_pii,
            max_attempts=retry.max_attempts,
            backoff_seconds=retry.backoff_seconds,
            created_by_id=principal.actor_id,
        )
        async with changing(self.subscriptions.database, self.subscriptions.tell, new) as connection:
            made = await webhooks.insert(connection, new)
            await self.subscriptions.note(connection, call, "webhook.create", made, {"events": list(made.events)})
            if made.include_pii:
                await self.subscriptions.note(connection, call, PII_GRANT, made)
        self._tell(made)
        return await self.subscriptions.reply(call, made, 201, once={"secret": secret})

    async def patch(self, call: Call) -> Reply:
        seen: Subscription = call.resource
        changes = call.body.changes()
        refuse_without_pii(call, sends_phones_anew(seen, changes))
        if "url" in changes:
            await self._check_url(changes["url"], call.principal)
        async with self._tampering_recorded(call):
            # What the caller may not, or the body cannot, comes before version and state (C2.6); the lock decides it.
            headers_after(seen, changes, headers_of(seen, self.keys))
            async with self.subscriptions.locked(call) as (connection, before):
                refuse_deleted(before)
                refuse_without_pii(call, sends_phones_anew(before, changes))
                after = edited(before, changes, headers_of(before, self.keys), self.keys)
                saved = await webhooks.save(connection, before, after, call.now)
                if saved is not before:
                    details = {"fields": call.body.named()}
                    await self.subscriptions.note(connection, call, "webhook.update", saved, details)
                    if saved.include_pii and not before.include_pii:
                        await self.subscriptions.note(connection, call, PII_GRANT, saved)
        if saved is not before:
            self._tell(saved)
        return await self.subscriptions.reply(call, saved)

    async def rotate(self, call: Call) -> Reply:
        secret = new_secret(self.subscriptions.dependencies.random_bytes)
        async with self._tampering_recorded(call), self.subscriptions.locked(call) as (connection, before):
            refuse_deleted(before)
            headers_of(before, self.keys)  # a secret that could not be answered is not changed
            cipher = sealed_secret(secret, place_of(before.organization_id, before.id), self.keys)
            details: dict[str, Any] = {"graceHours": call.body.grace_hours}
            if call.unshown is not None:
                after = replaced(before, cipher, call.unshown)
                details["repeated"] = True
            else:
                after = rotated(before, cipher, call.body.grace_hours, call)
            saved = await webhooks.save(connection, before, after, call.now)
            call.made = str(saved.secret_version)
            await self.subscriptions.note(connection, call, "webhook.rotate", saved, details)
        self._tell(saved)
        return await self.subscriptions.reply(call, saved, once={"secret": secret})

    async def delete(self, call: Call) -> Reply:
        async with self.subscriptions.locked(call) as (connection, before):
            if before.deleted_at is not None:
                return Reply(204)
            saved = await webhooks.save(connection, before, deleted(before, call), call.now)
            await self.subscriptions.note(connection, call, "webhook.delete", saved)
        self._tell(saved)
        return Reply(204)

    async def test(self, call: Call) -> Reply:
        subscription: Subscription = call.resource
        call.check_revision(subscription.revision)
        refuse_deleted(subscription)
        first = subscription.events[0]
        event = call.body.event or (DEFAULT_TEST if first == EVERY else first)
        delivery_id, response = await self.actors.test(subscription, event)
        answer: dict[str, Any] = {
            "deliveryId": delivery_id,
            "durationMs": round(response.seconds * 1000),
            "ok": response.ok,
        }
        if response.status is not None:
            answer["statusCode"] = response.status
        if not response.ok:
            answer["error"] = error_of(response)
        return Reply(200, answer)

    async def _check_url(self, url: str, principal: Principal) -> None:
        try:
            await self.guard.check(url, live=principal.env == "live", owner=principal.organization_id)
        except UrlRefused as refusal:
            fault = FieldError("/url", "URL_NOT_ALLOWED", f"cannot be called: {refusal}")
            raise validation_error([fault], code="URL_NOT_ALLOWED") from None

    def _tell(self, subscription: Subscription) -> None:
        self.subscriptions.tell(subscription)
        self.subscriptions.dependencies.changed(DeliveriesQueued((subscription.key,)))

    def _tampering_recorded(self, call: Call) -> AbstractAsyncContextManager[None]:
        return tampering_recorded(self.subscriptions.database, self.subscriptions.dependencies.ids, call)


def subscription_resource(dependencies: Dependencies) -> Resource[Subscription]:
    """Who is told of what happens."""

    async def views(call: Call, _: Executor, found: list[Subscription]) -> Iterable[dict[str, Any]]:
        async with tampering_recorded(dependencies.database, dependencies.ids, call):
            return [webhook_view(each, headers_of(each, dependencies.keys)) for each in found]

    def tell(subscription: Subscription) -> None:
        dependencies.changed(SubscriptionChanged(subscription.organization_id, subscription.env, subscription.id))

    return Resource(
        dependencies=dependencies,
        table=SUBSCRIPTIONS,
        path="/webhooks/{id}",
        prefix=WEBHOOK,
        name="webhook",
        group=Group("Webhooks", "webhooks:read", "webhooks:write"),
        out=WebhookOut,
        page=WebhookPage,
        views=views,
        tell=tell,
    )


def webhook_routes(dependencies: Dependencies, *, guard: OutboundGuard, actors: Webhooks) -> tuple[Route, ...]:
    """`guard`: which addresses may be called; `actors`: who calls them."""
    resource = subscription_resource(dependencies)
    operations = WebhookOperations(resource, dependencies.keys, guard, actors)
    return (
        resource.route(
            "GET /webhooks", "listWebhooks", "List the subscriptions of the environment",
            resource.listing(lambda query: (query.status, query.event)), query=WebhookQuery,
        ),
        resource.route(
            "POST /webhooks", "createWebhook", "Subscribe an address to events", operations.create,
            body=WebhookCreate, responses={201: WebhookWithSecret}, errors=("URL_NOT_ALLOWED", "LIMIT_REACHED"),
            examine=operations.examine,
            description="The signing secret is shown in this answer and in that of a rotation, and never again.",
        ),
        resource.route("GET /webhooks/{id}", "getWebhook", "Read a subscription", resource.read),
        resource.route(
            "PATCH /webhooks/{id}", "updateWebhook", "Change, pause or resume a subscription", operations.patch,
            body=WebhookPatch, errors=("INVALID_STATE", "URL_NOT_ALLOWED"),
        ),
        resource.route(
            "DELETE /webhooks/{id}", "deleteWebhook", "Revoke a subscription for good", operations.delete
        ),
        resource.route(
            "POST /webhooks/{id}/rotate", "rotateWebhook", "Give a subscription a new secret", operations.rotate,
            body=SecretRotation, responses={200: WebhookWithSecret}, errors=("INVALID_STATE",), rotates=True,
            description="Until the grace is over, deliveries are signed with the former secret too.",
        ),
        resource.route(
            "POST /webhooks/{id}/test", "testWebhook",
            "Deliver an example now and tell what the endpoint answered", operations.test,
            body=WebhookTest, responses={200: WebhookTested}, errors=("INVALID_STATE",), matches=True,
        ),
    )  # fmt: skip
