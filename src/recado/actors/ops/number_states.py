"""Looks at the live state of numbers, of one or of all that a scope has, and counts what waits of them (C34.2)."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Final, Protocol

from recado.actors.dispatch.lane_context import LaneContext
from recado.actors.ops.kept import MOST_SCOPES, Kept, KeptTogether
from recado.actors.ops.live_number import LiveNumber
from recado.actors.ops.number_state import NumberReader, NumberState, key_of
from recado.actors.ops.scope_numbers import COMMITS_WITHIN, DAY, LATELY, ScopeLook, ScopeNumbers
from recado.domain.channels.policies import NUMBERS_CHANNEL
from recado.domain.core.clock import Clock
from recado.domain.senders.sender import SenderKey
from recado.engine.supervisor import Supervisor
from recado.services.ops.activity import Activity
from recado.storage.access.organizations import SUSPENDED
from recado.storage.core.connections.postgres import Database
from recado.storage.ops import ops
from recado.storage.ops.ops import ChangedNumbers, SenderId, SenderQueue
from recado.storage.ops.scope import INSTALLATION, Scope

MOST_KNOWN: Final = 50_000
"""Numbers of all scopes that are looked at; beyond, the scope goes that was looked at longest ago."""
KNOWN_FOR: Final = 60.0  # seconds after the last look


class NumbersAway(Protocol):
    """Numbers that other processes have; one that does not answer in time has nothing."""

    async def number(self, sender: SenderKey) -> LiveNumber | None:
        """None: it is in no other process."""

    async def numbers(self) -> Mapping[SenderKey, LiveNumber]:
        """All that others have in memory."""


class NumberStates:
    """Looks at numbers."""

    def __init__(
        self, db: Database, *, clock: Clock, context: LaneContext, lanes: Supervisor, activity: Activity
    ) -> None:
        self._db = db
        self._clock = clock
        self._activity = activity
        self._live = NumberReader(context=context, lanes=lanes, activity=activity)
        self._away: NumbersAway | None = None
        self._scopes: OrderedDict[Scope, tuple[float, ScopeNumbers]] = OrderedDict()  # when each was looked at last
        self._others: Kept[Scope, Mapping[SenderKey, LiveNumber]] = Kept(self._read_others, clock=clock)
        self.queues: Kept[Scope, dict[SenderId, SenderQueue]] = KeptTogether(
            lambda scopes: ops.queues(db.searches, scopes), clock=clock, most=MOST_SCOPES, apart=attrgetter("whole")
        )
        self._changes: Kept[Scope, ChangedNumbers] = KeptTogether(
            self._read_changes, clock=clock, times=0.0, most=MOST_SCOPES, apart=attrgetter("whole")
        )

    def forget(self, scope: Scope) -> None:
        """A number of the scope was changed: whoever looks next sees it."""
        self._changes.forget(scope)

    async def _read_changes(self, scopes: Sequence[Scope]) -> dict[Scope, ChangedNumbers]:
        # An answer is at most so old when it is used, and the one before that was used, too.
        return await ops.changes(self._db.searches, scopes, self._clock.now() - COMMITS_WITHIN - 2 * LATELY)

    async def look(self, scope: Scope, most: int | None = None) -> ScopeLook:
        """All numbers of the scope, or the first so many, in steps of the event loop."""
        queues = await self.queues.get(scope)
        if self._away is not None:
            self._live.take_away(await self._others.get(INSTALLATION))
        found = self._scopes.get(scope)
        numbers = (
            ScopeNumbers(scope, self._db.searches, clock=self._clock, live=self._live, lately=self._changes.get)
            if found is None
            else found[1]
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
        away = None if self._away is None else await self._away.number(key_of(row))
        now, monotonic = self._clock.now(), self._clock.monotonic()
        state = self._live.state(row, queue, used, now, monotonic, suspended=suspended, away=away)
        state.hour = self._live.hour(number_id, away)
        return state

    def have_away(self, away: NumbersAway) -> None:
        """Other processes have some."""
        self._away = away

    def live(self, key: SenderKey) -> LiveNumber:
        """What this process has in memory of a number, but for its hour."""
        return self._live.live(key, self._clock.now(), self._clock.monotonic())

    def live_with_hour(self, key: SenderKey) -> LiveNumber:
        """As `live`, with its hour."""
        live = self.live(key)
        live.hour = self._live.hour(key.sender_id)
        return live

    def lives(self) -> list[SenderKey]:
        """The numbers of which this process has anything in memory."""
        return self._live.lives()

    async def note_queues(self) -> None:
        """Note of each number how much waits, for the series of its minutes; forget whom nobody looks at."""
        self._forget()
        queues = (await ops.queues(self._db.bulk, [INSTALLATION]))[INSTALLATION]
        await self._activity.waits(
            {
                sender_id: sum(queue.due) + queue.scheduled
                for (_, sender_id), queue in queues.items()
                if queue.channel == NUMBERS_CHANNEL and (any(queue.due) or queue.scheduled)
            }
        )

    async def _read_others(self, _: Scope) -> Mapping[SenderKey, LiveNumber]:
        return {} if self._away is None else await self._away.numbers()

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
        self._live.looks_no_more()
