"""All webhook subscriptions: their actors under one supervisor, hints to them, the poller, and what is asked of them.

A thousand idle subscriptions are a thousand rows: an actor is in memory only while it has something to deliver.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

import structlog

from recado.actors.webhooks.webhook_attempt import attempt_view, error_of
from recado.actors.webhooks.webhook_dispatcher import WebhookDispatcher
from recado.actors.webhooks.webhook_endpoint import WebhookEndpoint
from recado.actors.webhooks.webhook_fair_queue import MOST_CALLS
from recado.actors.webhooks.webhook_messages import DeliveriesCommitted, DeliveriesDue, SubscriptionEdited
from recado.actors.webhooks.webhook_subscription import WebhookSubscriptionActor
from recado.channels.http.guarded_http import GuardedHttp, Response
from recado.channels.http.outbound_guard import UrlRefused
from recado.domain.core.clock import Clock
from recado.domain.core.ids import DELIVERY, EVENT, IdSource
from recado.domain.webhooks.webhook import MAX_AGE, SubscriptionKey
from recado.engine.actor_cell import ActorCell
from recado.engine.errors import ActorDeadError, MailboxFull
from recado.engine.periodic import Periodic
from recado.engine.registry import Registry
from recado.engine.runtime import Runtime
from recado.engine.supervisor import Supervisor
from recado.services.webhooks.webhook_samples import sample_of
from recado.storage.access import organizations
from recado.storage.core.connections.postgres import Database
from recado.storage.core.crypto import KeyRing
from recado.storage.core.shares.fair_places import FairPlaces
from recado.storage.webhooks import deliveries, events, webhooks
from recado.storage.webhooks.deliveries import DELIVERED, DROPPED, Due, Result, Told
from recado.storage.webhooks.webhooks import Subscription

log = structlog.get_logger()

EVERY = 1.0  # seconds
IDLE_AFTER = 30.0  # seconds until an idle subscription leaves memory
RESTARTS, PERIOD = 1_000, 60.0
# Each waits for an endpoint, up to 15 s, and its caller with it.
TESTS_AT_ONCE, TESTS_EACH, MOST_TESTS_WAITING = 50, 3, 3
AFTER_THEIR_TIME = timedelta(minutes=5)  # an actor drops its own; this is for those that are paused


class Webhooks:
    """The deliveries of this process. Add it to a supervisor with `join`."""

    def __init__(
        self,
        db: Database,
        *,
        clock: Clock,
        ids: IdSource,
        keys: KeyRing,
        http: GuardedHttp,
        runtime: Runtime,
        calls: int = MOST_CALLS,
    ) -> None:
        """`calls`: in flight, of all subscriptions (C31)."""
        self._db = db
        self._clock = clock
        self._ids = ids
        self._tests = FairPlaces(TESTS_AT_ONCE, each=TESTS_EACH, most_waiting=MOST_TESTS_WAITING)
        self.dispatcher = WebhookDispatcher(db, clock=clock, keys=keys, http=http, calls=calls)
        self.supervisor = Supervisor("webhooks", runtime=runtime, intensity=RESTARTS, period=PERIOD)
        self._registry: Registry[SubscriptionKey] = Registry(self.supervisor, idle_after=IDLE_AFTER)
        self._poller = Periodic("webhook deliveries", EVERY, self.poll, clock, at_once=True)

    def join(self, root: Supervisor) -> None:
        """Add everything to the tree, in the order of its start."""
        root.add_service("webhook results", self.dispatcher)
        root.add_supervisor(self.supervisor)
        root.add_service("webhook passivation", self._registry)
        root.add_service("webhook deliveries", self._poller)

    @property
    def unrecorded(self) -> int:
        """Deliveries under way, and those whose results are not written yet."""
        return self.dispatcher.queue.calls + self.dispatcher.results.pending

    def in_flight(self, subscription: SubscriptionKey) -> int:
        """Calls under way of a subscription."""
        found = self.supervisor.find(subscription)
        actor = found.actor if isinstance(found, ActorCell) else None
        return actor.in_flight if isinstance(actor, WebhookSubscriptionActor) else 0

    # Hints ------------------------------------------------------------------------------------------------------------

    def queued(self, subscriptions: Iterable[SubscriptionKey]) -> None:
        """Deliveries of these were committed; a mapping says which. A lost hint is made up for within a second."""
        ids = subscriptions if isinstance(subscriptions, Mapping) else {}
        for key in subscriptions:
            named = ids.get(key)
            self._tell(key, DeliveriesCommitted(tuple(named)) if named else DeliveriesDue())

    def changed(self, subscription: SubscriptionKey) -> None:
        """The subscription was changed, and the change is committed."""
        self._tell(subscription, SubscriptionEdited())

    async def poll(self) -> None:
        """Start anyone who has something to do."""
        self.queued(await deliveries.waiting(self._db.hot, self._clock.now()))

    def _tell(self, key: SubscriptionKey, message: object) -> None:
        try:
            self._registry.get_or_spawn(key, self._make).tell(message)
        except (MailboxFull, ActorDeadError):
            log.debug("webhook_hint_lost", subscription_id=key.subscription_id)

    def _make(self, key: SubscriptionKey) -> WebhookSubscriptionActor:
        return WebhookSubscriptionActor(key, self.dispatcher)

    # What is asked ----------------------------------------------------------------------------------------------------

    async def test(self, subscription: Subscription, event: str) -> tuple[str, Response]:
        """One attempt with example data, marked as a test and not counted in health; answers the delivery's id.

        `Unavailable` when too many tests of the organization are under way.
        """
        async with self._tests.place(subscription.organization_id):
            return await self._test(subscription, event)

    async def _test(self, subscription: Subscription, event: str) -> tuple[str, Response]:
        event_id, delivery_id = self._ids.new(EVENT), self._ids.new(DELIVERY)
        data = sample_of(event)
        async with self._db.transaction() as connection:
            await events.insert_test(
                connection,
                organization_id=subscription.organization_id,
                env=subscription.env,
                event_id=event_id,
                type=event,
                data=data,
            )
        told = await deliveries.told(self._db, subscription.organization_id, event_id)
        response = await self._once(subscription, told, delivery_id) if told else None
        if told is None or response is None:
            raise RuntimeError("the event that was just stored is not there")
        await self._log(subscription, told, delivery_id, response)
        return delivery_id, response

    async def _once(self, subscription: Subscription, told: Told, delivery_id: str) -> Response:
        try:
            endpoint = WebhookEndpoint(subscription, self.dispatcher)
        except UrlRefused as refusal:
            return Response(None, f"the URL may not be called: {refusal}", b"", None, 0.0)
        try:
            return await endpoint.deliver(Due(delivery_id, 0, told))
        finally:
            endpoint.close()

    async def _log(self, subscription: Subscription, told: Told, delivery_id: str, response: Response) -> None:
        result = Result(
            subscription.key,
            delivery_id,
            0,
            DELIVERED if response.ok else DROPPED,
            self._clock.now(),
            response.status,
            None if response.ok else error_of(response),
            "",
            None,
        )
        history = [attempt_view(subscription, delivery_id, 1, response, self._clock.now(), self.dispatcher.keys)]
        await deliveries.insert_settled(self._db, subscription.key, told, result, history)

    # Upkeep -----------------------------------------------------------------------------------------------------------

    async def tidy(self) -> None:
        """Drop what is too old to be delivered."""
        now = self._clock.now()
        overdue = now - MAX_AGE - AFTER_THEIR_TIME
        for key in await webhooks.all_keys(self._db):
            await deliveries.drop_all(self._db, key, now, "not delivered within 72 hours", before=overdue)
        self.queued(await webhooks.given_up(self._db, now))  # those with nothing to deliver: nobody else looks at them

    async def purge(self, now: datetime) -> None:
        """Remove what is past its time: events and deliveries after 30 days, deleted subscriptions after 90."""
        for key in await webhooks.all_keys(self._db):
            await deliveries.purge(self._db, key, now)
            await deliveries.drop_untold(self._db, key, now)  # or they would be first in the queue, and never leave it
        for organization in await organizations.all_organizations(self._db):
            await events.purge(self._db, organization.id, now)
        await webhooks.purge(self._db, now)
