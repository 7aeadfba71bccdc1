"""The operations on webhook subscriptions (C23.1)."""

from collections.abc import Callable
from typing import Any

from recado.actors.webhooks.webhooks import Webhooks
from recado.channels.http.outbound_guard import OutboundGuard
from recado.domain.core.ids import WEBHOOK, IdSource
from recado.domain.messages.changes import OnChange
from recado.http.api.route import Idempotency, Route
from recado.http.routes.webhooks.webhook_models import (
    SecretRotation,
    WebhookCreate,
    WebhookPatch,
    WebhookQuery,
    WebhookTest,
)
from recado.http.routes.webhooks.webhook_operations import WebhookOperations
from recado.http.routes.webhooks.webhook_views import WebhookOut, WebhookPage, WebhookTested, WebhookWithSecret
from recado.storage.core.crypto import KeyRing
from recado.storage.core.postgres import Database


def webhook_routes(
    *,
    database: Database,
    ids: IdSource,
    keys: KeyRing,
    guard: OutboundGuard,
    actors: Webhooks,
    random_bytes: Callable[[int], bytes],
    changed: OnChange,
) -> tuple[Route, ...]:
    """`random_bytes`: unpredictable ones, for the secrets."""
    operations = WebhookOperations(database, ids, keys, guard, actors, random_bytes, changed)
    one: dict[str, Any] = {"load": operations.find, "path_ids": {"id": WEBHOOK}, "tag": "Webhooks"}
    return (
        Route(
            method="GET",
            path="/webhooks",
            handler=operations.list,
            operation_id="listWebhooks",
            summary="List the subscriptions of the environment",
            tag="Webhooks",
            scope="webhooks:read",
            rate_class="read",
            query=WebhookQuery,
            responses={200: WebhookPage},
        ),
        Route(
            method="POST",
            path="/webhooks",
            handler=operations.create,
            operation_id="createWebhook",
            summary="Subscribe an address to events",
            description="The signing secret is shown in this answer and in that of a rotation, and never again.",
            tag="Webhooks",
            scope="webhooks:write",
            rate_class="write",
            body=WebhookCreate,
            responses={201: WebhookWithSecret},
            errors=("URL_NOT_ALLOWED", "LIMIT_REACHED"),
            idempotency=Idempotency.ACCEPTED,
            versioned=True,
            creates=True,
        ),
        Route(
            method="GET",
            path="/webhooks/{id}",
            handler=operations.read,
            operation_id="getWebhook",
            summary="Read a subscription",
            scope="webhooks:read",
            rate_class="read",
            responses={200: WebhookOut},
            versioned=True,
            **one,
        ),
        Route(
            method="PATCH",
            path="/webhooks/{id}",
            handler=operations.patch,
            operation_id="updateWebhook",
            summary="Change, pause or resume a subscription",
            scope="webhooks:write",
            rate_class="write",
            body=WebhookPatch,
            responses={200: WebhookOut},
            errors=("INVALID_STATE", "URL_NOT_ALLOWED"),
            versioned=True,
            **one,
        ),
        Route(
            method="DELETE",
            path="/webhooks/{id}",
            handler=operations.delete,
            operation_id="deleteWebhook",
            summary="Revoke a subscription for good",
            scope="webhooks:write",
            rate_class="write",
            responses={204: None},
            versioned=True,
            **one,
        ),
        Route(
            method="POST",
            path="/webhooks/{id}/rotate",
            handler=operations.rotate,
            operation_id="rotateWebhook",
            summary="Give a subscription a new secret",
            description="Until the grace is over, deliveries are signed with the former secret too.",
            scope="webhooks:write",
            rate_class="write",
            body=SecretRotation,
            responses={200: WebhookWithSecret},
            errors=("INVALID_STATE",),
            idempotency=Idempotency.ACCEPTED,
            rotates=True,
            versioned=True,
            **one,
        ),
        Route(
            method="POST",
            path="/webhooks/{id}/test",
            handler=operations.test,
            operation_id="testWebhook",
            summary="Deliver an example now and tell what the endpoint answered",
            scope="webhooks:write",
            rate_class="write",
            body=WebhookTest,
            responses={200: WebhookTested},
            errors=("INVALID_STATE",),
            idempotency=Idempotency.ACCEPTED,
            matches=True,
            **one,
        ),
    )
