"""Makes the calls of webhook steps (C9.13): claims those that are wanted, calls outside of any transaction, and tells.

What a killed process had in flight is claimed still: the next one makes those calls once more, under the same key.
"""

import asyncio
from collections import OrderedDict
from dataclasses import replace
from datetime import timedelta
from typing import Final

import structlog

from recado.actors.journeys.step_call_shares import MOST_STEP_CALLS, StepCallShares
from recado.actors.webhooks.webhook_endpoint import WebhookEndpoint, open_endpoint
from recado.channels.http.guarded_http import GuardedHttp, Response
from recado.domain.core.clock import Clock
from recado.domain.core.events import JOURNEY_ACTION
from recado.domain.journeys.webhook_calls import TIMEOUT
from recado.domain.webhooks.webhook import SubscriptionKey
from recado.engine.periodic import Periodic
from recado.engine.turns import in_pieces
from recado.services.journeys.step_calls import CallToMake, StepCalls
from recado.storage.core.connections.batch import Batcher
from recado.storage.core.crypto import KeyRing
from recado.storage.journeys.step_calls import CallResult
from recado.storage.webhooks.webhooks import Subscription

log = structlog.get_logger()

EVERY: Final = 1.0  # seconds
LOOKED_AT: Final = 200  # subscriptions in a look
CLAIMED_AT_ONCE: Final = 100  # calls
BEGUN_AT_ONCE: Final = 20  # each is signed, which takes the loop some 50 µs
CLAIM_LIMIT: Final = timedelta(seconds=60)
"""After which nobody answers for a call: it ends in ten seconds, and what it came to is written in thirty."""
CALLS_AT_STOP: Final = 3.0  # seconds that a stop waits for them
KEPT_ENDPOINTS: Final = 500
MOST_RESULTS: Final = 5_000  # that wait to be written
_START: Final[SubscriptionKey] = SubscriptionKey("", "")
_NOT_CALLABLE: Final = Response(None, "the URL may not be called", b"", None, 0.0, refused=True)
_NOT_MADE: Final = Response(None, "the call could not be made", b"", None, 0.0)


