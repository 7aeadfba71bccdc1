"""One webhook subscription: what it delivers next, how much at once, and how its endpoint fares (C23.2, C23.3).

The rows are the truth and every message here is a hint. What it has in hand lives in memory only: after a crash it is
delivered once more.
"""

import asyncio
from collections.abc import Coroutine
from datetime import UTC, datetime
from functools import partial
from typing import Any

import structlog

from recado.actors.dispatch.actor_tasks import ActorTasks
from recado.actors.webhooks.webhook_attempt import result_of
from recado.actors.webhooks.webhook_concurrency import ConcurrencyLimit
from recado.actors.webhooks.webhook_dispatcher import WebhookDispatcher
from recado.actors.webhooks.webhook_endpoint import WebhookEndpoint, open_endpoint
from recado.actors.webhooks.webhook_health import EndpointHealth
from recado.actors.webhooks.webhook_messages import (
    AttemptEnded,
    DeliveriesCommitted,
    DeliveriesDue,
    DeliveriesRead,
    HealthWritten,
    ResultsWritten,
    SubscriptionEdited,
    TimePassed,
)
from recado.actors.webhooks.webhook_window import LOW, DeliveryWindow
from recado.channels.http.guarded_http import Response
from recado.domain.core.errors import Unavailable
from recado.domain.core.ids import created_at
from recado.domain.webhooks.webhook import GONE, MAX_AGE, SubscriptionKey, SubscriptionStatus
from recado.engine.actor import Actor
from recado.storage.core.shares.callers import working_for
from recado.storage.webhooks import deliveries, webhooks
from recado.storage.webhooks.deliveries import Due
from recado.storage.webhooks.webhooks import HealthNote, Subscription

log = structlog.get_logger()

READ_AGAIN_AFTER = 1.0  # seconds after the database was away
FRESH = 2.0  # seconds that the subscription's row is believed
PUMP_AT_LEAST_EVERY = 64  # messages
_NOT_MADE = Response(None, "the delivery could not be made", b"", None, 0.0)
ANY_TIME = datetime(9999, 1, 1, tzinfo=UTC)


