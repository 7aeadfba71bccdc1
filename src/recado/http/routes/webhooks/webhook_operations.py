"""What is done with webhook subscriptions: made, changed, rotated, tested, revoked (C23.1)."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from recado.actors.webhooks.webhook_attempt import error_of
from recado.actors.webhooks.webhook_endpoint import headers_of
from recado.actors.webhooks.webhooks import Webhooks
from recado.channels.http.outbound_guard import OutboundGuard, UrlRefused
from recado.channels.webhooks.webhook_signing import new_secret
from recado.domain.core.errors import FieldError, not_found, validation_error
from recado.domain.core.events import EVERY
from recado.domain.core.ids import WEBHOOK, IdSource, created_at
from recado.domain.messages.changes import DeliveriesQueued, OnChange, SubscriptionChanged
from recado.http.api.audit import record, record_pii_grant
from recado.http.api.call import Call
from recado.http.api.principal import Principal
from recado.http.api.tampering import tampering_recorded
from recado.http.routes.core.lists import listed
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
from recado.http.routes.webhooks.webhook_models import Retry
from recado.http.routes.webhooks.webhook_views import webhook_view
from recado.http.wire.reply import Reply
from recado.storage.core.changing import changing
from recado.storage.core.crypto import KeyRing
from recado.storage.core.postgres import Connection, Database
from recado.storage.webhooks import webhooks
from recado.storage.webhooks.webhooks import Subscription

DEFAULT_TEST = "message.delivered"


class WebhookOperations:
    """The handlers."""

    def __init__(
        self,
        database: Database,
        ids: IdSource,
        keys: KeyRing,
        guard: OutboundGuard,
        actors: Webhooks,
        random_bytes: Callable[[int], bytes],
        changed: OnChange,
    ) -> None:
        self._database = database
        self._ids = ids
        self._keys = keys
        self._guard = guard
        self._actors = actors
        self._random_bytes = random_bytes
        self._changed = changed

    async def find(self, call: Call) -> Subscription:
        principal = call.principal
        found = await webhooks.get(self._database, principal.organization_id, principal.env, call.path["id"])
        if found is None:
            raise not_found()
        return found

    async def list(self, call: Call) -> Reply:
        principal, query = call.principal, call.query
        page = await webhooks.list_page(
            self._database,
            principal.organization_id,
            principal.env,
            status=query.status,
            event=query.event,
            limit=query.limit,
            skip=query.skip,
        )
        async with self._tampering_recorded(call):
            return await listed(page, self._view)

    async def read(self, call: Call) -> Reply:
        async with self._tampering_recorded(call):
            return self._reply(call.resource)

    async def create(self, call: Call) -> Reply:
        principal, body = call.principal, call.body
        refuse_without_pii(call, body.include_pii)
        await self._check_url(body.url, principal)
        secret, subscription_id = new_secret(self._random_bytes), self._ids.new(WEBHOOK)
        place = place_of(principal.organization_id, subscription_id)
        retry = body.retry or Retry()
        new = Subscription(
            organization_id=principal.organization_id,
            id=subscription_id,
            env=principal.env,
            url=body.url,
            secret_cipher=sealed_secret(secret, place, self._keys),
            headers_cipher=sealed_headers(plain_headers(body.headers, []), place, self._keys),
            events=tuple(body.events),
            description=body.description or None,
            include_pii=body.include_pii,
            max_attempts=retry.max_attempts,
            backoff_seconds=retry.backoff_seconds,
            created_by_id=principal.actor_id,
            updated_at=created_at(subscription_id),
        )
        async with changing(self._database, self._changed, _change_of(new)) as connection:
            made = await webhooks.insert(connection, new)
            await record(connection, self._ids, call, "webhook.create", made.id, {"events": list(made.events)})
            if made.include_pii:
                await record_pii_grant(connection, self._ids, call, made.id)
        self._tell(made)
        return self._reply(made, 201, secret)

    async def patch(self, call: Call) -> Reply:
        seen: Subscription = call.resource
        changes = call.body.changes()
        refuse_without_pii(call, sends_phones_anew(seen, changes))
        if "url" in changes:
            await self._check_url(changes["url"], call.principal)
        async with (
            self._tampering_recorded(call),
            changing(self._database, self._changed, _change_of(call.resource)) as connection,
        ):
            # What the caller may not, or the body cannot, comes before version and state (C2.6); the lock decides it.
            headers_after(seen, changes, headers_of(seen, self._keys))
            before = await self._changeable(connection, call)
            refuse_without_pii(call, sends_phones_anew(before, changes))
            after = edited(before, changes, headers_of(before, self._keys), self._keys)
            saved = await webhooks.save(connection, before, after, call.now)
            if saved is not before:
                await record(connection, self._ids, call, "webhook.update", saved.id, {"fields": call.body.named()})
                if saved.include_pii and not before.include_pii:
                    await record_pii_grant(connection, self._ids, call, saved.id)
        if saved is not before:
            self._tell(saved)
        return self._reply(saved)

    async def rotate(self, call: Call) -> Reply:
        secret = new_secret(self._random_bytes)
        async with (
            self._tampering_recorded(call),
            changing(self._database, self._changed, _change_of(call.resource)) as connection,
        ):
            before = await self._changeable(connection, call)
            self._view(before)  # a secret that could not be answered is not changed
            cipher = sealed_secret(secret, place_of(before.organization_id, before.id), self._keys)
            details: dict[str, Any] = {"graceHours": call.body.grace_hours}
            if call.unshown is not None:
                after = replaced(before, cipher, call.unshown)
                details["repeated"] = True
            else:
                after = rotated(before, cipher, call.body.grace_hours, call)
            saved = await webhooks.save(connection, before, after, call.now)
            call.made = str(saved.secret_version)
            await record(connection, self._ids, call, "webhook.rotate", saved.id, details)
        self._tell(saved)
        return self._reply(saved, 200, secret)

    async def delete(self, call: Call) -> Reply:
        async with changing(self._database, self._changed, _change_of(call.resource)) as connection:
            before = await self._locked(connection, call)
            if before.deleted_at is not None:
                return Reply(204)
            saved = await webhooks.save(connection, before, deleted(before, call), call.now)
            await record(connection, self._ids, call, "webhook.delete", saved.id)
        self._tell(saved)
        return Reply(204)

    async def test(self, call: Call) -> Reply:
        subscription: Subscription = call.resource
        call.check_revision(subscription.revision)
        refuse_deleted(subscription)
        first = subscription.events[0]
        event = call.body.event or (DEFAULT_TEST if first == EVERY else first)
        delivery_id, response = await self._actors.test(subscription, event)
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
            await self._guard.check(url, live=principal.env == "live", owner=principal.organization_id)
        except UrlRefused as refusal:
            fault = FieldError("/url", "URL_NOT_ALLOWED", f"cannot be called: {refusal}")
            raise validation_error([fault], code="URL_NOT_ALLOWED") from None

    async def _locked(self, connection: Connection, call: Call) -> Subscription:
        found: Subscription = call.resource
        subscription = await webhooks.get_locked(connection, found.organization_id, found.env, found.id)
        if subscription is None:
            raise not_found()
        call.check_revision(subscription.revision)
        return subscription

    async def _changeable(self, connection: Connection, call: Call) -> Subscription:
        subscription = await self._locked(connection, call)
        refuse_deleted(subscription)
        return subscription

    def _tell(self, subscription: Subscription) -> None:
        self._changed(_change_of(subscription))
        self._changed(DeliveriesQueued((subscription.key,)))

    def _tampering_recorded(self, call: Call) -> AbstractAsyncContextManager[None]:
        return tampering_recorded(self._database, self._ids, call)

    def _view(self, subscription: Subscription) -> dict[str, Any]:
        return webhook_view(subscription, headers_of(subscription, self._keys))

    def _reply(self, subscription: Subscription, status: int = 200, secret: str | None = None) -> Reply:
        view = self._view(subscription)
        shown = view if secret is None else {**view, "secret": secret}
        return Reply(status, shown, revision=subscription.revision, stored=view)


def _change_of(subscription: Subscription) -> SubscriptionChanged:
    return SubscriptionChanged(subscription.organization_id, subscription.env, subscription.id)
