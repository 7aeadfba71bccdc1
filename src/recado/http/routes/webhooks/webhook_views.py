"""Webhook subscriptions and their deliveries as callers see them (C23.1, C23.3.4)."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from recado.actors.webhooks.webhook_attempt import ANSWER_FIELD
from recado.domain.webhooks.webhook import SubscriptionStatus
from recado.http.api.models import ApiModel, Timestamp
from recado.http.api.paging import CountedPage, CursorPage
from recado.http.routes.core.views import view_with
from recado.http.routes.webhooks.webhook_models import MASK, masks
from recado.storage.core.crypto import KeyRing
from recado.storage.webhooks.deliveries import DELIVERED, PENDING, Delivery
from recado.storage.webhooks.webhooks import QUEUES, Subscription


class HeaderOut(ApiModel):
    """A custom header; the value of one that looks like a credential is masked."""

    key: str
    value: str


class RetryOut(ApiModel):
    """How often and after how long a delivery is tried again."""

    max_attempts: int
    backoff_seconds: int


class WebhookOut(ApiModel):
    """A subscription, without its secret in the clear."""

    id: str
    organization_id: str
    url: str
    secret_cipher: str = Field(
        description="The signing secret, encrypted with a key of the installation: opaque, and of no use to sign with."
    )
    secret_version: int
    headers: list[HeaderOut]
    events: list[str]
    status: Literal["active", "paused", "failing", "revoked"]
    description: str | None = None
    retry: RetryOut
    include_pii: bool
    created_by_id: str | None = None
    consecutive_failures: int
    last_success_at: Timestamp | None = None
    last_failure_at: Timestamp | None = None
    created_at: Timestamp
    updated_at: Timestamp


class WebhookWithSecret(WebhookOut):
    """A subscription with its new secret, shown once: a repeat under the same Idempotency-Key leaves it out."""

    secret: str | None = None


class WebhookPage(CountedPage[WebhookOut]):
    """Subscriptions of the environment, newest first."""


class WebhookTested(ApiModel):
    """What the endpoint made of the test."""

    delivery_id: str
    status_code: int | None = None
    duration_ms: int
    ok: bool
    error: str | None = None


class DeliveryOut(ApiModel):
    """A delivery."""

    id: str
    event_id: str
    event: str
    message_id: Annotated[str | None, Field(description="The message that the event tells of.")] = None
    status: Literal["pending", "delivered", "dropped"]
    attempt_count: int
    last_status_code: int | None = None
    last_error: str | None = None
    next_attempt_at: Timestamp | None = None
    created_at: Timestamp
    delivered_at: Timestamp | None = None


class AttemptOut(ApiModel):
    """One attempt; of a failed one's answer, the beginning."""

    attempt: int
    at: Timestamp
    duration_ms: int
    status_code: int | None = None
    error: str | None = None
    answer: str | None = None


class DeliveryDetail(DeliveryOut):
    """A delivery with what it says and what became of each attempt."""

    payload: Annotated[dict[str, Any] | None, Field(description="Absent when the event is older than 30 days.")] = None
    attempts: list[AttemptOut]


class DeliveryPage(CursorPage[DeliveryOut]):
    """Deliveries, newest first."""


class ReplayOut(ApiModel):
    """How many events are delivered once more."""

    queued: int


def _masked(_: Subscription, headers: list[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"key": key, "value": MASK if masks(key) else value} for key, value in headers]


# With its headers in the clear.
webhook_view = view_with(
    Subscription,
    WebhookOut,
    headers=_masked,
    retry=lambda one, _: {"maxAttempts": one.max_attempts, "backoffSeconds": one.backoff_seconds},
)


def _next_attempt_at(delivery: Delivery, subscription: Subscription) -> datetime | None:
    """Not before the next probe while failing; None when its subscription's owner has to act first (C23.2)."""
    due_at = delivery.next_attempt_at
    if delivery.status != PENDING or subscription.status not in QUEUES:
        return None
    if subscription.status is SubscriptionStatus.FAILING and due_at is not None and subscription.probe_at is not None:
        return max(due_at, subscription.probe_at)
    return due_at


# As lists show it; with its subscription.
delivery_view = view_with(
    Delivery,
    DeliveryOut,
    attempt_count=lambda delivery, _: delivery.attempts,
    last_status_code=lambda delivery, _: delivery.last_status,
    next_attempt_at=_next_attempt_at,
    delivered_at=lambda delivery, _: delivery.settled_at if delivery.status == DELIVERED else None,
)


def attempt_views(
    subscription: Subscription, delivery: Delivery, keys: KeyRing, *, unmasked: bool
) -> list[dict[str, Any]]:
    """The attempts so far; raises Tampered.

    What an endpoint answered to phones in the clear may repeat them: it is shown when `unmasked` only (C30.5).
    """
    views = []
    for attempt in delivery.history:
        view = dict(attempt)
        cipher = view.pop("answerCipher", None)
        if cipher is not None and unmasked:
            view["answer"] = keys.decrypt(
                cipher, organization_id=subscription.organization_id, record_id=delivery.id, field=ANSWER_FIELD
            )
        views.append(view)
    return views