class WebhookSubscriptionActor(Actor):
    """One subscription."""

    def __init__(self, key: SubscriptionKey, dispatcher: WebhookDispatcher) -> None:
        super().__init__()
        self._key = key
        self._dispatcher = dispatcher
        self._clock = dispatcher.clock
        self._tasks = ActorTasks(self.actor_ref, TimePassed(), clock=dispatcher.clock, name=key.subscription_id)
        self._subscription: Subscription | None = None
        self._endpoint: WebhookEndpoint | None = None
        self._read_at = float("-inf")
        self._health = EndpointHealth()
        self._window = DeliveryWindow()
        self._settled: list[str] = []  # written, or not to be written; still in hand
        self._written = 0  # of which the fair queue does not know yet
        self._limit = ConcurrencyLimit()
        self._probing = False
        self._dropping = False
        self._since_pump = 0

    # Its life ---------------------------------------------------------------------------------------------------------

    async def started(self) -> None:
        self._tasks.tell(TimePassed())

    async def stopping(self) -> None:
        self._tasks.quiet()
        self._dispatcher.queue.leave(self._key)
        if self._endpoint is not None:
            self._endpoint.close()

    async def failed(self, error: BaseException) -> None:
        await self.stopping()

    def may_passivate(self) -> bool:
        """Nothing in hand and nothing to be written."""
        return not self._window.in_hand and self._tasks.idle and self._health.written

    async def handle(self, message: object) -> None:
        match message:
            case AttemptEnded():
                self._answered(message)
            case ResultsWritten():
                self._window.in_hand.difference_update(self._settled)
                self._settled.clear()
            case DeliveriesCommitted():
                self._window.named(message.delivery_ids)
            case DeliveriesDue():
                self._window.look = True
            case DeliveriesRead():
                self._refilled(message)
            case SubscriptionEdited():
                self._read_at = float("-inf")
            case HealthWritten():
                self._health_was_noted(message)
        self._since_pump += 1
        if self.actor_inbox.empty() or self._since_pump >= PUMP_AT_LEAST_EVERY:
            self._since_pump = 0
            try:
                await self._pump()
            except Unavailable:
                self._tasks.wake_in(READ_AGAIN_AFTER)

    # Its turns --------------------------------------------------------------------------------------------------------

    async def _pump(self) -> None:
        if self._clock.monotonic() - self._read_at >= FRESH:
            await self._read()
        if self._subscription is None:
            self._window.forget_ready()
            return
        status = self._health.status
        if status is SubscriptionStatus.ACTIVE:
            self._deliver()
        else:
            self._window.forget_ready()
        if status is SubscriptionStatus.FAILING:
            self._probe()
        elif status is SubscriptionStatus.REVOKED and self._window.in_hand <= self._limit.in_flight:
            # Not before the answers that came are written: the one that ended it stands in its delivery.
            self._drop(self._clock.now(), "the subscription was revoked")
        self._note_health(self._subscription.url)

    async def _read(self) -> None:
        """The subscription as it is now; its own findings stand unless somebody moved the status."""
        organization_id, subscription_id = self._key
        found = await webhooks.get(self._dispatcher.db, organization_id, None, subscription_id)
        before, self._subscription = self._subscription, found
        self._read_at = self._clock.monotonic()
        if found is None:
            return
        if self._health.read(found.health, first=before is None):
            self._window.look = True
        if before is None or self._endpoint is None or found.revision != before.revision:
            if self._endpoint is not None:
                self._endpoint.close()
            self._endpoint = open_endpoint(found, self._dispatcher)

    def _deliver(self) -> None:
        pause = self._limit.pause(self._clock.monotonic())
        if pause > 0:
            self._tasks.wake_in(pause)
            return
        window = self._window
        if window.ready and self._limit.has_room:
            self._dispatcher.queue.enter(self._key, self)
        now = self._clock.now()
        if named := window.next_named():
            self._tasks.begin(self._refill(self._named(now, named)))
        elif count := window.next_look():
            self._tasks.begin(self._refill(self._due(now, count)))

    @property
    def in_flight(self) -> int:
        """How many calls are in flight."""
        return len(self._limit.in_flight)

    def begin_next(self) -> bool:
        """Begin the next attempt, not in the actor's turn but in the fair queue's; answers whether there was one."""
        window = self._window
        if not window.ready or not self._limit.has_room:
            return False
        self._begin(window.ready.popleft(), probe=False)
        if len(window.ready) == LOW - 1:
            self._tasks.wake()  # to read on
        return True

    def _probe(self) -> None:
        """While failing, one delivery at its moment, whichever is next; the others spend no attempt."""
        now = self._clock.now()
        if self._health.aged(now):
            self._tasks.tell(TimePassed())
            return
        due_at = self._health.current.probe_at
        due = due_at is None or due_at <= now
        # Only when something may be there: the poller says so while the queue holds anything.
        if due and self._window.look and not self._probing and not self._window.reading and not self._limit.in_flight:
            self._probing = True
            self._window.look = False
            self._window.begin_look()
            self._tasks.begin(self._refill(self._due(ANY_TIME, 1), probe=True))

    def _begin(self, due: Due, *, probe: bool) -> None:
        oldest = self._clock.now() - MAX_AGE
        if created_at(due.id) < oldest:
            self._probing = self._probing and not probe
            self._window.in_hand.discard(due.id)
            self._drop(oldest, "not delivered within 72 hours")
            return
        self._limit.in_flight.add(due.id)
        self._dispatcher.call_begins(self._key)
        self._tasks.begin(self._attempt(due, probe))

    async def _attempt(self, due: Due, probe: bool) -> None:
        made_by, endpoint = self._subscription, self._endpoint  # as they are now: either may change before the answer
        try:
            response = _NOT_MADE if endpoint is None else await endpoint.deliver(due)
        except Exception as error:  # noqa: BLE001 - a fault of ours is an attempt that failed
            log.error("delivery_not_made", delivery_id=due.id, error=type(error).__name__)
            response = _NOT_MADE
        finally:
            self._dispatcher.call_ended(self._key)
        self._dispatcher.answered(self._key, response)
        self._settle(due, made_by, response)
        self._tasks.tell(AttemptEnded(due, response, probe, None if made_by is None else made_by.url))

    def _answered(self, answered: AttemptEnded) -> None:
        due, response = answered.due, answered.response
        self._limit.in_flight.discard(due.id)
        self._probing = self._probing and not answered.probe
        if self._subscription is None or answered.url is None:
            self._window.in_hand.discard(due.id)
            return
        if answered.url != self._subscription.url:
            return  # what its former address makes of an event says nothing about the present one
        now = self._clock.now()
        if response.ok:
            self._limit.succeeded()
            self._window.look = (
                self._window.look or self._health.status is SubscriptionStatus.FAILING
            )  # it is free again
            self._health.succeeded(now)
        else:
            self._dispatcher.queue.leave(self._key)  # until its next turn, which knows whether and when it goes on
            self._limit.failed(self._clock.monotonic(), self._health.current.consecutive_failures)
            self._health.failed(now, gone=response.status == GONE, probe=answered.probe)

    def _settle(self, due: Due, made_by: Subscription | None, response: Response) -> None:
        """Have the result of an attempt written, not in the actor's turn but at once: a stop loses no answer."""
        if self._subscription is None or made_by is None:
            self._dispatcher.queue.written(self._key)
            return
        now, chance = self._clock.now(), self.context.random.random()
        may_end = self._health.in_service and made_by.url == self._subscription.url
        try:
            result = result_of(made_by, due, response, now, chance, self._dispatcher.keys, may_end=may_end)
            self._dispatcher.results.put(result).add_done_callback(partial(self._was_settled, due.id))
        except Exception as error:  # noqa: BLE001 - no room, or a fault of ours: neither may keep it in hand for good
            log.warning("delivery_not_settled", delivery_id=due.id, error=type(error).__name__)
            self._dispatcher.queue.written(self._key)
            self._window.in_hand.discard(due.id)  # read and delivered once more
            self._tasks.wake_in(READ_AGAIN_AFTER)

    def _was_settled(self, delivery_id: str, future: "asyncio.Future[None]") -> None:
        if not future.cancelled() and (error := future.exception()) is not None:
            log.warning("delivery_not_settled", delivery_id=delivery_id, error=type(error).__name__)
        self._written += 1
        if self._written == 1:  # many are written at once
            asyncio.get_running_loop().call_soon(self._tell_written)
        self._settled.append(delivery_id)
        if len(self._settled) == 1:
            self._tasks.tell(ResultsWritten())

    def _tell_written(self) -> None:
        count, self._written = self._written, 0
        self._dispatcher.queue.written(self._key, count)

    # Reading and dropping ---------------------------------------------------------------------------------------------

    async def _refill(self, reading: Coroutine[Any, Any, tuple[list[Due], bool]], *, probe: bool = False) -> None:
        rows: tuple[Due, ...] | None = None
        more = False
        try:
            found, more = await reading
            rows = tuple(found)
        finally:
            self._tasks.tell(DeliveriesRead(rows, more, probe))

    async def _due(self, at: datetime, limit: int) -> tuple[list[Due], bool]:
        async with self._dispatcher.reading.place(self._key[0]):
            db = self._dispatcher.db
            return await deliveries.due(db.hot, self._key, at, self._window.in_hand, limit, db.months)

    async def _named(self, at: datetime, delivery_ids: list[str]) -> tuple[list[Due], bool]:
        async with self._dispatcher.reading.place(self._key[0]):
            db = self._dispatcher.db
            return await deliveries.due_of(db.hot, self._key, at, delivery_ids, db.months), False

    def _refilled(self, message: DeliveriesRead) -> None:
        rows = self._window.was_read(message.rows or ())
        if message.rows is None:
            self._window.look, self._probing = True, False
            self._tasks.wake_in(READ_AGAIN_AFTER)
            return
        if message.probe:
            self._probing = False
            if rows and self._health.status is SubscriptionStatus.FAILING and self._endpoint is not None:
                self._probing = True
                self._window.in_hand.add(rows[0].id)
                self._begin(rows[0], probe=True)
            return
        self._window.look = self._window.look or message.more
        self._window.add(rows)

    def _drop(self, before: datetime, reason: str) -> None:
        """Give up what was made before a moment; a replay finds it. One such errand at a time."""
        if not self._dropping:
            self._dropping = True
            self._tasks.begin(self._drop_all(before, reason))

    async def _drop_all(self, before: datetime, reason: str) -> None:
        working_for.set(self._key[0])  # a thousand rows in a statement: its organization's share of that
        try:
            await deliveries.drop_all(self._dispatcher.db.bulk, self._key, self._clock.now(), reason, before=before)
        finally:
            self._dropping = False

    # Health -----------------------------------------------------------------------------------------------------------

    def _note_health(self, url: str) -> None:
        """Write what was found out about the endpoint."""
        now = self._clock.monotonic()
        pause = self._health.pause(now)
        if pause is not None and pause > 0:
            self._tasks.wake_in(pause)
        elif pause is not None:
            self._tasks.begin(self._write_health(self._health.begin(self._key, url, now)))

    async def _write_health(self, note: HealthNote) -> None:
        stood: bool | None = None
        try:
            stood = await self._dispatcher.healths.put(note)
        finally:
            self._tasks.tell(HealthWritten(note, stood))

    def _health_was_noted(self, message: HealthWritten) -> None:
        note, stood = message.note, message.stood
        self._health.ended(note, stood)
        if stood is None:
            self._tasks.wake_in(READ_AGAIN_AFTER)
        elif not stood or note.expected is not note.health.status or self._health.unheeded:
            self._read_at = float("-inf")  # its revision rose with its status, or another changed it
