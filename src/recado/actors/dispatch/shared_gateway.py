"""A gateway that many lanes share, and who has its next permits (C16.3).

Lanes borrow permits: a provider's trouble is found out once, and no lane sends at another's cost. Each organization has
its share of the gateway, which knows what is under way of it and what it alone fails.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final
from weakref import WeakValueDictionary

import structlog

from recado.actors.dispatch.call_room import CallRoom
from recado.actors.dispatch.gateway import Gateway
from recado.channels.core.adapters import MessageSender
from recado.channels.core.provider import Accepted, Account, Down, NoPlace, Outcome, Refused, SlowDown
from recado.channels.http.outbound_http import CONNECTIONS
from recado.domain.channels.source import Source
from recado.domain.core.clock import Clock, TimerHandle
from recado.domain.core.fairness import SmoothRoundRobin
from recado.domain.core.timestamps import format_timestamp
from recado.domain.dispatch.breaker import BreakerState
from recado.domain.dispatch.pacing import Pacer
from recado.domain.dispatch.shared_breaker import (
    FAIL_OVER_FOR,
    FAILURES_TO_FAIL_OVER,
    OF_ONE_TO_FAIL_OVER,
    FailuresInARow,
    OrganizationBreaker,
    SharedBreaker,
)
from recado.services.dispatch.row import WINDOW

log = structlog.get_logger()

WEIGHTS: Final = (16, 4, 1)
"""Of the classes (C14.5.1)."""
REMEMBERED: Final = 1_000
"""Organizations whose failures a gateway remembers while they have nothing under way; beyond, the oldest go."""
REACH_SECONDS: Final = 0.25
REACH_AT_MOST: Final = 1_280
"""Rows of a class that a lane holds at a fast gateway: many numbers' traffic goes through it (C14.5.2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayPlan:
    """A gateway that the lanes of a channel share in an environment. `connections`: the calls that it bears at once.

    `account`: the same for all organizations; by its owner the calls at once are shared out (`CallRoom`).
    """

    channel: str
    env: str
    name: str
    per_second: float
    provider: MessageSender
    account: Account
    connections: int = CONNECTIONS


def told_by(plans: Iterable[GatewayPlan]) -> dict[Source, list[str]]:
    """The gateways of which each adapter tells, by name."""
    found: dict[Source, list[str]] = {}
    for plan in plans:
        found.setdefault(Source(plan.channel, plan.provider.name, plan.env), []).append(plan.name)
    return found


class Borrower:
    """A lane at a shared gateway: what it has to send, and the permits that it has. `wake` has it look.

    A permit is for one message of a class: it ends when that message departs, or is handed back.
    """

    __slots__ = ("gateway", "permits", "wake", "wanted")

    def __init__(self, gateway: "GatewayShare", wake: Callable[[], None]) -> None:
        self.gateway = gateway
        self.wake = wake
        self.permits: deque[int] = deque()  # classes, in the order of their turns
        self.wanted: dict[int, int] = {}  # class → messages for which it has no permit yet


