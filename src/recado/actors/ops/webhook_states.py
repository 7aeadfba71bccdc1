"""The live state of webhook subscriptions: what is under way of each, and what waits (C34.1)."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter

from recado.actors.ops.kept import MOST_SCOPES, Kept, KeptTogether
from recado.domain.core.clock import Clock
from recado.domain.dispatch.breaker import BreakerState
from recado.domain.ops.recent_calls import RecentCalls
from recado.domain.webhooks.webhook import SubscriptionKey, SubscriptionStatus
from recado.storage.core.connections.postgres import Database
from recado.storage.ops import ops
from recado.storage.ops.ops import SubscriptionBacklog
from recado.storage.ops.scope import Scope

_NO_CALLS = RecentCalls()


@dataclass(frozen=True, slots=True)
class WebhookState:
    """One subscription now. `circuit`: open while it fails, half open when a probe is due or under way (C23.2)."""

    stored: SubscriptionBacklog
    in_flight: int
    calls: RecentCalls
    circuit: BreakerState


class WebhookStates:
    """Looks at the subscriptions of a scope."""

    def __init__(
        self,
        db: Database,
        *,
        clock: Clock,
        in_flight: Callable[[SubscriptionKey], int],
        calls: Callable[[SubscriptionKey], RecentCalls | None],
    ) -> None:
        """`in_flight`: calls under way of a subscription; `calls`: its last ones."""
        self._clock = clock
        self._in_flight = in_flight
        self._calls = calls
        self._backlogs: Kept[Scope, list[SubscriptionBacklog]] = KeptTogether(
            lambda scopes: ops.subscriptions(db.searches, scopes),
            clock=clock,
            most=MOST_SCOPES,
            apart=attrgetter("whole"),
        )

    async def of(self, scope: Scope) -> list[WebhookState]:
        """All of the scope, those in trouble first, then by what waits."""
        now = self._clock.now()
        found = [self._state(each, now) for each in await self._backlogs.get(scope)]
        found.sort(key=lambda each: (each.circuit is BreakerState.CLOSED, -each.stored.backlog, each.stored.id))
        return found

    def _state(self, stored: SubscriptionBacklog, now: datetime) -> WebhookState:
        key = SubscriptionKey(stored.organization_id, stored.id)
        in_flight = self._in_flight(key)
        circuit = BreakerState.CLOSED
        if stored.status == SubscriptionStatus.FAILING:
            probes = in_flight or stored.probe_at is None or stored.probe_at <= now
            circuit = BreakerState.HALF_OPEN if probes else BreakerState.OPEN
        return WebhookState(stored, in_flight, self._calls(key) or _NO_CALLS, circuit)
