"""One webhook subscription: what it delivers next, how much at once, and how its endpoint fares (C23.2, C23.3).

The rows are the truth and every message here is a hint. What it has in hand lives in memory only: after a crash it is
delivered once more.
"""

import asyncio
from collections import deque
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

import structlog

from recado.actors.errands import Errands
from recado.actors.webhook_desk import Channel, WebhookDesk, open_channel, result_of
from recado.actors.webhook_messages import Answered, Changed, HealthNoted, Look, Refilled, Settled, Wake
from recado.actors.webhook_payload import envelope
from recado.channels.guarded_http import Response
from recado.domain.errors import Unavailable
from recado.domain.ids import created_at
from recado.domain.webhook import GONE, MAX_AGE, Health, SubscriptionStatus, failure_pause
from recado.engine.actor import Actor
from recado.storage import deliveries, webhooks
from recado.storage.deliveries import Due
from recado.storage.webhooks import HealthNote, Subscription, SubscriptionKey

log = structlog.get_logger()

FIRST_CALLS, MOST_CALLS = 10, 100  # in flight
WINDOW, LOW = 500, 200  # deliveries in memory: read up to, and read on below
MOST_UNSETTLED = 2_000
READ_AGAIN_AFTER = 1.0  # seconds after the database was away
FRESH = 2.0  # seconds that the subscription's row is believed
HEALTH_EVERY = 1.0  # seconds between writes of counters
PUMP_AT_LEAST_EVERY = 64  # messages
FULL_PAUSE = 0.1  # seconds, when all subscriptions together have too many calls
ANY_TIME = datetime(9999, 1, 1, tzinfo=UTC)