class SharedGateway:
    """A gateway of many lanes: its permits go by class (16:4:1), in a class by organization, in that by lane.

    There are never more of them than it lets depart within the time that a claim is made ahead. `failures`: calls in a
    row that the provider did not take on their merits.

    An organization is forgotten when it has nothing under way here, unless its last calls failed.
    """

    __slots__ = (
        "_ahead",
        "_alarm",
        "_alarm_at",
        "_borrowers",
        "_clock",
        "_departing",
        "_failed_until",
        "_failing",
        "_opens_at",
        "_queues",
        "_shares",
        "_turns",
        "account",
        "breaker",
        "channel",
        "env",
        "failures",
        "in_flight",
        "name",
        "pacer",
        "permits",
        "provider",
        "room",
    )

    def __init__(
        self, plan: GatewayPlan, clock: Clock, *, ahead: Callable[[], float], opens_at: Callable[[], float]
    ) -> None:
        """`ahead`: how many seconds before its departure a message is claimed. `opens_at`: nothing departs before."""
        self._clock = clock
        self.channel, self.env, self.name = plan.channel, plan.env, plan.name
        self.provider, self.account = plan.provider, plan.account
        self.room = CallRoom(plan.connections)
        self.pacer = Pacer(plan.per_second)
        self.breaker = SharedBreaker()
        self.in_flight = 0  # calls whose outcome is not committed yet
        self.permits = 0  # given, and neither used nor handed back
        self.failures = FailuresInARow(OF_ONE_TO_FAIL_OVER)
        self._failed_until: float | None = None
        self._shares: WeakValueDictionary[str, GatewayShare] = WeakValueDictionary()
        self._failing: dict[str, GatewayShare] = {}  # those whose last calls failed, in the order of that
        self._ahead = ahead
        self._opens_at = opens_at
        self._turns = SmoothRoundRobin(WEIGHTS)
        # By class, the organizations in the order of their turns, and in each its lanes in that of theirs.
        self._queues: tuple[dict[GatewayShare, dict[Borrower, None]], ...] = tuple({} for _ in WEIGHTS)
        self._borrowers: dict[Borrower, None] = {}
        self._departing: dict[Callable[[], None], None] = {}  # what is called when the next token is there
        self._alarm: TimerHandle | None = None
        self._alarm_at = 0.0

    @property
    def borrowers(self) -> int:
        """How many lanes have asked for permits, and not ended."""
        return len(self._borrowers)

    # Organizations ----------------------------------------------------------------------------------------------------

    def share_of(self, organization_id: str) -> "GatewayShare":
        """What the organization has of the gateway: one and the same while anybody holds it, or its calls fail."""
        share = self._shares.get(organization_id)
        if share is None:
            share = self._shares[organization_id] = GatewayShare(self, organization_id, self._clock)
        return share

    def learned(self, share: "GatewayShare", *, failed: bool) -> None:
        """A call of the organization failed, or was answered."""
        if failed:
            self._failing.pop(share.organization_id, None)
            self._failing[share.organization_id] = share
            if len(self._failing) > REMEMBERED:
                del self._failing[next(iter(self._failing))]
        elif self._failing and not share.troubled:
            self._failing.pop(share.organization_id, None)

    def has_failed(self, now: float) -> bool:
        """Whether another gateway goes in its place, for all.

        Who asks first after the third failure begins the five minutes, and all lanes are woken.
        """
        if self._failed_until is not None:
            if now < self._failed_until:
                return True
            self._failed_until = None
            self.failures.reset()  # those of calls that were under way when it failed say nothing of it now
        if self.failures.total < FAILURES_TO_FAIL_OVER:
            return False
        self._failed_until = now + FAIL_OVER_FOR
        self.tell_failed()
        self.wake_all()
        return True

    def tell_failed(self, **whose: str) -> None:
        """One line of the log: for how long another gateway goes in its place, and of whom that is so."""
        until = format_timestamp(self._clock.now() + timedelta(seconds=FAIL_OVER_FOR))
        log.warning("gateway_failed", channel=self.channel, env=self.env, gateway=self.name, **whose, until=until)

    # Permits ----------------------------------------------------------------------------------------------------------

    def want(self, borrower: Borrower, messages: Mapping[int, int]) -> None:
        """The lane has so many messages of each class for which it has no permit; gives what can be given now.

        It looks whether it was given one by itself: it is not woken.
        """
        for klass, queue in enumerate(self._queues):
            if messages.get(klass, 0) > 0:
                queue.setdefault(borrower.gateway, {}).setdefault(borrower)
            elif borrower.wanted.get(klass):
                self._leave(borrower, klass)
        borrower.wanted = {klass: count for klass, count in messages.items() if count > 0}
        self._borrowers.setdefault(borrower)
        self.give(but=borrower)

    def forget(self, borrower: Borrower) -> None:
        """The lane ends: nothing is given to it any more, and what it has not used goes to others."""
        for klass in list(borrower.wanted):
            self._leave(borrower, klass)
        borrower.wanted = {}
        self._borrowers.pop(borrower, None)
        unused = len(borrower.permits)
        borrower.permits.clear()
        borrower.gateway.hand_back(unused)

    def _leave(self, borrower: Borrower, klass: int) -> None:
        queue = self._queues[klass]
        lanes = queue.get(borrower.gateway)
        if lanes is not None:
            lanes.pop(borrower, None)
            if not lanes:
                del queue[borrower.gateway]

    def give(self, but: Borrower | None = None) -> None:
        """Give permits while the pace, the circuit and the claims that are made ahead leave room for more.

        Whoever got some is woken, `but` one.
        """
        woken: dict[Borrower, None] = {}
        while any(self._queues):
            now = self._clock.monotonic()
            if not self.may_call(now, self.permits):
                if (ready_at := self.breaker.ready_at()) > now:
                    self._wake_at(ready_at)
                break  # else the outcome of a call makes room, as that of the probe does
            ahead = self._ahead()
            if self.permits >= max(1, int(self.pacer.per_second * ahead)):
                break  # a departure makes room
            claims_at = max(self.pacer.ready_at(now), self._opens_at()) - ahead
            if claims_at > now:
                self._wake_at(claims_at)
                break
            waiting = [klass for klass, queue in enumerate(self._queues) if queue and self._first(queue, now)]
            if not waiting:
                break  # each of them waits for its own probe, or for the moment of that
            klass = self._turns.pick(waiting)
            borrower = self._next(klass, now)
            borrower.permits.append(klass)
            self.permits += 1
            borrower.gateway.permits += 1
            woken[borrower] = None
        for borrower in woken:
            if borrower is not but:
                borrower.wake()

    def _first(self, queue: "Iterable[GatewayShare]", now: float) -> "GatewayShare | None":
        """The first organization in the line that its own circuit does not hold."""
        for share in queue:
            if share.breaker.own.state is BreakerState.CLOSED or share.may_probe(now):
                return share
            if (ready_at := share.breaker.own.ready_at()) > now:
                self._wake_at(ready_at)
        return None

    def _next(self, klass: int, now: float) -> Borrower:
        """The lane whose turn it is in the class; it and its organization go to the end of the line."""
        queue = self._queues[klass]
        share = self._first(queue, now)
        assert share is not None  # noqa: S101 - the class was asked
        lanes = queue.pop(share)
        borrower = next(iter(lanes))
        del lanes[borrower]
        borrower.wanted[klass] -= 1
        if borrower.wanted[klass]:
            lanes[borrower] = None
        else:
            del borrower.wanted[klass]
        if lanes:
            queue[share] = lanes
        return borrower

    # Departures -------------------------------------------------------------------------------------------------------

    def may_call(self, now: float, waiting: int = 0) -> bool:
        """Whether a call may begin now, beside those under way and so many that are claimed, or have a permit."""
        return self.breaker.calls_allowed(now, self.in_flight + waiting) != 0

    def come_back(self, depart: Callable[[], None], at: float) -> None:
        """Have a lane's claimed messages depart when the next token is there."""
        self._departing.setdefault(depart)
        self._wake_at(at)

    def wake_all(self, of: "GatewayShare | None" = None) -> None:
        """All lanes look again, or those of an organization: the gateway stopped, or another one takes over."""
        for borrower in list(self._borrowers):
            if of is None or borrower.gateway is of:
                borrower.wake()

    def _wake_at(self, at: float) -> None:
        if self._alarm is not None:
            if self._alarm_at <= at:
                return
            self._alarm.cancel()
        self._alarm, self._alarm_at = self._clock.call_at(at, self._ring), at

    def _ring(self) -> None:
        self._alarm = None
        departing, self._departing = self._departing, {}
        for depart in departing:
            depart()  # comes back when its token is not there yet
        self.give()


