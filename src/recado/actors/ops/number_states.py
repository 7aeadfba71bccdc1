"""Looks at the live state of numbers, of one or of all that a scope has, and counts what waits of them (C34.2)."""

from collections import OrderedDict
from typing import Final

from recado.actors.dispatch.lane_context import LaneContext
from recado.actors.ops.kept import Kept
from recado.actors.ops.number_state import NumberReader, NumberState, key_of
from recado.actors.ops.scope_numbers import DAY, ScopeLook, ScopeNumbers
from recado.domain.channels.policies import NUMBERS_CHANNEL
from recado.domain.core.clock import Clock
from recado.engine.supervisor import Supervisor
from recado.services.ops.activity import Activity
from recado.storage.access.organizations import SUSPENDED
from recado.storage.core.connections.postgres import Database
from recado.storage.ops import ops
from recado.storage.ops.ops import SenderId, SenderQueue
from recado.storage.ops.scope import Scope

MOST_KNOWN: Final = 50_000
"""Numbers of all scopes that are looked at; beyond, the scope goes that was looked at longest ago."""
KNOWN_FOR: Final = 60.0  # seconds after the last look


class NumberStates:
    """Looks at numbers."""

    def __init__(
        self, db: Database, *, clock: Clock, context: LaneContext, lanes: Supervisor, activity: Activity
    ) -> None:
        self._db = db
        self._clock = clock
        self._activity = activity
        self._live = NumberReader(context=context, lanes=lanes, activity=activity)
        self._scopes: OrderedDict[Scope, tuple[float, ScopeNumbers]] = OrderedDict()  # when each was looked at last
        self.queues: Kept[Scope, dict[SenderId, SenderQueue]] = Kept(self._read_queues, clock=clock)

    async def look(self, scope: Scope, most: int | None = None) -> ScopeLook:
        """All numbers of the scope, or the first so many, in steps of the event loop."""
        queues = await self.queues.get(scope)
        found = self._scopes.get(scope)
        numbers = (
            ScopeNumbers(scope, self._db.searches, clock=self._clock, live=self._live) if found is None else found[1]
        )
        self._scopes[scope] = self._clock.monotonic(), numbers
        self._scopes.move_to_end(scope)
        look = await numbers.look(queues, most)
        self._forget()
        return look

    async def one(self, organization_id: str, env: str, number_id: str) -> NumberState | None:
        """One number as it is now; None when there is none."""
        row = await ops.number(self._db, organization_id, env, number_id)
        if row is None:
            return None
        queue = await ops.queue_of(self._db.searches, organization_id, number_id)
        used = (0, 0)
        if not self._live.knows_usage(key_of(row)):
            read = await ops.usage(self._db.searches, [(organization_id, number_id)], self._clock.now() - DAY)
            used = read[number_id]
        suspended = row["organization_status"] == SUSPENDED
        return self._live.state(row, queue, used, self._clock.now(), self._clock.monotonic(), suspended=suspended)

    async def note_queues(self) -> None:
        """Note of each number how much waits, for the series of its minutes; forget whom nobody looks at."""
        self._forget()
        queues = await ops.queues(self._db.bulk, Scope())
        await self._activity.waits(
            {
                sender_id: sum(queue.due) + queue.scheduled
                for (_, sender_id), queue in queues.items()
                if queue.channel == NUMBERS_CHANNEL and (any(queue.due) or queue.scheduled)
            }
        )

    async def _read_queues(self, scope: Scope) -> dict[SenderId, SenderQueue]:
        return await ops.queues(self._db.searches, scope)

    def _forget(self) -> None:
        """Memory is for those that are looked at."""
        left_before = self._clock.monotonic() - KNOWN_FOR
        known = sum(len(numbers) for _, numbers in self._scopes.values())
        while self._scopes:
            scope, (looked_at, numbers) = next(iter(self._scopes.items()))
            if looked_at >= left_before and (known <= MOST_KNOWN or len(self._scopes) == 1):
                return
            del self._scopes[scope]
            known -= len(numbers)