class StepCaller:
    """A service (`start`, `stop`); `hint` says that calls are wanted."""

    def __init__(
        self, calls: StepCalls, *, http: GuardedHttp, keys: KeyRing, clock: Clock, at_once: int = MOST_STEP_CALLS
    ) -> None:
        """`at_once`: calls in flight. `http`: whose limits hold where they are lower."""
        self.clock = clock
        self.keys = keys
        self.http = replace(http, call_limit=min(http.call_limit, TIMEOUT.total_seconds()))
        self._calls = calls
        self._shares = StepCallShares(at_once)
        self._endpoints: OrderedDict[SubscriptionKey, WebhookEndpoint] = OrderedDict()
        self._under_way: set[asyncio.Task[None]] = set()
        self._results: Batcher[CallResult, None] = Batcher(
            "step calls", calls.settle, clock=clock, max_queue=MOST_RESULTS, concurrency=1
        )
        self._after = _START
        self._left = False  # more is wanted than there was room for
        self._release_at: float | None = None  # None: what the process before had under way is not released yet
        self._stopping = False
        self._worker = Periodic("step calls", EVERY, self.work, clock, at_once=True)

    async def start(self) -> None:
        self._stopping = False
        self._release_at = None
        await self._results.start()
        await self._worker.start()

    async def stop(self) -> None:
        """What endpoints answer within a moment is still written; the next process makes the other calls once more."""
        self._stopping = True
        await self._worker.stop()
        if self._under_way:
            await asyncio.wait(self._under_way, timeout=CALLS_AT_STOP)
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)
        await self._results.stop()
        while self._endpoints:
            self._endpoints.popitem()[1].close()

    def hint(self) -> None:
        """Calls are wanted that were not."""
        self._worker.hint()

    @property
    def unrecorded(self) -> int:
        """Calls in flight, and those whose results are not written yet."""
        return len(self._under_way)

    async def work(self) -> None:
        """Begin every call that is wanted and has room; of many subscriptions some at a time, in turns."""
        await self._release()
        self._left = True  # whoever ends meanwhile has this looked at once more
        self._left = await self._look()

    async def _look(self) -> bool:
        """Begin what has room, of each subscription from where the last look ended; answers whether more is wanted."""
        began_at, left = self._after, False
        while not self._stopping:
            most = min(CLAIMED_AT_ONCE, self._shares.free)
            if not most:
                return True
            waiting = await self._calls.waiting(self._after, LOOKED_AT)
            rooms = self._shares.rooms(waiting, most)
            filled = await self._begin(rooms) if rooms else False
            left = left or filled or len(rooms) < len(waiting)
            if sum(rooms.values()) == most:  # those after these have not been looked at
                self._after = next(reversed(rooms))
            elif len(waiting) == LOOKED_AT:
                self._after = waiting[-1]
            else:
                self._after = _START
                if began_at != _START:
                    self._worker.hint()  # those before it have their turn now
                break
        return left

    async def _release(self) -> None:
        """Let calls be made once more that nobody will answer for; at first all that are under way by their rows."""
        now = self.clock.monotonic()
        if self._release_at is not None and now < self._release_at:
            return
        before = None if self._release_at is None else self.clock.now() - CLAIM_LIMIT
        released = await self._calls.release(before)
        self._release_at = now + CLAIM_LIMIT.total_seconds() / 2
        if released:
            log.info("step_calls_released", calls=released)

    async def _begin(self, rooms: dict[SubscriptionKey, int]) -> bool:
        """Claim calls and begin them; answers whether one of these had as many as there was room for."""
        to_make, found = await self._calls.claim(rooms)
        async for piece in in_pieces(to_make, BEGUN_AT_ONCE):
            for call in piece:
                self._shares.begin(call.subscription.key)
                task = asyncio.create_task(self._make(call), name="step call")
                self._under_way.add(task)
                task.add_done_callback(self._under_way.discard)
        return any(found[key] == room for key, room in rooms.items())

    async def _make(self, wanted: CallToMake) -> None:
        """One call, and what it came to."""
        call = wanted.call
        try:
            endpoint = self._endpoint(wanted.subscription)
            response = _NOT_CALLABLE
            if endpoint is not None:
                response = await endpoint.post(
                    wanted.body,
                    event_id=call.event_id,
                    event=JOURNEY_ACTION,
                    delivery_id=call.delivery_id,
                    attempt=wanted.attempt,
                    idempotency_key=wanted.idempotency_key,
                )
        except Exception as error:  # noqa: BLE001 - a fault of ours is a call that failed
            log.error("step_call_not_made", execution_id=call.execution_id, error=type(error).__name__)
            response = _NOT_MADE
        finally:
            self._shares.end(wanted.subscription.key)
            if self._left:
                self._worker.hint()
        refused = response.refused
        result = CallResult(call, self.clock.now(), called=not refused, status=response.status, refused=refused)
        try:
            await self._results.put(result)
        except Exception as error:  # noqa: BLE001 - the call is made once more when its claim is old
            log.error("step_call_result_not_written", execution_id=call.execution_id, error=type(error).__name__)

    def _endpoint(self, subscription: Subscription) -> WebhookEndpoint | None:
        """The way to it, as it is now; those that were used last are kept, with their connections."""
        key = subscription.key
        kept = self._endpoints.pop(key, None)
        if kept is not None and kept.subscription.revision != subscription.revision:
            kept.close()
            kept = None
        endpoint = kept or open_endpoint(subscription, self)
        if endpoint is not None:
            self._endpoints[key] = endpoint
            if len(self._endpoints) > KEPT_ENDPOINTS:
                self._endpoints.popitem(last=False)[1].close()
        return endpoint
