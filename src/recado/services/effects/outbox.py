"""Writes what happened to messages into the outbox, in the commit of the change (C23.3), and hints after it.

Where no subscription of the environment takes an event, it costs one look into a cache.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from recado.domain.channels.policies import POLICIES, told_of
from recado.domain.core.ids import IdSource
from recado.domain.messages.message import MessageStatus
from recado.domain.webhooks.webhook import SubscriptionKey
from recado.storage.core.statements.moves import AfterCommit, Moved
from recado.storage.core.statements.rows import Executor
from recado.storage.dispatch.settlements import Departed
from recado.storage.webhooks.events import Emission, deliveries_of, emission, emit_batch
from recado.storage.webhooks.webhooks import SubscriptionDirectory, Takers


def event_of(moved: Moved) -> str | None:
    """The event of a move (C15.4); None when it has none."""
    if moved.quiet:
        return None
    policy = POLICIES[moved.channel]
    if moved.from_status is None:
        return policy.received if moved.to_status == MessageStatus.DELIVERED else None
    return policy.events.get(MessageStatus(moved.to_status))


class Happened(NamedTuple):
    """What happened to a message that did not move. `data`: what the event says besides, as JSON text."""

    organization_id: str
    env: str
    channel: str
    id: str
    event: str
    data: str


class Outbox:
    """`queued` is told, after the commit, whose deliveries were written, and which."""

    def __init__(
        self,
        subscriptions: SubscriptionDirectory,
        *,
        ids: IdSource,
        queued: Callable[[Mapping[SubscriptionKey, Sequence[str]]], None],
    ) -> None:
        self._subscriptions = subscriptions
        self._ids = ids
        self._queued = queued

    async def wanted(self, environments: Collection[tuple[str, str]], to_status: str) -> bool:
        """Whether anybody there takes the event."""
        events = told_of(to_status)
        if not events:
            return False
        for environment in environments:
            if not events.isdisjoint((await self._takers(environment)).by_event):
                return True
        return False

    async def write(self, connection: Executor, moved: Sequence[Moved]) -> AfterCommit | None:
        """Write the events that somebody takes; after the commit their deliveries are hinted at."""
        emissions: list[Emission] = []
        for each in moved:
            event = event_of(each)
            if event is None:
                continue
            found = await self._emission(each, event, each.told)
            if found is not None:
                emissions.append(found)
        return await self._emitted(connection, emissions)

    async def takes(self, environment: tuple[str, str], event: str) -> bool:
        """Whether a subscription there takes it."""
        return event in (await self._takers(environment)).by_event

    async def tell(self, connection: Executor, happened: Sequence[Happened]) -> AfterCommit | None:
        """As `write`, of what moved nothing."""
        found = [await self._emission(each, each.event, each.data) for each in happened]
        return await self._emitted(connection, [each for each in found if each is not None])

    async def _emitted(self, connection: Executor, emissions: Sequence[Emission]) -> AfterCommit | None:
        told = await emit_batch(connection, emissions)
        return (lambda: self._queued(told)) if told else None

    async def departures(self, rows: Sequence[Departed]) -> list[Emission]:
        """What to write of messages that may have been sent, where somebody takes it."""
        found: list[Emission] = []
        for row in rows:
            event = POLICIES[row.channel].events.get(MessageStatus.SENT)
            told = None if event is None else await self._emission(row, event)
            if told is not None:
                found.append(told)
        return found

    def emitted(self, emissions: Sequence[Emission]) -> None:
        """They are committed."""
        if emissions:
            self._queued(deliveries_of(emissions))

    async def _emission(
        self, message: Moved | Departed | Happened, event: str, told: str | None = None
    ) -> Emission | None:
        return emission(
            await self._takers((message.organization_id, message.env)),
            self._ids,
            organization_id=message.organization_id,
            env=message.env,
            type=event,
            channel=message.channel,
            message_id=message.id,
            data=told,
        )

    async def _takers(self, environment: tuple[str, str]) -> Takers:
        return self._subscriptions.peek(environment) or await self._read(environment)

    async def _read(self, environment: tuple[str, str]) -> Takers:
        return await self._subscriptions.get(environment) or Takers({})