class GatewayShare(Gateway):
    """A shared gateway as one organization has it: what it alone fails to send holds only its own messages.

    `failures`: its calls in a row that the provider did not take on their merits.
    """

    __slots__ = ("__weakref__", "_failed_until", "failures", "gateway", "organization_id", "permits")

    shared = True
    breaker: OrganizationBreaker

    def __init__(self, gateway: SharedGateway, organization_id: str, clock: Clock) -> None:
        self._clock = clock
        self.channel = gateway.channel
        self.gateway = gateway
        self.organization_id = organization_id
        self.name = gateway.name
        self.provider = gateway.provider
        # Of the calls that the gateway bears, an organization has a share as an account has of its adapter's (C31).
        self.account = None if gateway.account is None else replace(gateway.account, owner=organization_id)
        self.room, self.pacer = gateway.room, gateway.pacer
        self.breaker = OrganizationBreaker(gateway.breaker, organization_id)
        self.in_flight = 0  # its calls whose outcome is not committed yet
        self.permits = 0  # of those that the gateway gave
        self.failures = 0
        self._failed_until: float | None = None

    @property
    def troubled(self) -> bool:
        """Its calls failed lately: that is remembered when nothing is under way."""
        return bool(self.failures) or self._failed_until is not None or not self.breaker.own.clean

    def has_failed(self, now: float) -> bool:
        """As of the gateway, for this organization, whose lanes are woken."""
        if self._failed_until is not None:
            if now < self._failed_until:
                return True
            self._failed_until, self.failures = None, 0
        if self.failures < FAILURES_TO_FAIL_OVER:
            return False
        self._failed_until = now + FAIL_OVER_FOR
        self.gateway.tell_failed(organization_id=self.organization_id)
        self.gateway.wake_all(self)
        return True

    def may_call(self, now: float, waiting: int = 0) -> bool:
        own = self.breaker.own.calls_allowed(now, self.in_flight + waiting)
        return own != 0 and self.gateway.may_call(now, waiting)

    def want(self, borrower: Borrower, messages: Mapping[int, int]) -> None:
        """See the gateway."""
        self.gateway.want(borrower, messages)

    def forget(self, borrower: Borrower) -> None:
        """See the gateway."""
        self.gateway.forget(borrower)

    @property
    def reach(self) -> int:
        """How many rows of a class a lane holds: its part of what the gateway lets depart in a moment (C14.5.2)."""
        part = int(self.pacer.per_second * REACH_SECONDS) // max(1, self.gateway.borrowers)
        return max(WINDOW, min(part, REACH_AT_MOST))

    def may_probe(self, now: float) -> bool:
        """Whether its own circuit, which is open, leaves room for one more permit."""
        return self.breaker.own.calls_allowed(now, self.in_flight + self.permits) != 0

    def lets_ahead(self, waiting: int) -> bool:
        """Whether a forced message, which needs no permit, may go: in an open circuit as its probe.

        `waiting`: what its lane has claimed, or is claiming.
        """
        now = self._clock.monotonic()
        own = self.breaker.own.calls_allowed(now, self.in_flight + self.permits + waiting)
        return own != 0 and self.gateway.may_call(now, self.gateway.permits + waiting)

    def come_back(self, depart: Callable[[], None], at: float) -> None:
        """Have a lane's claimed messages depart when the next token is there."""
        self.gateway.come_back(depart, at)

    def take(self, now: float, *, forced: bool) -> None:
        self.gateway.in_flight += 1
        super().take(now, forced=forced)

    def used(self) -> None:
        """A permit ended with the departure of its message."""
        self.hand_back()

    def hand_back(self, permits: int = 1) -> None:
        """So many permits were not used: others have them now."""
        self.permits -= permits
        self.gateway.permits -= permits
        self.gateway.give()

    def ended(self, outcome: Outcome | None, pauses: int) -> bool:
        gateway, breaker = self.gateway, self.breaker
        gateway.in_flight -= 1
        before, shared, own = breaker.state, breaker.shared.state, breaker.own.state
        self._learn(outcome, pauses)
        self._count(outcome)
        if breaker.shared.state is not shared or breaker.own.state is not own:
            at = {"env": gateway.env, "gateway": gateway.name}
            self._tell(shared, breaker.shared, outcome, at)
            self._tell(own, breaker.own, outcome, {**at, "organization_id": self.organization_id})
        stops = breaker.shared.state is BreakerState.OPEN and shared is not BreakerState.OPEN
        if stops or shared is BreakerState.HALF_OPEN or isinstance(outcome, SlowDown):
            gateway.wake_all()  # what is claimed goes back, or waited for the probe
        elif breaker.own.state is not own:
            gateway.wake_all(self)
        gateway.give()
        return breaker.state is BreakerState.OPEN and before is not BreakerState.OPEN

    def _count(self, outcome: Outcome | None) -> None:
        """What it says of who goes in the gateway's place, and whether the organization is to be remembered."""
        if isinstance(outcome, Accepted | Refused):
            if outcome.simulated:
                return
            self.failures = 0
            self.gateway.failures.reset()
        elif outcome is not None and not isinstance(outcome, NoPlace):
            self.failures += 1
            nobodys = isinstance(outcome, Down | SlowDown)
            self.gateway.failures.add(None if nobodys else self.organization_id)
        self.gateway.learned(self, failed=self.failures > 0)
