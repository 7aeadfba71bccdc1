"""One connection to a provider: its pace, its circuit, the calls under way through it, and who has its next permits.

The account of a number is a gateway of its own, and only the number's lane sends through it. Other gateways are shared
by many lanes, which borrow permits: a provider's trouble is found out once, and no lane sends at another's cost
(C16.3).
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from recado.actors.dispatch.call_room import CallRoom
from recado.channels.core.adapters import MessageSender
from recado.channels.core.provider import Accepted, Account, Down, Outcome, Refused, SlowDown, Unknown
from recado.channels.http.outbound_http import CONNECTIONS
from recado.domain.core.clock import Clock, TimerHandle
from recado.domain.core.fairness import SmoothRoundRobin
from recado.domain.dispatch.breaker import Breaker, BreakerState
from recado.domain.dispatch.gates import Hold
from recado.domain.dispatch.pacing import Pacer
from recado.domain.messages.message import WaitReason

WEIGHTS: Final = (16, 4, 1)
"""Of the classes (C14.5.1)."""
FAILURES_TO_FAIL_OVER: Final = 3
"""In a row: then the other gateway takes over (C16.3)."""
FAIL_OVER_FOR: Final = 300.0
"""Seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayPlan:
    """A gateway that the lanes of a channel share in an environment. `connections`: the calls that it bears at once."""

    channel: str
    env: str
    name: str
    per_second: float
    provider: MessageSender
    account: Account
    connections: int = CONNECTIONS


class Gateway:
    """A gateway that one lane has for itself. `provider` None: nobody sends for its channel here.

    All times are monotonic seconds.
    """

    __slots__ = ("_clock", "account", "breaker", "in_flight", "pacer", "provider", "room")

    shared = False

    def __init__(self, clock: Clock, room: CallRoom, *, per_second: float = 1.0) -> None:
        """`room`: the calls that its adapter bears at once."""
        self._clock = clock
        self.room = room
        self.pacer = Pacer(per_second)
        self.breaker = Breaker()
        self.in_flight = 0  # calls whose outcome is not committed yet
        self.provider: MessageSender | None = None
        self.account: Account | None = None

    def connect(self, provider: MessageSender | None, account: Account, per_second: float) -> None:
        """From now on calls go there, at this pace; those under way end as they began."""
        self.provider, self.account = provider, account
        self.pacer.set_rate(per_second)

    @property
    def per_second(self) -> float:
        return self.pacer.per_second

    @property
    def current(self) -> "Gateway":
        """The gateway to send through now."""
        return self

    @property
    def untroubled(self) -> bool:
        """No call is under way, and no trouble with the provider is remembered."""
        return not self.in_flight and self.breaker.untroubled

    def holding(self) -> Hold | None:
        """What holds everything here: the provider asked for a pause, or there is no connection."""
        now = self._clock.monotonic()
        wait = self.breaker.ready_at() - now
        if wait <= 0:
            return None
        paused = self.breaker.paused_until > now
        reason = WaitReason.NUMBER_PAUSED if paused else WaitReason.NO_CONNECTION
        return Hold(reason, self._clock.now() + timedelta(seconds=wait))

    def probing(self) -> Hold | None:
        """While the circuit's probe is under way everything else waits for its outcome."""
        return Hold(WaitReason.NO_CONNECTION) if self.breaker.state is BreakerState.HALF_OPEN else None

    def take(self, now: float, *, forced: bool) -> None:
        """A call begins: its token is taken, and in an open circuit it is the probe."""
        self.pacer.take(now, forced=forced)
        self.in_flight += 1
        self.breaker.began()

    def used(self) -> None:
        """A permit ended with the departure of its message. Here none are needed."""

    def hand_back(self, permits: int = 1) -> None:
        """So many permits were not used. Here none are needed."""

    def ended(self, outcome: Outcome | None, pauses: int) -> bool:
        """Learn from an outcome that is committed now; True when the circuit opens by it.

        None: it could not be recorded. `pauses`: how many the gateway had made when the call began.
        """
        now, breaker = self._clock.monotonic(), self.breaker
        self.in_flight -= 1
        before = breaker.state
        match outcome:
            case SlowDown():
                breaker.slow_down(now, outcome.after, pauses)
            case Down():
                breaker.down(now)
            case Unknown():
                breaker.unknown(now)
            case None:  # says nothing of the provider; but a probe has to end
                if before is BreakerState.HALF_OPEN:
                    breaker.unknown(now)
            case _:
                breaker.answered(pauses)
        return breaker.state is BreakerState.OPEN and before is not BreakerState.OPEN


