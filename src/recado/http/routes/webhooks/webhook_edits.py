"""Changes of a webhook subscription, each a rule of C23.1 and C23.2 over the stored record."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import orjson

from recado.channels.http.outbound_guard import same_origin
from recado.domain.access.scopes import PII
from recado.domain.core.errors import FieldError, conflict, validation_error
from recado.domain.webhooks.webhook import SubscriptionEvent, SubscriptionStatus
from recado.http.api.call import Call
from recado.http.api.operation import missing_scope
from recado.http.middleware.idempotency import rotated_since
from recado.http.routes.webhooks.webhook_models import MASK, Header, masks
from recado.storage.core.crypto import KeyRing
from recado.storage.webhooks.webhooks import HEADERS_FIELD, SECRET_FIELD, Subscription


def plain_headers(headers: list[Header] | None, before: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Custom headers in the clear; a masked value keeps the one of `before` under its key."""
    stored = {key.lower(): value for key, value in before}
    plain = []
    for position, header in enumerate(headers or ()):
        value = header.value
        if value == MASK and masks(header.key):
            kept = stored.get(header.key.lower())
            if kept is None:
                raise validation_error(
                    [
                        FieldError(
                            f"/headers/{position}/value",
                            "INVALID",
                            "must not be a mask: no value is stored under this key",
                        )
                    ]
                )
            value = kept
        plain.append((header.key, value))
    return plain


def sealed_headers(plain: list[tuple[str, str]], place: dict[str, str], keys: KeyRing) -> str | None:
    """Custom headers as they are stored."""
    listed = [{"key": key, "value": value} for key, value in plain]
    return keys.encrypt(orjson.dumps(listed).decode(), **place, field=HEADERS_FIELD) if listed else None


def sealed_secret(secret: str, place: dict[str, str], keys: KeyRing) -> str:
    """The signing secret as it is stored."""
    return keys.encrypt(secret, **place, field=SECRET_FIELD)


def place_of(organization_id: str, subscription_id: str) -> dict[str, str]:
    """What the ciphers of a subscription are bound to."""
    return {"organization_id": organization_id, "record_id": subscription_id}


def refuse_without_pii(call: Call, include_pii: bool) -> None:
    """Anyone who may not read phones in the clear cannot have them sent somewhere either."""
    if include_pii and not call.can(PII):
        raise missing_scope(PII)


def sends_phones_anew(subscription: Subscription, changes: dict[str, Any]) -> bool:
    """Whether a caller's changes turn personal data on, or give it a new address, which is as much."""
    wanted: bool = changes.get("include_pii", subscription.include_pii)
    return wanted and (not subscription.include_pii or changes.get("url", subscription.url) != subscription.url)


def refuse_deleted(subscription: Subscription) -> None:
    """Raise INVALID_STATE for what was revoked for good."""
    if subscription.deleted_at is not None:
        raise conflict(
            "INVALID_STATE", "The subscription was deleted: create a new one.", status=subscription.status.value
        )


def headers_after(
    subscription: Subscription, changes: dict[str, Any], before: list[tuple[str, str]]
) -> list[tuple[str, str]]:
    """The headers in the clear after a caller's changes; raises `Problem` VALIDATION_ERROR.

    Credentials are shown to nobody, so that they go to another origin only when they are given again.
    """
    moved = "url" in changes and not same_origin(changes["url"], subscription.url)
    if "headers" in changes:
        return plain_headers(changes["headers"], [] if moved else before)
    if moved and any(masks(key) for key, _ in before):
        raise validation_error(
            [
                FieldError(
                    "/headers", "REQUIRED", "must be given again: stored credentials are not sent to another origin"
                )
            ]
        )
    return before


def edited(
    subscription: Subscription, changes: dict[str, Any], before: list[tuple[str, str]], keys: KeyRing
) -> Subscription:
    """The subscription with a caller's changes; raises `IllegalMove` for a status that it cannot take.

    `before`: its headers in the clear. Raises as `headers_after` does.
    """
    fields = dict(changes)
    fields.pop("headers", None)
    headers = headers_after(subscription, changes, before)
    if headers != before:
        place = place_of(subscription.organization_id, subscription.id)
        fields["headers_cipher"] = sealed_headers(headers, place, keys)
    status = fields.pop("status", None)
    if "events" in fields:
        fields["events"] = tuple(fields["events"])
    retry = fields.pop("retry", None)
    if retry is not None:
        fields.update(retry.changes())
    after = replace(subscription, **fields)
    if status is None or status == after.status.value:
        return after
    event = SubscriptionEvent.PAUSE if status == SubscriptionStatus.PAUSED else SubscriptionEvent.RESUME
    return after.with_health(after.health.moved(event))


def rotated(subscription: Subscription, secret_cipher: str, grace_hours: int, call: Call) -> Subscription:
    """The subscription with a new secret; the former one signs beside it for the grace, an older one no more."""
    previous, until = None, None
    if grace_hours:
        previous, until = subscription.secret_cipher, call.now + timedelta(hours=grace_hours)
    return replace(
        subscription,
        secret_cipher=secret_cipher,
        secret_version=subscription.secret_version + 1,
        previous_secret_cipher=previous,
        previous_secret_until=until,
    )


def replaced(subscription: Subscription, secret_cipher: str, unshown: str) -> Subscription:
    """The subscription with another secret in place of the version `unshown`, which nobody was shown (C6.2).

    The former one signs as long as it did; raises `Problem` CONFLICT when another rotation followed.
    """
    if subscription.secret_version != int(unshown):
        raise rotated_since()
    return replace(subscription, secret_cipher=secret_cipher)


def deleted(subscription: Subscription, call: Call) -> Subscription:
    """The subscription revoked for good."""
    revoked = subscription.with_health(subscription.health.moved(SubscriptionEvent.DELETE))
    return replace(revoked, deleted_at=call.now)
