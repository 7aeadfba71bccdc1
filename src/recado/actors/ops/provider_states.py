"""The live state of connections to providers: accounts of senders, summed by channel, or a shared gateway (C34.1)."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Protocol

from recado.actors.dispatch.lane_context import LaneContext
from recado.actors.ops.kept import Kept
from recado.domain.channels.policies import NUMBERS_CHANNEL, POLICIES
from recado.domain.channels.policy import SenderKind
from recado.domain.dispatch.breaker import BreakerState
from recado.domain.ops.recent_calls import MOST_JOINED, RecentCalls
from recado.domain.senders.sender import SenderKey
from recado.engine.supervisor import Supervisor
from recado.engine.turns import turns
from recado.services.dispatch.records import Records
from recado.services.ops.activity import Activity
from recado.storage.access.organizations import ENVIRONMENTS
from recado.storage.ops.ops import SenderId, SenderQueue
from recado.storage.ops.scope import Scope

AT_ONCE: Final = 1_000  # lanes in a turn of the event loop
_WORSE: Final = {BreakerState.CLOSED: 0, BreakerState.HALF_OPEN: 1, BreakerState.OPEN: 2}


@dataclass(slots=True)
class ProviderState:
    """One connection, as far as the scope uses it. `gateway` None: each sender has an account of its own, and these are
    all of them; `circuit` is the worst then, `troubled` how many are not closed. `backlog`: messages that are due.
    """

    env: str
    channel: str
    provider: str
    gateway: str | None
    in_flight: int = 0
    backlog: int = 0
    oldest_at: datetime | None = None
    calls: RecentCalls = field(default_factory=RecentCalls)
    circuit: BreakerState = BreakerState.CLOSED
    troubled: int = 0

    def wait(self, queue: SenderQueue) -> None:
        """Count what waits of a sender."""
        self.backlog += sum(queue.due)
        if queue.oldest_due is not None and (self.oldest_at is None or queue.oldest_due < self.oldest_at):
            self.oldest_at = queue.oldest_due

    def add(self, other: "ProviderState") -> None:
        """Count what another process has of the same accounts."""
        self.in_flight += other.in_flight
        self.calls = RecentCalls.joined((self.calls, other.calls))
        self.circuit = max(self.circuit, other.circuit, key=_WORSE.__getitem__)
        self.troubled += other.troubled

    def breaks(self, circuit: BreakerState) -> None:
        """Count a circuit."""
        self.troubled += circuit is not BreakerState.CLOSED
        self.circuit = max(self.circuit, circuit, key=_WORSE.__getitem__)


class ProvidersAway(Protocol):
    """Other processes that send for senders with an account of their own."""

    async def accounts(self, scope: Scope, most: int) -> "Sequence[Sequence[ProviderState]]":
        """Of each process that answers in time, as `ProviderStates.accounts`. `most`: calls of all of them."""


class ProviderStates:
    """Looks at the connections of a scope."""

    def __init__(
        self,
        records: Records,
        *,
        context: LaneContext,
        lanes: Supervisor,
        activity: Activity,
        queues: Kept[Scope, dict[SenderId, SenderQueue]],
    ) -> None:
        self._records = records
        self._context = context
        self._lanes = lanes
        self._activity = activity
        self._queues = queues
        self._others: list[Callable[[Scope], Awaitable[list[ProviderState]]]] = []
        self._away: ProvidersAway | None = None

    def have_away(self, away: ProvidersAway) -> None:
        """Other processes send, too."""
        self._away = away

    def add(self, others: Callable[[Scope], Awaitable[list[ProviderState]]]) -> None:
        """Show these as well, of what leaves through no lane of a channel's; their last calls are added here."""
        self._others.append(others)

    async def of(self, scope: Scope) -> list[ProviderState]:
        """By environment and channel, shared gateways in the order in which they are preferred."""
        found: dict[tuple[str, str], list[ProviderState]] = {}
        for channel in POLICIES:
            for env in ENVIRONMENTS if scope.whole else (scope.env,):
                states = self._own(channel, env) if POLICIES[channel].sender is not SenderKind.ROUTE else []
                states = states or self._shared(scope, channel, env)
                if states:
                    found[env, channel] = states
        await self._look_at_accounts(scope, found)
        await self._count_queues(scope, found)
        every = [state for states in found.values() for state in states]
        for others in self._others:
            every += await others(scope)
        away = () if self._away is None else await self._away.accounts(scope, MOST_JOINED)
        most = MOST_JOINED // (1 + len(away))
        for state in every:
            state.calls = self._calls(scope, state, most)
        for elsewhere in (state for states in away for state in states):
            if mine := found.get((elsewhere.env, elsewhere.channel)):
                mine[0].add(elsewhere)
        return every

    async def accounts(self, scope: Scope, most: int) -> list[ProviderState]:
        """Of this process alone: numbers, which may be in several; without what waits. `most`: calls of all."""
        found = {
            (env, NUMBERS_CHANNEL): states
            for env in (ENVIRONMENTS if scope.whole else (scope.env,))
            if (states := self._own(NUMBERS_CHANNEL, env))
        }
        await self._look_at_accounts(scope, found)
        every = [state for states in found.values() for state in states]
        for state in every:
            state.calls = self._calls(scope, state, most // len(every))
        return every

    def _calls(self, scope: Scope, state: ProviderState, most: int) -> RecentCalls:
        connection = (state.env, state.channel, state.gateway)
        return RecentCalls.joined(
            (
                calls
                for key, calls in self._activity.connections.items()
                if scope.holds(key.organization_id, key.env) and (key.env, key.channel, key.gateway) == connection
            ),
            most,
        )

    def _own(self, channel: str, env: str) -> list[ProviderState]:
        provider = self._records.sender_for(channel, env)
        return [] if provider is None else [ProviderState(env, channel, provider.name, None)]

    def _shared(self, scope: Scope, channel: str, env: str) -> list[ProviderState]:
        failover = self._context.failovers.get((channel, env))
        states = []
        for gateway in () if failover is None else failover.gateways:
            used = gateway if scope.whole else gateway.share_of(scope.organization_id)
            provider = "" if gateway.provider is None else gateway.provider.name
            state = ProviderState(env, channel, provider, gateway.name, in_flight=used.in_flight)
            state.breaks(used.breaker.state)
            states.append(state)
        return states

    async def _look_at_accounts(self, scope: Scope, found: dict[tuple[str, str], list[ProviderState]]) -> None:
        for seen, child in enumerate(self._lanes.children()):
            if seen % AT_ONCE == 0:
                await turns.next()
            key = child.key
            if not isinstance(key, SenderKey) or not scope.holds(key.organization_id, key.env):
                continue
            gateway = self._context.own_gateway(key.sender_id)
            if gateway is not None and (states := found.get((key.env, key.channel))):
                states[0].in_flight += gateway.in_flight
                states[0].breaks(gateway.breaker.state)

    async def _count_queues(self, scope: Scope, found: dict[tuple[str, str], list[ProviderState]]) -> None:
        """What waits, with the gateway that is preferred: which one it leaves through is known when it does."""
        for state, queue in _of_states(found, await self._queues.get(scope)):
            state.wait(queue)


def _of_states(
    found: dict[tuple[str, str], list[ProviderState]], queues: dict[SenderId, SenderQueue]
) -> Iterable[tuple[ProviderState, SenderQueue]]:
    for queue in queues.values():
        states = found.get((queue.env, queue.channel))
        if states:
            yield states[0], queue


def said_of_accounts(state: ProviderState) -> list[Any]:
    """As another process hears it."""
    calls = state.calls.said
    return [state.env, state.channel, state.provider, state.in_flight, calls, state.circuit.value, state.troubled]


def accounts_of(said: list[Any]) -> ProviderState:
    """As another process said it."""
    env, channel, provider, in_flight, calls, circuit, troubled = said
    return ProviderState(
        env, channel, provider, None,
        in_flight=in_flight, calls=RecentCalls.said_by(calls), circuit=BreakerState(circuit), troubled=troubled,
    )  # fmt: skip
