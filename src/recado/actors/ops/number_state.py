"""The live state of a number: what its actor holds in memory, and what is stored of one that has none (C34.2).

Nobody is asked: ten thousand mailboxes would answer one by one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from recado.actors.dispatch.gateway import Gateway
from recado.actors.dispatch.lane import Lane
from recado.actors.dispatch.lane_context import LaneContext
from recado.actors.dispatch.lane_messages import LaneSituation
from recado.domain.channels.policies import NUMBERS_CHANNEL, POLICIES
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
from recado.services.ops.activity import Activity
from recado.storage.ops.ops import SenderId, SenderQueue

Counts = tuple[int, int]
"""Actors that came into memory, and messages that failed."""
NO_QUEUE: Final = SenderQueue("", NUMBERS_CHANNEL)
_NO_ERRORS: Final[Mapping[str, int]] = {}
_STATUSES: Final = {each.value: each for each in NumberStatus}
_QUALITIES: Final = {each.value: each for each in QualityRating}
_TIERS: Final = {each.value: each for each in MessagingTier}
_ANYWHERE: Final = ZoneInfo("UTC")


@dataclass(slots=True, eq=False)  # not frozen: thousands are made at once
class NumberState:
    """One number now. Rates in messages a second; `tier_used` None where the tier has no limit, so nobody counts.

    `lately`: messages that left or failed in the last five minutes, and those that failed. `held_by_row`: what holds it
    stands in its row, and ends with a change of that. `starting`: its actor has not read its sender yet.

    `shown`: what it is about and its JSON, once somebody has rendered it.
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
    held_by_row: bool
    starting: bool
    shown: tuple[str, bytes] | None = None

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


class NumberReader:
    """Sees what is known in memory of numbers."""

    def __init__(self, *, context: LaneContext, lanes: Supervisor, activity: Activity) -> None:
        self._context = context
        self._lanes = lanes
        self._activity = activity
        self._gates = POLICIES[NUMBERS_CHANNEL].gates
        self.gateway = context.own_gateway

    def cell(self, key: SenderKey) -> ActorCell | None:
        """The actor of a number, while it is in memory."""
        found = self._lanes.find(key)
        return found if isinstance(found, ActorCell) else None

    @property
    def counts(self) -> Counts:
        """How much has happened so far that no number tells by itself."""
        return self._lanes.admitted, self._activity.fallen

    def touched(self, since: Counts) -> list[SenderId] | None:
        """Senders that came into memory, or of which a message failed, since then; None: too many to tell."""
        admitted, fallen = since
        failed = self._activity.fallen_since(fallen)
        if failed is None:
            return None
        keys = [child.key for child in self._lanes.admitted_since(admitted)]
        return [*failed, *((key.organization_id, key.sender_id) for key in keys if isinstance(key, SenderKey))]

    def knows_usage(self, key: SenderKey) -> bool:
        """Whether its day and its tier are in memory."""
        return self._context.day(key.sender_id) is not None and self.cell(key) is not None

    def state(
        self,
        row: Mapping[str, Any],
        queue: SenderQueue | None,
        usage: tuple[int, int],
        now: datetime,
        monotonic: float,
        *,
        suspended: bool,
    ) -> NumberState:
        """The number as it is now. `usage`: messages and recipients of its day, as stored; `suspended`: its owner."""
        number_id = row["id"]
        status, quality = _STATUSES[row["status"]], _QUALITIES[row["quality_rating"]]
        tier = _TIERS[row["messaging_tier"]]
        cell = self.cell(key_of(row))
        gateway, day = self.gateway(number_id), self._context.day(number_id)
        activity = self._activity.sender(number_id)
        actor = None if cell is None else cell.actor
        seen = actor.seen() if isinstance(actor, Lane) else None
        sent, recipients = usage
        day_used = sent if day is None else day.used(now)
        tier_used: int | None = None
        if TIER_LIMITS[tier] is not None:
            counted = None if seen is None or seen.view is None else seen.view.tier
            tier_used = recipients if counted is None else counted.used(now)
        minute = int(now.timestamp()) // 60
        by_row = self._holding(row, status, quality, now, suspended=suspended)
        held = by_row or (None if seen is None else seen.holding)
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
            queue or NO_QUEUE,
            0 if gateway is None else gateway.in_flight,
            held,
            (0, 0) if activity is None else activity.lately(minute),
            _NO_ERRORS if activity is None else activity.errors(minute),
            BreakerState.CLOSED if gateway is None else gateway.breaker.state,
            activity,
            by_row is not None and by_row.until == FOREVER,
            cell is not None and seen is None,
        )

    def _holding(
        self, row: Mapping[str, Any], status: NumberStatus, quality: QualityRating, now: datetime, *, suspended: bool
    ) -> Hold | None:
        """What holds everything of the number by its row, also before its actor has heard of a change."""
        paused = row["operator_paused_at"]
        if paused is None and not suspended and status is NumberStatus.CONNECTED:
            return None
        state = SenderState(status, quality, paused, suspended, None, 0, None, _ANYWHERE)
        return self._gates.sender_hold(state, now)


def key_of(row: Mapping[str, Any]) -> SenderKey:
    """Names the lane of a number."""
    return SenderKey(row["organization_id"], row["env"], NUMBERS_CHANNEL, row["id"])


def steady_until(state: NumberState, gateway: Gateway | None, now: datetime, monotonic: float) -> float:
    """Until when the state shows the same, unless something happens to the number: monotonic seconds.

    `monotonic` itself where something moves by the second.
    """
    if state.queue is not NO_QUEUE or state.in_flight or state.starting or (state.holding and not state.held_by_row):
        return monotonic
    until = float("inf")
    if gateway is not None:
        if not gateway.untroubled:
            return monotonic
        until = gateway.pacer.steady_until(monotonic)
    if state.lately[1]:  # they go out of sight with their minute
        until = min(until, monotonic + 60.0 - now.timestamp() % 60.0)
    return until


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