class Borrower:
    """A lane at a shared gateway: what it has to send, and the permits that it has. `wake` has it look.

    A permit is for one message of a class: it ends when that message departs, or is handed back.
    """

    __slots__ = ("gateway", "organization_id", "permits", "wake", "wanted")

    def __init__(self, gateway: "SharedGateway", organization_id: str, wake: Callable[[], None]) -> None:
        self.gateway = gateway
        self.organization_id = organization_id
        self.wake = wake
        self.permits: deque[int] = deque()  # classes, in the order of their turns
        self.wanted: dict[int, int] = {}  # class → messages for which it has no permit yet


class SharedGateway(Gateway):
    """A gateway of many lanes: its permits go by class (16:4:1), in a class by organization, in that by lane.

    There are never more of them than it lets depart within the time that a claim is made ahead. `failures`: calls in a
    row that the provider did not take on their merits.
    """

    __slots__ = (
        "_ahead",
        "_alarm",
        "_alarm_at",
        "_borrowers",
        "_departing",
        "_opens_at",
        "_permits",
        "_queues",
        "_turns",
        "failures",
        "name",
    )

    shared = True

    def __init__(
        self, plan: GatewayPlan, clock: Clock, *, ahead: Callable[[], float], opens_at: Callable[[], float]
    ) -> None:
        """`ahead`: how many seconds before its departure a message is claimed. `opens_at`: nothing departs before."""
        super().__init__(clock, CallRoom(plan.connections), per_second=plan.per_second)
        self.name = plan.name
        self.provider, self.account = plan.provider, plan.account
        self.failures = 0
        self._ahead = ahead
        self._opens_at = opens_at
        self._turns = SmoothRoundRobin(WEIGHTS)
        # By class, the organizations in the order of their turns, and in each its lanes in that of theirs.
        self._queues: tuple[dict[str, dict[Borrower, None]], ...] = tuple({} for _ in WEIGHTS)
        self._borrowers: dict[Borrower, None] = {}
        self._permits = 0  # given, and neither used nor handed back
        self._departing: dict[Callable[[], None], None] = {}  # what is called when the next token is there
        self._alarm: TimerHandle | None = None
        self._alarm_at = 0.0

    # Permits ----------------------------------------------------------------------------------------------------------

    def want(self, borrower: Borrower, messages: Mapping[int, int]) -> None:
        """The lane has so many messages of each class for which it has no permit; gives what can be given now.

        It looks whether it was given one by itself: it is not woken.
        """
        for klass, queue in enumerate(self._queues):
            if messages.get(klass, 0) > 0:
                queue.setdefault(borrower.organization_id, {}).setdefault(borrower)
            elif borrower.wanted.get(klass):
                self._leave(borrower, klass)
        borrower.wanted = {klass: count for klass, count in messages.items() if count > 0}
        self._borrowers.setdefault(borrower)
        self._give(but=borrower)

    def hand_back(self, permits: int = 1) -> None:
        """So many permits were not used: others have them now."""
        self._permits -= permits
        self._give()

    def forget(self, borrower: Borrower) -> None:
        """The lane ends: nothing is given to it any more, and what it has not used goes to others."""
        for klass in list(borrower.wanted):
            self._leave(borrower, klass)
        borrower.wanted = {}
        self._borrowers.pop(borrower, None)
        unused = len(borrower.permits)
        borrower.permits.clear()
        self.hand_back(unused)

    def _leave(self, borrower: Borrower, klass: int) -> None:
        queue = self._queues[klass]
        lanes = queue.get(borrower.organization_id)
        if lanes is not None:
            lanes.pop(borrower, None)
            if not lanes:
                del queue[borrower.organization_id]

    def _give(self, but: Borrower | None = None) -> None:
        """Give permits while the pace, the circuit and the claims that are made ahead leave room for more.

        Whoever got some is woken, `but` one.
        """
        woken: dict[Borrower, None] = {}
        while waiting := [klass for klass, queue in enumerate(self._queues) if queue]:
            now = self._clock.monotonic()
            if self.breaker.calls_allowed(now, self.in_flight + self._permits) == 0:
                if (ready_at := self.breaker.ready_at()) > now:
                    self._wake_at(ready_at)
                break  # else the outcome of a call makes room, as that of the probe does
            ahead = self._ahead()
            if self._permits >= max(1, int(self.per_second * ahead)):
                break  # a departure makes room
            claims_at = max(self.pacer.ready_at(now), self._opens_at()) - ahead
            if claims_at > now:
                self._wake_at(claims_at)
                break
            klass = self._turns.pick(waiting)
            borrower = self._next(klass)
            borrower.permits.append(klass)
            self._permits += 1
            woken[borrower] = None
        for borrower in woken:
            if borrower is not but:
                borrower.wake()

    def _next(self, klass: int) -> Borrower:
        """The lane whose turn it is in the class; it and its organization go to the end of the line."""
        queue = self._queues[klass]
        organization_id = next(iter(queue))
        lanes = queue.pop(organization_id)
        borrower = next(iter(lanes))
        del lanes[borrower]
        borrower.wanted[klass] -= 1
        if borrower.wanted[klass]:
            lanes[borrower] = None
        else:
            del borrower.wanted[klass]
        if lanes:
            queue[organization_id] = lanes
        return borrower

    # Departures -------------------------------------------------------------------------------------------------------

    def lets_ahead(self, waiting: int) -> bool:
        """Whether a forced message, which needs no permit, may go: in an open circuit as its probe.

        `waiting`: what its lane has claimed, or is claiming.
        """
        return self.breaker.calls_allowed(self._clock.monotonic(), self.in_flight + self._permits + waiting) != 0

    def come_back(self, depart: Callable[[], None], at: float) -> None:
        """Have a lane's claimed messages depart when the next token is there."""
        self._departing.setdefault(depart)
        self._wake_at(at)

    def used(self) -> None:
        """A permit ended with the departure of its message."""
        self._permits -= 1
        self._give()

    def ended(self, outcome: Outcome | None, pauses: int) -> bool:
        if isinstance(outcome, Accepted | Refused):
            self.failures = 0
        elif outcome is not None:
            self.failures += 1
        probed = self.breaker.state is BreakerState.HALF_OPEN
        opened = super().ended(outcome, pauses)
        if opened or probed or isinstance(outcome, SlowDown):
            self.wake_all()  # what is claimed goes back, or waited for the probe
        self._give()
        return opened

    def wake_all(self) -> None:
        """All lanes look again: the gateway stopped, or another one takes over."""
        for borrower in list(self._borrowers):
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
        self._give()


class Failover:
    """Gateways of which one takes over from another (C16.3). With one alone it is that one, always."""

    def __init__(self, clock: Clock, gateways: tuple[SharedGateway, ...]) -> None:
        """In the order in which they are preferred."""
        self._clock = clock
        self.gateways = gateways
        self._failed_until: dict[str, float] = {}

    @property
    def current(self) -> SharedGateway:
        """The first that has not failed lately; when all before it have, the last."""
        now = self._clock.monotonic()
        for gateway in self.gateways[:-1]:
            failed_until = self._failed_until.get(gateway.name)
            if failed_until is not None:
                if now < failed_until:
                    continue
                del self._failed_until[gateway.name]
                gateway.failures = 0  # those of calls that were under way when it failed say nothing of it now
            if gateway.failures < FAILURES_TO_FAIL_OVER:
                return gateway
            self._failed_until[gateway.name] = now + FAIL_OVER_FOR
            gateway.wake_all()
        return self.gateways[-1]