class WebhookSubscriptionActor(Actor):
    """One subscription."""

    def __init__(self, key: SubscriptionKey, desk: WebhookDesk) -> None:
        super().__init__()
        self._key = key
        self._desk = desk
        self._clock = desk.clock
        self._errands = Errands(self.actor_ref, Wake(), clock=desk.clock, name=key[1])
        self._subscription: Subscription | None = None
        self._channel: Channel | None = None
        self._read_at = float("-inf")
        self._health = Health(SubscriptionStatus.ACTIVE)
        self._stored = SubscriptionStatus.ACTIVE  # the status that the row is believed to have
        self._health_noted: Health | None = None
        self._noting = False
        self._noted_at = float("-inf")
        self._ready: deque[Due] = deque()
        self._in_hand: set[str] = set()  # ready, in flight, or being written
        self._in_flight: set[str] = set()
        self._limit = FIRST_CALLS
        self._pause_until = float("-inf")
        self._look = True
        self._refilling = False
        self._probing = False
        self._dropping = False
        self._since_pump = 0

    # Its life ---------------------------------------------------------------------------------------------------------

    async def started(self) -> None:
        self._errands.tell(Wake())

    async def stopping(self) -> None:
        self._errands.quiet()
        if self._channel is not None:
            self._channel.close()

    async def failed(self, error: BaseException) -> None:
        await self.stopping()

    def may_passivate(self) -> bool:
        """Nothing in hand and nothing to be written."""
        return not self._in_hand and self._errands.idle and not self._noting and self._health == self._health_noted

    async def handle(self, message: object) -> None:
        match message:
            case Answered():
                self._answered(message)
            case Settled():
                self._in_hand.discard(message.delivery_id)
            case Look():
                self._look = True
            case Refilled():
                self._refilled(message)
            case Changed():
                self._read_at = float("-inf")
            case HealthNoted():
                self._health_was_noted(message)
        self._since_pump += 1
        if self.actor_inbox.empty() or self._since_pump >= PUMP_AT_LEAST_EVERY:
            self._since_pump = 0
            try:
                await self._pump()
            except Unavailable:
                self._errands.wake_in(READ_AGAIN_AFTER)

    # Its turns --------------------------------------------------------------------------------------------------------

    async def _pump(self) -> None:
        if self._clock.monotonic() - self._read_at >= FRESH:
            await self._read()
        if self._subscription is None:
            self._forget_ready()
            return
        match self._health.status:
            case SubscriptionStatus.ACTIVE:
                self._deliver()
            case SubscriptionStatus.FAILING:
                self._forget_ready()
                self._probe()
            case SubscriptionStatus.REVOKED:
                self._forget_ready()
                self._drop(self._clock.now(), "the subscription was revoked")
            case SubscriptionStatus.PAUSED:
                self._forget_ready()
        self._note_health()

    async def _read(self) -> None:
        """The subscription as it is now; its own findings stand unless somebody moved the status."""
        organization_id, subscription_id = self._key
        found = await webhooks.get(self._desk.db, organization_id, None, subscription_id)
        before, self._subscription = self._subscription, found
        self._read_at = self._clock.monotonic()
        if found is None:
            return
        moved_by_another = found.status is not self._stored and not self._noting
        if before is None or moved_by_another:
            self._health = self._health_noted = found.health
            self._stored = found.status
            self._look = True
        if before is None or self._channel is None or found.revision != before.revision:
            if self._channel is not None:
                self._channel.close()
            self._channel = open_channel(found, self._desk)

    def _deliver(self) -> None:
        pause = self._pause_until - self._clock.monotonic()
        if pause > 0:
            self._errands.wake_in(pause)
            return
        while self._ready and len(self._in_flight) < self._limit and len(self._in_hand) < MOST_UNSETTLED:
            if self._desk.full:
                self._errands.wake_in(FULL_PAUSE)
                break
            self._begin(self._ready.popleft(), probe=False)
        if self._look and not self._refilling and len(self._ready) < LOW:
            self._look, self._refilling = False, True
            self._errands.begin(self._refill(self._clock.now(), WINDOW - len(self._ready), probe=False))

    def _probe(self) -> None:
        """While failing, one delivery at its moment, whichever is next; the others spend no attempt."""
        now = self._clock.now()
        aged = self._health.aged(now)
        if aged is not self._health:
            self._health = aged
            self._errands.tell(Wake())
            return
        due_at = self._health.probe_at
        due = due_at is None or due_at <= now
        # Only when something may be there: the poller says so while the queue holds anything.
        if due and self._look and not self._probing and not self._refilling and not self._in_flight:
            self._look = False
            self._probing = self._refilling = True
            self._errands.begin(self._refill(ANY_TIME, 1, probe=True))

    def _begin(self, due: Due, *, probe: bool) -> None:
        oldest = self._clock.now() - MAX_AGE
        if created_at(due.id) < oldest:
            self._probing = self._probing and not probe
            self._in_hand.discard(due.id)
            self._drop(oldest, "not delivered within 72 hours")
            return
        self._in_flight.add(due.id)
        self._desk.calls += 1
        self._errands.begin(self._attempt(due, probe))

    async def _attempt(self, due: Due, probe: bool) -> None:
        response = Response(None, "the delivery could not be made", b"", None, 0.0)
        try:
            subscription, channel, told = self._subscription, self._channel, due.told
            if subscription is not None and channel is not None:
                body = envelope(told, subscription.organization_id, unmasked=subscription.include_pii)
                response = await channel.post(
                    body, event_id=told.event_id, event=told.type, delivery_id=due.id, attempt=due.attempts + 1
                )
        finally:
            self._desk.calls -= 1
            self._errands.tell(Answered(due, response, probe))

    def _answered(self, answered: Answered) -> None:
        due, response = answered.due, answered.response
        self._in_flight.discard(due.id)
        if answered.probe:
            self._probing = False
        subscription = self._subscription
        if subscription is None:
            self._in_hand.discard(due.id)
            return
        now = self._clock.now()
        current = replace(subscription, status=self._health.status)
        result = result_of(current, due, response, self.context.random.random(), self._desk)
        if response.ok:
            self._limit, self._pause_until = min(self._limit + 1, MOST_CALLS), float("-inf")
            self._look = self._look or self._health.status is SubscriptionStatus.FAILING  # the backlog is free again
            self._health = self._health.succeeded(now)
        else:
            self._limit = max(self._limit // 2, 1)
            self._pause_until = self._clock.monotonic() + failure_pause(self._health.consecutive_failures)
            self._health = self._health.failed(now, gone=response.status == GONE, probe=answered.probe)
        try:
            self._desk.results.put(result).add_done_callback(partial(self._was_settled, due.id))
        except Unavailable:
            self._in_hand.discard(due.id)  # read and delivered once more
            self._errands.wake_in(READ_AGAIN_AFTER)

    def _was_settled(self, delivery_id: str, future: "asyncio.Future[None]") -> None:
        if not future.cancelled() and (error := future.exception()) is not None:
            log.warning("delivery_not_settled", delivery_id=delivery_id, error=type(error).__name__)
        self._errands.tell(Settled(delivery_id))

    # Reading and dropping ---------------------------------------------------------------------------------------------

    async def _refill(self, at: datetime, limit: int, *, probe: bool) -> None:
        rows: tuple[Due, ...] | None = None
        more = False
        try:
            found, more = await deliveries.due(self._desk.db.hot, self._key, at, self._in_hand, limit)
            rows = tuple(found)
        finally:
            self._errands.tell(Refilled(rows, more, probe))

    def _refilled(self, message: Refilled) -> None:
        self._refilling = False
        if message.rows is None:
            self._look, self._probing = True, False
            self._errands.wake_in(READ_AGAIN_AFTER)
            return
        rows = [due for due in message.rows if due.id not in self._in_hand]
        if message.probe:
            self._probing = False
            if rows and self._health.status is SubscriptionStatus.FAILING and self._channel is not None:
                self._probing = True
                self._in_hand.add(rows[0].id)
                self._begin(rows[0], probe=True)
            return
        self._look = self._look or message.more
        self._in_hand.update(due.id for due in rows)
        self._ready.extend(rows)

    def _forget_ready(self) -> None:
        if self._ready:
            self._in_hand.difference_update(due.id for due in self._ready)
            self._ready.clear()
            self._look = True

    def _drop(self, before: datetime, reason: str) -> None:
        """Give up what was made before a moment; a replay finds it. One such errand at a time."""
        if not self._dropping:
            self._dropping = True
            self._errands.begin(self._drop_all(before, reason))

    async def _drop_all(self, before: datetime, reason: str) -> None:
        try:
            await deliveries.drop_all(self._desk.db, self._key, self._clock.now(), reason, before=before)
        finally:
            self._dropping = False

    # Health -----------------------------------------------------------------------------------------------------------

    def _note_health(self) -> None:
        """Write what was found out: a status at once, counters once a second."""
        if self._noting or self._health == self._health_noted:
            return
        wait = self._noted_at + HEALTH_EVERY - self._clock.monotonic()
        if wait > 0 and self._health.status is self._stored:
            self._errands.wake_in(wait)
            return
        self._noting = True
        self._noted_at = self._clock.monotonic()
        self._errands.begin(self._write_health(HealthNote(self._key, self._stored, self._health)))

    async def _write_health(self, note: HealthNote) -> None:
        stood: bool | None = None
        try:
            stood = await self._desk.healths.put(note)
        finally:
            self._errands.tell(HealthNoted(note, stood))

    def _health_was_noted(self, message: HealthNoted) -> None:
        self._noting = False
        if message.stood:
            self._stored = message.note.health.status
            self._health_noted = message.note.health
            if message.note.expected is not self._stored:
                self._read_at = float("-inf")  # its revision rose with its status
        elif message.stood is False:
            self._health_noted = self._health = replace(self._health, status=message.note.expected)
            self._read_at = float("-inf")
        else:
            self._errands.wake_in(READ_AGAIN_AFTER)
