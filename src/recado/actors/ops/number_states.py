"""The live state of numbers: what their actors hold in memory, and what is stored of those that have none (C34.2).

Nobody is asked: ten thousand mailboxes would answer one by one. What the database tells is read for many at once.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

from recado.actors.dispatch.lane import Lane
from recado.actors.dispatch.lane_context import LaneContext
from recado.actors.dispatch.lane_messages import LaneSituation
from recado.actors.ops.kept import Kept
from recado.domain.channels.policies import NUMBERS_CHANNEL, POLICIES
from recado.domain.core.clock import Clock
from recado.domain.dispatch.breaker import BreakerState
from recado.domain.dispatch.gates import FOREVER, Hold, SenderState
from recado.domain.dispatch.pacing import CATCH_UP
from recado.domain.messages.message import CLASSES, WaitReason
from recado.domain.ops.sender_activity import SenderActivity
from recado.domain.ops.trouble import Trouble, trouble_of
from recado.domain.senders.number import TIER_LIMITS, MessagingTier, NumberStatus, QualityRating, effective_per_second
from recado.domain.senders.sender import SenderKey
from recado.engine.actor_cell import ActorCell
from recado.engine.child import State
from recado.engine.failure import Failure
from recado.engine.supervisor import Supervisor
from recado.engine.turns import turns
from recado.services.ops.activity import Activity
from recado.storage.access.organizations import SUSPENDED
from recado.storage.core.postgres import Database
from recado.storage.ops import ops
from recado.storage.ops.ops import SenderId, SenderQueue
from recado.storage.ops.scope import Scope

AT_ONCE: Final = 250  # numbers in a turn of the event loop
DAY: Final = timedelta(days=1)
USAGE_KEPT: Final = 60.0  # seconds, of a number that sends nothing
MOST_USAGES: Final = 50_000
_NO_QUEUE: Final = SenderQueue("", NUMBERS_CHANNEL)
_NO_ERRORS: Final[Mapping[str, int]] = {}
_STATUSES: Final = {each.value: each for each in NumberStatus}
_QUALITIES: Final = {each.value: each for each in QualityRating}
_TIERS: Final = {each.value: each for each in MessagingTier}
_ANYWHERE: Final = ZoneInfo("UTC")


@dataclass(slots=True, eq=False)  # not frozen: thousands are made at once
class NumberState:
    """One number now. Rates in messages a second; `tier_used` None where the tier has no limit, so nobody counts.

    `lately`: messages that left or failed in the last five minutes, and those that failed.
    """

    organization_id: str
    env: str
    id: str
    display_phone: str
    status: NumberStatus
    quality: QualityRating
    tier: MessagingTier
    actor: State
    restarts: int
    last_failure: Failure | None
    per_second: float
    tokens: float
    sent_last_second: int
    sent_last_minute: int
    day_used: int
    per_day: int
    tier_used: int | None
    queue: SenderQueue
    in_flight: int
    holding: Hold | None
    lately: tuple[int, int]
    errors: Mapping[str, int]
    breaker: BreakerState
    activity: SenderActivity | None

    @property
    def due(self) -> int:
        """Messages that are due and have not left."""
        return sum(self.queue.due)

    @property
    def error_rate(self) -> float:
        """The part of failures among what was sent or failed lately."""
        every, failed = self.lately
        return failed / every if failed else 0.0

    @property
    def trouble(self) -> Trouble:
        return trouble_of(
            waiting=self.due,
            reason=None if self.holding is None else self.holding.reason,
            breaker=self.breaker,
            failing=self.actor is State.BACKING_OFF,
            status=self.status,
            quality=self.quality,
            error_rate=self.error_rate,
            uncertain=self.queue.uncertain,
        )


class NumberStates:
    """Looks at the numbers of a scope."""

    def __init__(
        self, db: Database, *, clock: Clock, context: LaneContext, lanes: Supervisor, activity: Activity
    ) -> None:
        self._db = db
        self._clock = clock
        self._context = context
        self._lanes = lanes
        self._activity = activity
        self._gates = POLICIES[NUMBERS_CHANNEL].gates
        self._usage: dict[str, tuple[float, tuple[int, int]]] = {}
        self.queues: Kept[Scope, dict[SenderId, SenderQueue]] = Kept(self._read_queues, clock=clock)

    async def of(self, scope: Scope) -> AsyncIterator[list[NumberState]]:
        """All numbers of the scope, some at a time, each part in a turn of its own."""
        queues = await self.queues.get(scope)
        after: SenderId = ("", "")
        while True:
            rows = await ops.numbers(self._db.searches, scope, after)
            usage = await self._usages(rows)
            for start in range(0, len(rows), AT_ONCE):
                await turns.next()
                now, monotonic = self._clock.now(), self._clock.monotonic()
                yield [
                    self._state(row, queues.get((row["organization_id"], row["id"])), usage, now, monotonic)
                    for row in rows[start : start + AT_ONCE]
                ]
            if len(rows) < ops.NUMBERS_AT_ONCE:
                return
            after = (rows[-1]["organization_id"], rows[-1]["id"])

    async def one(self, organization_id: str, env: str, number_id: str) -> NumberState | None:
        """One number as it is now; None when there is none."""
        row = await ops.number(self._db, organization_id, env, number_id)
        if row is None:
            return None
        queue = await ops.queue_of(self._db.searches, organization_id, number_id)
        usage = await self._usages([row])
        return self._state(row, queue, usage, self._clock.now(), self._clock.monotonic())

    async def note_queues(self) -> None:
        """Note of each number how much waits, for the series of its minutes."""
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

    async def _usages(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, tuple[int, int]]:
        """What is stored of those whose day or whose actor is not in memory: at most a minute old."""
        now = self._clock.monotonic()
        found: dict[str, tuple[int, int]] = {}
        wanted: list[SenderId] = []
        for row in rows:
            number_id = row["id"]
            kept = self._usage.get(number_id)
            if kept is not None and kept[0] > now:
                found[number_id] = kept[1]
            elif self._context.day(number_id) is None or self._lane_of(row) is None:
                wanted.append((row["organization_id"], number_id))
        if wanted:
            read = await ops.usage(self._db.searches, wanted, self._clock.now() - DAY)
            if len(self._usage) > MOST_USAGES:
                self._usage.clear()
            self._usage.update((number_id, (now + USAGE_KEPT, used)) for number_id, used in read.items())
            found |= read
        return found

    def _lane_of(self, row: Mapping[str, Any]) -> ActorCell | None:
        key = SenderKey(row["organization_id"], row["env"], NUMBERS_CHANNEL, row["id"])
        found = self._lanes.find(key)
        return found if isinstance(found, ActorCell) else None

    def _state(
        self,
        row: Mapping[str, Any],
        queue: SenderQueue | None,
        usage: Mapping[str, tuple[int, int]],
        now: datetime,
        monotonic: float,
    ) -> NumberState:
        number_id = row["id"]
        status, quality = _STATUSES[row["status"]], _QUALITIES[row["quality_rating"]]
        tier = _TIERS[row["messaging_tier"]]
        cell, gateway, day = self._lane_of(row), self._context.own_gateway(number_id), self._context.day(number_id)
        activity = self._activity.sender(number_id)
        actor = None if cell is None else cell.actor
        seen = actor.seen() if isinstance(actor, Lane) else None
        sent, recipients = usage.get(number_id, (0, 0))
        day_used = sent if day is None else day.used(now)
        tier_used: int | None = None
        if TIER_LIMITS[tier] is not None:
            counted = None if seen is None or seen.view is None else seen.view.tier
            tier_used = recipients if counted is None else counted.used(now)
        minute = int(now.timestamp()) // 60
        held = self._holding(row, status, quality, now) or (None if seen is None else seen.holding)
        if held is None and gateway is not None:
            held = gateway.trouble()
        if held is None and day_used >= row["per_day"]:
            held = Hold(WaitReason.DAILY_LIMIT)
        if held is None and queue is not None:
            held = _head_hold(queue, seen, now)
        per_second = effective_per_second(row["per_second"], quality)
        return NumberState(
            row["organization_id"],
            row["env"],
            number_id,
            row["display_phone"],
            status,
            quality,
            tier,
            State.STOPPED if cell is None else cell.state,
            0 if cell is None else cell.restarts,
            None if cell is None else cell.last_failure,
            per_second,
            _full(per_second) if gateway is None else gateway.pacer.tokens(monotonic),
            0 if gateway is None else gateway.pacer.sent_within(monotonic, 1.0),
            0 if gateway is None else gateway.pacer.sent_within(monotonic, 60.0),
            day_used,
            row["per_day"],
            tier_used,
            queue or _NO_QUEUE,
            0 if gateway is None else gateway.in_flight,
            held,
            (0, 0) if activity is None else activity.lately(minute),
            _NO_ERRORS if activity is None else activity.errors(minute),
            BreakerState.CLOSED if gateway is None else gateway.breaker.state,
            activity,
        )

    def _holding(
        self, row: Mapping[str, Any], status: NumberStatus, quality: QualityRating, now: datetime
    ) -> Hold | None:
        """What holds everything of the number by its row, also before its actor has heard of a change."""
        paused, suspended = row["operator_paused_at"], row["organization_status"] == SUSPENDED
        if paused is None and not suspended and status is NumberStatus.CONNECTED:
            return None
        state = SenderState(status, quality, paused, suspended, None, 0, None, _ANYWHERE)
        return self._gates.sender_hold(state, now)


def _head_hold(queue: SenderQueue, seen: LaneSituation | None, now: datetime) -> Hold | None:
    """What the first message waits for that nothing of the whole number holds."""
    view = None if seen is None else seen.view
    waiting: Hold | None = None
    for klass, _ in enumerate(CLASSES):
        head = queue.first.get(klass)
        if head is None:
            continue
        _, reason, until = head
        if reason is not None:
            held = Hold(WaitReason(reason), FOREVER if until is None else until)
        elif view is not None and (of_class := view.gates.class_hold(view.state, klass, now)) is not None:
            held = of_class
        else:
            return Hold(WaitReason.RATE, now if seen is None else seen.ready_at)
        waiting = waiting or held
    return waiting


def _full(per_second: float) -> float:
    """The tokens of a bucket that nobody has taken from."""
    return 1.0 + (CATCH_UP * per_second if per_second > 1.0 else 0.0)
