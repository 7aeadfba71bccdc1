"""What a process has in memory of a number: its actor, its pace and what holds it; said over a link, too (C34.2)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from recado.actors.dispatch.lane_messages import LaneSituation
from recado.actors.ops.live_actor import failure_of, said_of_failure
from recado.domain.dispatch.breaker import BreakerState
from recado.domain.dispatch.gates import Hold
from recado.domain.messages.message import WaitReason
from recado.domain.ops.sender_activity import NOTHING_LATELY, Lately, MinuteFigures, SenderFailure, SenderHour
from recado.engine.child import State
from recado.engine.failure import Failure


@dataclass(slots=True, eq=False)  # not frozen: thousands are made at once
class LiveNumber:
    """None: not known, as it is not in memory. `starting`: its actor has not read its sender yet.

    `holding`: what holds everything of it, but for its row and its day. `of_class`: what holds one class besides, in
    their order; left out where nothing waits. `ready_at`: the next token. `hour`: of one that is looked at by itself.
    """

    actor: State = State.STOPPED
    restarts: int = 0
    last_failure: Failure | None = None
    starting: bool = False
    tokens: float | None = None
    sent_last_second: int = 0
    sent_last_minute: int = 0
    in_flight: int = 0
    breaker: BreakerState = BreakerState.CLOSED
    holding: Hold | None = None
    of_class: Sequence[Hold | None] = ()
    ready_at: datetime | None = None
    day_used: int | None = None
    tier_used: int | None = None
    lately: Lately = NOTHING_LATELY
    errors: Mapping[str, int] | None = None
    hour: SenderHour | None = None


def said_of(live: LiveNumber) -> list[Any]:
    """In the order of its fields."""
    return [
        live.actor.value,
        live.restarts,
        said_of_failure(live.last_failure),
        live.starting,
        live.tokens,
        live.sent_last_second,
        live.sent_last_minute,
        live.in_flight,
        live.breaker.value,
        said_of_hold(live.holding),
        [said_of_hold(each) for each in live.of_class],
        None if live.ready_at is None else live.ready_at.isoformat(),
        live.day_used,
        live.tier_used,
        list(live.lately),
        live.errors,
        _said_of_hour(live.hour),
    ]


def live_of(said: list[Any]) -> LiveNumber:
    """As another process sees it."""
    (
        actor,
        restarts,
        failure,
        starting,
        tokens,
        second,
        minute,
        in_flight,
        breaker,
        holding,
        of_class,
        ready_at,
        *rest,
    ) = said
    day_used, tier_used, (sent, failed, late), errors, hour = rest
    return LiveNumber(
        State(actor),
        restarts,
        failure_of(failure),
        starting,
        tokens,
        second,
        minute,
        in_flight,
        BreakerState(breaker),
        hold_of(holding),
        [hold_of(each) for each in of_class],
        None if ready_at is None else datetime.fromisoformat(ready_at),
        day_used,
        tier_used,
        (sent, failed, late),
        errors,
        _hour_of(hour),
    )


def _said_of_hour(hour: SenderHour | None) -> list[Any] | None:
    if hour is None:
        return None
    minutes = [[each.minute, each.sent, each.failed, each.queued, each.p95_ms] for each in hour.minutes]
    return [minutes, [[each.at.isoformat(), each.message_id, each.code] for each in hour.failures]]


def _hour_of(said: list[Any] | None) -> SenderHour | None:
    if said is None:
        return None
    minutes, failures = said
    return SenderHour(
        tuple(MinuteFigures(*each) for each in minutes),
        tuple(SenderFailure(datetime.fromisoformat(at), message_id, code) for at, message_id, code in failures),
    )


def said_of_hold(hold: Hold | None) -> list[str] | None:
    return None if hold is None else [hold.reason.value, hold.until.isoformat()]


def hold_of(said: list[str] | None) -> Hold | None:
    return None if said is None else Hold(WaitReason(said[0]), datetime.fromisoformat(said[1]))


def said_of_situation(situation: LaneSituation | None) -> list[Any] | None:
    """Without what is stored of the sender: whoever asks can read that."""
    if situation is None:
        return None
    hold, ready_at = said_of_hold(situation.holding), situation.ready_at.isoformat()
    return [hold, ready_at, situation.per_second, situation.in_flight]


def situation_of(said: list[Any] | None) -> LaneSituation | None:
    if said is None:
        return None
    hold, ready_at, per_second, in_flight = said
    return LaneSituation(None, hold_of(hold), datetime.fromisoformat(ready_at), per_second, in_flight)
