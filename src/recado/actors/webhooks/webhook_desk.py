"""The desk of all subscription actors: what they share, and how their results are written, many in one statement."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta

import orjson
import structlog

from recado.actors.webhooks.webhook_line import MOST_CALLS, CallLine
from recado.channels.core.signing import signing_key
from recado.channels.http.guarded_http import Endpoint, GuardedHttp, Response
from recado.channels.http.outbound_guard import UrlRefused
from recado.channels.http.outbound_http import retry_after
from recado.channels.webhooks.webhook_signing import signed_lines, static_lines
from recado.domain.core.clock import Clock
from recado.domain.core.ids import created_at
from recado.domain.core.timestamps import format_timestamp
from recado.domain.webhooks.webhook import GONE, MAX_AGE, retry_delay
from recado.engine.turns import turns
from recado.services.webhooks.webhook_payload import envelope
from recado.storage.core.batch import Batcher
from recado.storage.core.crypto import KeyRing, Tampered
from recado.storage.core.fair_places import FairPlaces
from recado.storage.core.postgres import Database
from recado.storage.webhooks import deliveries, webhooks
from recado.storage.webhooks.deliveries import DELIVERED, DROPPED, Due, Result
from recado.storage.webhooks.webhooks import HEADERS_FIELD, SECRET_FIELD, HealthNote, Subscription, SubscriptionKey

log = structlog.get_logger()

READ_AT_ONCE, READ_EACH = 4, 2  # statements that read deliveries: in all, and of one organization (C31)
MOST_WAITING = 1_000  # subscriptions of an organization, of which each reads one by one
CALLS_AT_STOP = 3.0  # seconds that a stop waits for them
SETTLE_LINGER = 0.025  # seconds that results gather while there are many: nobody waits for them
ANSWER_FIELD = "webhook_answer"
_ASKS_TO_WAIT = (429, 503)
_UNREADABLE = Response(None, "the signing secret cannot be read", b"", None, 0.0)


class WebhookDesk:
    """A service. `line`: whose call begins next; `reading`: places of those who read deliveries, by organization."""

    def __init__(
        self, db: Database, *, clock: Clock, keys: KeyRing, http: GuardedHttp, calls: int = MOST_CALLS
    ) -> None:
        self.db = db
        self.clock = clock
        self.keys = keys
        self.http = http
        self.line = CallLine(turns, calls)
        self.reading = FairPlaces(READ_AT_ONCE, each=READ_EACH, most_waiting=MOST_WAITING)
        self._no_calls = asyncio.Event()
        self._no_calls.set()
        self.results: Batcher[Result, None] = Batcher(
            "deliveries", self._settle, clock=clock, max_queue=50_000, concurrency=1, linger=SETTLE_LINGER
        )
        self.healths: Batcher[HealthNote, bool] = Batcher("webhook health", self._note, clock=clock, concurrency=1)

    async def start(self) -> None:
        await self.http.guard.start()
        await self.results.start()
        await self.healths.start()

    async def stop(self) -> None:
        """What endpoints answer within a moment is still written; the next process makes the other calls once more."""
        with suppress(TimeoutError):
            async with asyncio.timeout(CALLS_AT_STOP):
                await self._no_calls.wait()
        await self.results.stop()
        await self.healths.stop()
        await self.http.guard.stop()

    def call_begins(self, key: SubscriptionKey) -> None:
        """Count a call."""
        self.line.began(key)
        self._no_calls.clear()

    def call_ended(self, key: SubscriptionKey) -> None:
        """Count it no more; its result is handed over right after this."""
        self.line.ended(key)
        if not self.line.calls:
            self._no_calls.set()

    async def _settle(self, rows: Sequence[Result]) -> Sequence[None]:
        await deliveries.settle(self.db.hot, rows)
        return [None] * len(rows)

    async def _note(self, notes: Sequence[HealthNote]) -> Sequence[bool]:
        return await webhooks.note_health(self.db, notes, self.clock.now())


class Channel:
    """How one version of a subscription is reached: its endpoint, its custom headers, its keys."""

    def __init__(self, subscription: Subscription, desk: WebhookDesk) -> None:
        """Raises UrlRefused for a URL whose form is never called."""
        self.subscription = subscription
        self._desk = desk
        self._endpoint: Endpoint = desk.http.endpoint(
            subscription.url, live=subscription.env == "live", owner=subscription.organization_id
        )
        try:
            self._lines = static_lines(headers_of(subscription, desk.keys))
            self._keys = [signing_key(_secret(subscription, subscription.secret_cipher, desk.keys))]
            self._previous = _former_key(subscription, desk)
        except Tampered:
            self._keys = []

    async def deliver(self, due: Due) -> Response:
        """Make one attempt."""
        told, subscription = due.told, self.subscription
        body = envelope(told, subscription.organization_id, unmasked=subscription.include_pii)
        return await self.post(
            body, event_id=told.event_id, event=told.type, delivery_id=due.id, attempt=due.attempts + 1
        )

    async def post(self, body: bytes, *, event_id: str, event: str, delivery_id: str, attempt: int) -> Response:
        """Sign the body again and post it."""
        if not self._keys:
            return _UNREADABLE
        now = self._desk.clock.now()
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
        return await self._endpoint.post(self._lines + signed, body)

    def close(self) -> None:
        """Close its connections."""
        self._endpoint.close()


def _former_key(subscription: Subscription, desk: WebhookDesk) -> bytes | None:
    """The key of the former secret during its grace. After it nobody needs it, also not to be readable."""
    cipher, until = subscription.previous_secret_cipher, subscription.previous_secret_until
    if cipher is None or until is None or until <= desk.clock.now():
        return None
    return signing_key(_secret(subscription, cipher, desk.keys))


def open_channel(subscription: Subscription, desk: WebhookDesk) -> Channel | None:
    """The way to a subscription; None for a URL that is never called, which its creation would have refused."""
    try:
        return Channel(subscription, desk)
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


def result_of(
    subscription: Subscription,
    due: Due,
    response: Response,
    now: datetime,
    chance: float,
    desk: WebhookDesk,
    *,
    may_end: bool,
) -> Result:
    """What an attempt comes to: delivered, tried again, or dropped after the last one or at its age (C23.3.3).

    `subscription`: as it was when the call began; `may_end`: an answer 410 ends it; `chance`, in [0, 1), spreads
    the retries.
    """
    attempts = due.attempts + 1
    outcome, due_at = None, None
    if response.ok:
        outcome = DELIVERED
    else:
        asked = retry_after(response.retry_after, now) if response.status in _ASKS_TO_WAIT else None
        due_at = now + timedelta(seconds=retry_delay(attempts, subscription.backoff_seconds, chance, asked))
        gone = may_end and response.status == GONE
        if attempts >= subscription.max_attempts or due_at - created_at(due.id) > MAX_AGE or gone:
            outcome, due_at = DROPPED, None
    return Result(
        subscription.key,
        due.id,
        due.attempts,
        outcome,
        now,
        response.status,
        None if response.ok else error_of(response),
        orjson.dumps(attempt_view(subscription, due.id, attempts, response, now, desk)).decode(),
        due_at,
    )


def error_of(response: Response) -> str:
    """Why an attempt failed, in words."""
    return response.error or f"the endpoint answered {response.status}"


def attempt_view(
    subscription: Subscription, delivery_id: str, attempt: int, response: Response, now: datetime, desk: WebhookDesk
) -> dict[str, object]:
    """An attempt as its delivery's history keeps it. Of a failure, up to 1 KiB of the answer is kept."""
    view: dict[str, object] = {
        "attempt": attempt,
        "at": format_timestamp(now),
        "durationMs": round(response.seconds * 1000),
    }
    if response.status is not None:
        view["statusCode"] = response.status
    if response.ok:
        return view
    view["error"] = error_of(response)
    text = response.body.decode("utf-8", "replace").replace("\x00", "\ufffd")
    if not text:
        return view
    if subscription.include_pii:  # an endpoint may well say what it was told (C30.5)
        view["answerCipher"] = desk.keys.encrypt(
            text, organization_id=subscription.organization_id, record_id=delivery_id, field=ANSWER_FIELD
        )
    else:
        view["answer"] = text
    return view


def _secret(subscription: Subscription, cipher: str, keys: KeyRing) -> str:
    return keys.decrypt(
        cipher, organization_id=subscription.organization_id, record_id=subscription.id, field=SECRET_FIELD
    )
