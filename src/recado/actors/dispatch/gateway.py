"""One connection to a provider: its pace, its circuit, and the calls under way through it.

The account of a number is a gateway of its own, and only the number's lane sends through it. Those that many lanes
share are in `shared_gateway.py`.
"""

from collections.abc import Mapping
from datetime import timedelta

import structlog

from recado.actors.dispatch.call_room import CallRoom
from recado.channels.core.adapters import MessageSender
from recado.channels.core.provider import Accepted, Account, Down, NoPlace, Outcome, Refused, SlowDown, Unknown
from recado.domain.core.clock import Clock
from recado.domain.core.timestamps import format_timestamp
from recado.domain.dispatch.breaker import Breaker, BreakerState
from recado.domain.dispatch.gates import Hold
from recado.domain.dispatch.pacing import Pacer
from recado.domain.dispatch.shared_breaker import (
    OrganizationBreaker,
)
from recado.domain.messages.message import WaitReason

log = structlog.get_logger()


class Gateway:
    """A gateway that one lane has for itself. `provider` None: nobody sends for its channel here.

    All times are monotonic seconds.
    """

    __slots__ = ("_clock", "account", "breaker", "channel", "in_flight", "name", "pacer", "provider", "room")

    shared = False
    breaker: Breaker | OrganizationBreaker

    def __init__(self, clock: Clock, room: CallRoom, *, channel: str, per_second: float = 1.0) -> None:
        """`room`: the calls that its adapter bears at once."""
        self._clock = clock
        self.name: str | None = None  # of one that lanes share
        self.channel = channel
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

    def may_call(self, now: float, waiting: int = 0) -> bool:
        """Whether a call may begin now, beside those under way and so many that are claimed."""
        assert isinstance(self.breaker, Breaker)  # noqa: S101 - of a share it is another one
        return self.breaker.calls_allowed(now, self.in_flight + waiting) != 0

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

    def trouble(self) -> Hold | None:
        """What holds everything here, or lets only a probe pass: when its moment has come, the next message is it."""
        if (holding := self.holding() or self.probing()) is not None:
            return holding
        if self.breaker.state is BreakerState.CLOSED:
            return None
        return Hold(WaitReason.NO_CONNECTION, self._clock.now())

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
        before = self.breaker.state
        self._learn(outcome, pauses)
        if self.account is not None and self.breaker.state is not before:
            sender = {"env": self.account.env, "sender_id": self.account.sender_id}
            self._tell(before, self.breaker, outcome, sender)
        return self.breaker.state is BreakerState.OPEN and before is not BreakerState.OPEN

    def _learn(self, outcome: Outcome | None, pauses: int) -> None:
        now, breaker = self._clock.monotonic(), self.breaker
        self.in_flight -= 1
        match outcome:
            case Accepted(simulated=True) | Refused(simulated=True):
                breaker.passed_by()
            case Accepted():  # the usual one
                breaker.answered(pauses)
            case SlowDown():
                breaker.slow_down(now, outcome.after, pauses)
            case Down():
                breaker.down(now)
            case Unknown():
                breaker.unknown(now)
            case None | NoPlace():
                breaker.unrecorded(now)
            case _:
                breaker.answered(pauses)

    def _tell(
        self,
        before: BreakerState,
        circuit: Breaker | OrganizationBreaker,
        outcome: Outcome | None,
        whose: Mapping[str, str],
    ) -> None:
        """One line of the log when the circuit opened, and one when it closed; none for a probe that fails."""
        if circuit.state is before:
            return
        if before is BreakerState.CLOSED:
            wait = timedelta(seconds=circuit.ready_at() - self._clock.monotonic())
            reason = outcome.code if isinstance(outcome, Down) else "unknown_outcome"
            probe_at = format_timestamp(self._clock.now() + wait)
            log.warning("circuit_opened", channel=self.channel, **whose, reason=reason, next_probe=probe_at)
        elif circuit.state is BreakerState.CLOSED:
            log.info("circuit_closed", channel=self.channel, **whose)
