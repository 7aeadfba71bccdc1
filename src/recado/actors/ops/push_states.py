"""The live state of push services: what the lanes of push do with each, as connections to providers (C34.1)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from recado.actors.ops.kept import Kept
from recado.actors.ops.provider_states import ProviderState
from recado.domain.core.clock import Clock
from recado.domain.dispatch.breaker import BreakerState
from recado.domain.push.message import PUSH
from recado.storage.access.organizations import ENVIRONMENTS
from recado.storage.core.connections.postgres import Database
from recado.storage.ops.scope import INSTALLATION, Scope
from recado.storage.push import departures
from recado.storage.push.departures import PushLaneKey, WaitingDevices


class RunningLane(Protocol):
    """A lane, as it is now (`push_lane.py`)."""

    key: PushLaneKey

    @property
    def provider(self) -> str: ...

    @property
    def calls(self) -> int: ...

    @property
    def circuits(self) -> Sequence[BreakerState]: ...


class PushStates:
    """Looks at the lanes that run. `services`: whom notifications of an environment go to, by platform."""

    def __init__(
        self,
        db: Database,
        *,
        clock: Clock,
        lanes: Callable[[], Iterable[RunningLane]],
        services: Callable[[str], Mapping[str, str]],
    ) -> None:
        self._lanes = lanes
        self._services = services
        self._waiting: Kept[Scope, dict[tuple[str, str], WaitingDevices]] = Kept(
            lambda scope: departures.waiting(db.bulk, scope.organization_id, scope.env), clock=clock
        )

    def now(self, scope: Scope = INSTALLATION) -> list[ProviderState]:
        """Each service as a gateway: calls under way, and the circuits of the hosts and accounts that it stands for."""
        found = {
            (env, name): ProviderState(env, PUSH, name, name)
            for env in (ENVIRONMENTS if scope.whole else (scope.env,))
            for name in self._services(env).values()
        }
        for lane in self._lanes():
            state = found.get((lane.key.env, lane.provider))
            if state is None or not scope.holds(lane.key.organization_id, lane.key.env):
                continue
            state.in_flight += lane.calls
            for circuit in lane.circuits:
                state.breaks(circuit)
        return [*found.values()]

    async def of(self, scope: Scope) -> list[ProviderState]:
        """The same, with what waits: with the service that is usual for its platform."""
        states = {(state.env, state.gateway): state for state in self.now(scope)}
        for (env, platform), waiting in (await self._waiting.get(scope)).items():
            state = states.get((env, self._services(env).get(platform)))
            if state is not None:
                state.backlog += waiting.devices
                state.oldest_at = min(filter(None, (state.oldest_at, waiting.oldest_due)))
        return [*states.values()]
