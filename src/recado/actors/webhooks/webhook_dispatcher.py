"""Dispatches the deliveries of all subscriptions: whose call begins next, who reads, and results in batches."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from recado.actors.webhooks.webhook_fair_queue import MOST_CALLS, FairCallQueue
from recado.channels.http.guarded_http import GuardedHttp, Response
from recado.domain.core.clock import Clock
from recado.domain.ops.recent_calls import RecentCalls
from recado.domain.webhooks.webhook import SubscriptionKey
from recado.engine.turns import turns
from recado.storage.core.connections.batch import Batcher
from recado.storage.core.connections.postgres import Database
from recado.storage.core.crypto import KeyRing
from recado.storage.core.shares.fair_places import FairPlaces
from recado.storage.webhooks import deliveries, webhooks
from recado.storage.webhooks.deliveries import Result
from recado.storage.webhooks.webhooks import HealthNote

READ_AT_ONCE, READ_EACH = 4, 2  # statements that read deliveries: in all, and of one organization (C31)
MOST_REMEMBERED = 10_000  # subscriptions whose last calls are known
MOST_WAITING = 1_000  # subscriptions of an organization, of which each reads one by one
CALLS_AT_STOP = 3.0  # seconds that a stop waits for them
SETTLE_LINGER = 0.025  # seconds that results gather while there are many: nobody waits for them


class WebhookDispatcher:
    """A service. `queue`: whose call begins next; `reading`: places of those who read deliveries, by organization."""

    def __init__(
        self, db: Database, *, clock: Clock, keys: KeyRing, http: GuardedHttp, calls: int = MOST_CALLS
    ) -> None:
        self.db = db
        self.clock = clock
        self.keys = keys
        self.http = http
        self.queue = FairCallQueue(turns, calls)
        self.reading = FairPlaces(READ_AT_ONCE, each=READ_EACH, most_waiting=MOST_WAITING)
        self.calls: dict[SubscriptionKey, RecentCalls] = {}  # the last ones of each, since the start
        self.delivered = self.not_delivered = 0  # attempts since the start
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
        self.queue.began(key)
        self._no_calls.clear()

    def call_ended(self, key: SubscriptionKey) -> None:
        """Count it no more; its result is handed over right after this."""
        self.queue.ended(key)
        if not self.queue.calls:
            self._no_calls.set()

    def answered(self, key: SubscriptionKey, response: Response) -> None:
        """Count what an attempt came to."""
        self.delivered += response.ok
        self.not_delivered += not response.ok
        calls = self.calls.get(key)
        if calls is None:
            if len(self.calls) >= MOST_REMEMBERED:
                del self.calls[next(iter(self.calls))]
            calls = self.calls[key] = RecentCalls()
        calls.add(int(response.seconds * 1_000), ok=response.ok)

    async def _settle(self, rows: Sequence[Result]) -> Sequence[None]:
        await deliveries.settle(self.db.hot, rows)
        return [None] * len(rows)

    async def _note(self, notes: Sequence[HealthNote]) -> Sequence[bool]:
        return await webhooks.note_health(self.db, notes, self.clock.now())
