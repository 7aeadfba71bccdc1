"""Writes what happened to messages into the outbox, in the commit of the change (C23.3), and hints after it.

Where no subscription of the environment takes an event, it costs one look into a cache.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from recado.domain.ids import IdSource
from recado.storage.events import Emission, emission, emit_batch
from recado.storage.rows import Executor
from recado.storage.webhooks import SubscriptionDirectory, SubscriptionKey, Takers

SENT, DELIVERED, READ = "message.sent", "message.delivered", "message.read"
FAILED, RECEIVED = "message.failed", "message.received"


@dataclass(frozen=True, slots=True)
class Happened:
    """One event of one message."""

    organization_id: str
    env: str
    channel: str
    message_id: str
    type: str


class Outbox:
    """`queued` is told, after the commit, whose deliveries were written."""

    def __init__(
        self,
        subscriptions: SubscriptionDirectory,
        *,
        ids: IdSource,
        queued: Callable[[Iterable[SubscriptionKey]], None],
    ) -> None:
        self._subscriptions = subscriptions
        self._ids = ids
        self._queued = queued

    async def takes(self, environments: Collection[tuple[str, str]], event: str) -> bool:
        """Whether anybody in these (organization, environment) takes the event."""
        for environment in environments:
            if event in (await self._takers(environment)).by_event:
                return True
        return False

    async def write(self, connection: Executor, happened: Iterable[Happened]) -> set[SubscriptionKey]:
        """Write the events that somebody takes; answers whom to hint after the commit."""
        emissions: list[Emission] = []
        for each in happened:
            found = emission(
                await self._takers((each.organization_id, each.env)),
                self._ids,
                organization_id=each.organization_id,
                env=each.env,
                type=each.type,
                channel=each.channel,
                message_id=each.message_id,
            )
            if found is not None:
                emissions.append(found)
        return await emit_batch(connection, emissions)

    def hint(self, keys: Collection[SubscriptionKey]) -> None:
        """The commit is done."""
        if keys:
            self._queued(keys)

    async def _takers(self, environment: tuple[str, str]) -> Takers:
        return self._subscriptions.peek(environment) or await self._read(environment)

    async def _read(self, environment: tuple[str, str]) -> Takers:
        return await self._subscriptions.get(environment) or Takers({})
