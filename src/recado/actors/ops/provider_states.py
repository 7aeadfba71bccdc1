"""The live state of connections to providers: accounts of senders, summed by channel, or a shared gateway (C34.1)."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from recado.actors.dispatch.lane_context import LaneContext
from recado.actors.ops.kept import Kept
from recado.domain.channels.policies import POLICIES
from recado.domain.channels.policy import SenderKind
from recado.domain.dispatch.breaker import BreakerState
from recado.domain.ops.recent_calls import RecentCalls
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

    def breaks(self, circuit: BreakerState) -> None:
        """Count a circuit."""
        self.troubled += circuit is not BreakerState.CLOSED
        self.circuit = max(self.circuit, circuit, key=_WORSE.__getitem__)


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
        for state in every:
            state.calls = RecentCalls.joined(
                calls
                for key, calls in self._activity.connections.items()
                if scope.holds(key.organization_id, key.env)
                and (key.env, key.channel, key.gateway) == (state.env, state.channel, state.gateway)
            )
        return every

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
