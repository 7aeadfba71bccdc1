"""The endpoint of a subscription: its URL, custom headers and secrets, by which a delivery is signed and posted."""

from typing import Final, Protocol

import orjson
import structlog

from recado.channels.core.signing import signing_key
from recado.channels.http.guarded_http import Endpoint, GuardedHttp, Response
from recado.channels.http.outbound_guard import UrlRefused
from recado.channels.webhooks.webhook_signing import idempotency_line, signed_lines, static_lines
from recado.domain.core.clock import Clock
from recado.services.webhooks.webhook_payload import envelope
from recado.storage.core.crypto import KeyRing, Tampered
from recado.storage.webhooks.deliveries import Due
from recado.storage.webhooks.webhooks import HEADERS_FIELD, SECRET_FIELD, Subscription

log = structlog.get_logger()

_UNREADABLE: Final = Response(None, "the signing secret cannot be read", b"", None, 0.0)
_UNREADABLE_EVENT: Final = Response(None, "what the event tells cannot be read", b"", None, 0.0)


class EndpointCaller(Protocol):
    """Who calls endpoints, and what with."""

    @property
    def clock(self) -> Clock: ...

    @property
    def keys(self) -> KeyRing: ...

    @property
    def http(self) -> GuardedHttp: ...


class WebhookEndpoint:
    """How one version of a subscription is reached: its URL, its custom headers, its keys."""

    def __init__(self, subscription: Subscription, caller: EndpointCaller) -> None:
        """Raises UrlRefused for a URL whose form is never called."""
        self.subscription = subscription
        self._caller = caller
        self._endpoint: Endpoint = caller.http.endpoint(
            subscription.url, live=subscription.env == "live", owner=subscription.organization_id
        )
        try:
            self._lines = static_lines(headers_of(subscription, caller.keys))
            self._keys = [signing_key(_secret(subscription, subscription.secret_cipher, caller.keys))]
            self._previous = _former_key(subscription, caller)
        except Tampered:
            self._keys = []

    async def deliver(self, due: Due) -> Response:
        """Make one attempt."""
        told, subscription = due.told, self.subscription
        keys = self._caller.keys if subscription.include_pii else None
        try:
            body = envelope(told, subscription.organization_id, unmasked=keys)
        except Tampered:
            log.error("event_unreadable", event_id=told.event_id)
            return _UNREADABLE_EVENT
        return await self.post(
            body, event_id=told.event_id, event=told.type, delivery_id=due.id, attempt=due.attempts + 1
        )

    async def post(
        self,
        body: bytes,
        *,
        event_id: str,
        event: str,
        delivery_id: str,
        attempt: int,
        idempotency_key: str | None = None,
    ) -> Response:
        """Sign the body again and post it."""
        if not self._keys:
            return _UNREADABLE
        now = self._caller.clock.now()
        keys, until = self._keys, self.subscription.previous_secret_until
        if self._previous is not None and until is not None and until > now:
            keys = [*keys, self._previous]
        signed = signed_lines(
            keys,
            body,
            seconds=int(now.timestamp()),
            event_id=event_id,
            event=event,
            delivery_id=delivery_id,
            attempt=attempt,
        )
        if idempotency_key is not None:
            signed += idempotency_line(idempotency_key)
        return await self._endpoint.post(self._lines + signed, body)

    def close(self) -> None:
        """Close its connections."""
        self._endpoint.close()


def _former_key(subscription: Subscription, caller: EndpointCaller) -> bytes | None:
    """The key of the former secret during its grace. After it nobody needs it, also not to be readable."""
    cipher, until = subscription.previous_secret_cipher, subscription.previous_secret_until
    if cipher is None or until is None or until <= caller.clock.now():
        return None
    return signing_key(_secret(subscription, cipher, caller.keys))


def open_endpoint(subscription: Subscription, caller: EndpointCaller) -> WebhookEndpoint | None:
    """The way to a subscription; None for a URL that is never called, which its creation would have refused."""
    try:
        return WebhookEndpoint(subscription, caller)
    except UrlRefused:
        log.error("webhook_url_unusable", subscription_id=subscription.id)
        return None


def headers_of(subscription: Subscription, keys: KeyRing) -> list[tuple[str, str]]:
    """The custom headers in the clear; raises Tampered."""
    if subscription.headers_cipher is None:
        return []
    text = keys.decrypt(
        subscription.headers_cipher,
        organization_id=subscription.organization_id,
        record_id=subscription.id,
        field=HEADERS_FIELD,
    )
    return [(header["key"], header["value"]) for header in orjson.loads(text)]


def _secret(subscription: Subscription, cipher: str, keys: KeyRing) -> str:
    return keys.decrypt(
        cipher, organization_id=subscription.organization_id, record_id=subscription.id, field=SECRET_FIELD
    )
