"""The live state of a number: what its actor holds in memory, and what is stored of one that has none (C34.2).

Nobody is asked: ten thousand mailboxes would answer one by one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from math import inf
from typing import Any, Final
from zoneinfo import ZoneInfo

from recado.actors.dispatch.gateway import Gateway
from recado.actors.dispatch.lane import Lane
from recado.actors.dispatch.lane_context import LaneContext
from recado.actors.ops.live_number import LiveNumber
from recado.domain.channels.policies import NUMBERS_CHANNEL, POLICIES
from recado.domain.dispatch.breaker import BreakerState
from recado.domain.dispatch.gates import FOREVER, Hold, SenderState
from recado.domain.dispatch.pacing import CATCH_UP
from recado.domain.messages.message import CLASSES, WaitReason
from recado.domain.ops.sender_activity import Lately, SenderHour, every_and_failed, joined_errors, joined_lately
from recado.domain.ops.trouble import Trouble, trouble_of
from recado.domain.senders.number import TIER_LIMITS, MessagingTier, NumberStatus, QualityRating, effective_per_second
from recado.domain.senders.sender import SenderKey
from recado.engine.actor_cell import ActorCell
from recado.engine.child import State
from recado.engine.failure import Failure
from recado.engine.supervisor import Supervisor
from recado.services.ops.activity import Activity, minute_of
from recado.storage.ops.ops import SenderId, SenderQueue

Counts = tuple[int, int, int]
"""Actors that came into memory, actors that did anything, and messages that failed."""
NO_QUEUE: Final = SenderQueue("", NUMBERS_CHANNEL)
_NO_ERRORS: Final[Mapping[str, int]] = {}
_NO_HOUR: Final = SenderHour()
_STATUSES: Final = {each.value: each for each in NumberStatus}
_QUALITIES: Final = {each.value: each for each in QualityRating}
_TIERS: Final = {each.value: each for each in MessagingTier}
_ANYWHERE: Final = ZoneInfo("UTC")


@dataclass(slots=True, eq=False)  # not frozen: thousands are made at once
class NumberState:
    """One number now. Rates in messages a second; `tier_used` None where the tier has no limit, so nobody counts.

    `held_by_row`: what holds it stands in its row, and ends with a change of that. `starting`: its actor has not read
    its sender yet.

    `shown`: what it is about and its JSON, once somebody has rendered it. `hour`: of one that is looked at by itself.
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
    lately: Lately
    errors: Mapping[str, int]
    breaker: BreakerState
    held_by_row: bool
    starting: bool
    shown: tuple[str, bytes] | None = None
    hour: SenderHour = _NO_HOUR

    @property
    def due(self) -> int:
        """Messages that are due and have not left."""
        return sum(self.queue.due)

    @property
    def error_rate(self) -> float:
        """The part of failures among what was sent or failed lately."""
        every, failed = every_and_failed(self.lately)
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
        self._gone: Mapping[SenderKey, LiveNumber] = {}  # what they had at the look before
        self.gateway = context.own_gateway
        self._away: Mapping[SenderKey, LiveNumber] = {}

    def take_away(self, away: Mapping[SenderKey, LiveNumber]) -> None:
        """What other processes have in memory now."""
        self._gone, self._away = self._away, away

    def cell(self, key: SenderKey) -> ActorCell | None:
        """The actor of a number, while it is in memory."""
        found = self._lanes.find(key)
        return found if isinstance(found, ActorCell) else None

    def note_from_now(self) -> Counts:
        """Note what actors do, for `touched`; answers how much has happened so far that no number tells by itself."""
        return self._lanes.admitted, self._lanes.notes().count, self._activity.fallen

    def touched(self, since: Counts) -> list[SenderId] | None:
        """Senders whose actor came into memory or did anything, or of which a message failed, since then; None: too
        many to tell.
        """
        admitted, stirred, fallen = since
        failed, keys = self._activity.fallen_since(fallen), self._lanes.notes().since(stirred)
        if failed is None or keys is None:
            return None
        keys += [child.key for child in self._lanes.admitted_since(admitted)]
        keys += [*self._away, *self._gone]
        return [*failed, *((key.organization_id, key.sender_id) for key in keys if isinstance(key, SenderKey))]

    def looks_no_more(self) -> None:
        """Nobody looks at many: what actors do is not noted for them."""
        self._lanes.notes_no_more()

    def rests(self, key: SenderKey) -> bool:
        """Whether nothing goes on in its actor, so that it does nothing unless it is woken."""
        if (cell := self._lanes.find(key)) is None:
            return key not in self._away
        if not isinstance(cell, ActorCell) or cell.actor is None:
            return False
        return cell.mailbox.resting and cell.actor.may_passivate()

    def knows_usage(self, key: SenderKey) -> bool:
        """Whether its day and its tier are in memory."""
        if (away := self._away.get(key)) is not None:
            return away.day_used is not None
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
        away: LiveNumber | None = None,
    ) -> NumberState:
        """The number as it is now. `usage`: messages and recipients of its day, as stored; `suspended`: its owner.

        `away`: what another process has of it; where it is not given, as that was known last.
        """
        number_id = row["id"]
        status, quality = _STATUSES[row["status"]], _QUALITIES[row["quality_rating"]]
        tier = _TIERS[row["messaging_tier"]]
        key = key_of(row)
        away = away or self._away.get(key)
        live = away or self.live(key, now, monotonic, waits=queue is not None)
        lately, errors = live.lately, live.errors or _NO_ERRORS
        if away is not None and (here := self._activity.sender(number_id)) is not None:  # reports tell of failures here
            minute = minute_of(now)
            lately = joined_lately(lately, here.lately(minute))
            errors = joined_errors(errors, here.errors(minute))
        sent, recipients = usage
        day_used = sent if live.day_used is None else live.day_used
        tier_used: int | None = None
        if TIER_LIMITS[tier] is not None:
            tier_used = recipients if live.tier_used is None else live.tier_used
        by_row = self._holding(row, status, quality, now, suspended=suspended)
        held = by_row or live.holding
        if held is None and day_used >= row["per_day"]:
            held = Hold(WaitReason.DAILY_LIMIT)
        if held is None and queue is not None:
            held = _head_hold(queue, live, now)
        per_second = effective_per_second(row["per_second"], quality)
        return NumberState(
            row["organization_id"],
            row["env"],
            number_id,
            row["display_phone"],
            status,
            quality,
            tier,
            live.actor,
            live.restarts,
            live.last_failure,
            per_second,
            _full(per_second) if live.tokens is None else live.tokens,
            live.sent_last_second,
            live.sent_last_minute,
            day_used,
            row["per_day"],
            tier_used,
            queue or NO_QUEUE,
            live.in_flight,
            held,
            lately,
            errors,
            live.breaker,
            by_row is not None and by_row.until == FOREVER,
            live.starting,
        )

    def live(self, key: SenderKey, now: datetime, monotonic: float, *, waits: bool = True) -> LiveNumber:
        """What this process has in memory of it. `waits`: also what holds each class."""
        cell, live = self.cell(key), LiveNumber()
        if cell is not None:
            live.actor, live.restarts, live.last_failure = cell.state, cell.restarts, cell.last_failure
            seen = cell.actor.seen() if isinstance(cell.actor, Lane) else None
            live.starting = seen is None
            if seen is not None:
                view, live.holding, live.ready_at = seen.view, seen.holding, seen.ready_at
                if view is not None:
                    live.tier_used = None if view.tier is None else view.tier.used(now)
                    if waits:
                        live.of_class = [
                            view.gates.class_hold(view.state, klass, now) for klass, _ in enumerate(CLASSES)
                        ]
        gateway, day = self.gateway(key.sender_id), self._context.day(key.sender_id)
        if gateway is not None:
            live.holding = live.holding or gateway.trouble()
            live.tokens, live.in_flight, live.breaker = (
                gateway.pacer.tokens(monotonic), gateway.in_flight, gateway.breaker.state,
            )  # fmt: skip
            live.sent_last_second = gateway.pacer.sent_within(monotonic, 1.0)
            live.sent_last_minute = gateway.pacer.sent_within(monotonic, 60.0)
        if day is not None:
            live.day_used = day.used(now)
        activity = self._activity.sender(key.sender_id)
        if activity is not None:
            minute = minute_of(now)
            live.lately, live.errors = activity.lately(minute), activity.errors(minute)
        return live

    def hour(self, number_id: str, away: LiveNumber | None = None) -> SenderHour:
        """What went through a number in its last hour; `away`: also through the process that has this of it."""
        here = self._activity.sender(number_id)
        hour = _NO_HOUR if here is None else here.hour
        return hour if away is None or away.hour is None else hour.joined(away.hour)

    def lives(self) -> list[SenderKey]:
        """Numbers of which this process has anything in memory that a look at all shows."""
        keys = (child.key for child in self._lanes.children())
        found = {key: None for key in keys if isinstance(key, SenderKey) and key.channel == NUMBERS_CHANNEL}
        for gateway in self._context.own_gateways():  # its trouble is remembered when the actor has left memory
            account = gateway.account
            if account is not None and gateway.channel == NUMBERS_CHANNEL:
                found[SenderKey(account.organization_id, account.env, NUMBERS_CHANNEL, account.sender_id)] = None
        found.update(dict.fromkeys(self._activity.fallen_lately()))
        return list(found)

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
    until = inf
    if gateway is not None:
        if not gateway.untroubled:
            return monotonic
        until = gateway.pacer.steady_until(monotonic)
    if state.lately[1]:  # they go out of sight with their minute
        until = min(until, monotonic + 60.0 - now.timestamp() % 60.0)
    return until


def _head_hold(queue: SenderQueue, live: LiveNumber, now: datetime) -> Hold | None:
    """What the first message waits for that nothing of the whole number holds."""
    waiting: Hold | None = None
    for klass, _ in enumerate(CLASSES):
        head = queue.first.get(klass)
        if head is None:
            continue
        _, reason, until = head
        if reason is not None:
            held = Hold(WaitReason(reason), FOREVER if until is None else until)
        elif live.of_class and (of_class := live.of_class[klass]) is not None:
            held = of_class
        else:
            return Hold(WaitReason.RATE, live.ready_at or now)
        waiting = waiting or held
    return waiting


def _full(per_second: float) -> float:
    """The tokens of a bucket that nobody has taken from."""
    return 1.0 + (CATCH_UP * per_second if per_second > 1.0 else 0.0)
