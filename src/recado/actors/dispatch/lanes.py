"""The lanes of the senders that this process has, begun when they are told something; and the way to all others."""

import asyncio
from collections.abc import Collection, Iterator
from functools import partial
from typing import Final

import structlog

from recado.actors.dispatch.lane import Lane
from recado.actors.dispatch.lane_context import LaneContext
from recado.actors.dispatch.lane_messages import AskSituation, LaneSituation
from recado.actors.dispatch.places import Places
from recado.actors.dispatch.waits import Handed
from recado.domain.channels.policies import NUMBERS_CHANNEL
from recado.domain.dispatch.placement import shard_of
from recado.domain.senders.sender import SenderKey
from recado.engine.errors import ActorDeadError, AskTimeout, MailboxFull
from recado.engine.registry import Registry
from recado.engine.runtime import Runtime
from recado.engine.supervisor import Supervisor

IDLE_AFTER: Final = 60.0  # seconds until an idle number leaves memory
ASK_LIMIT: Final = 2.0  # seconds
# A number that fails backs off alone; only a failure of very many in a minute is taken for the program's own.
NUMBER_RESTARTS, NUMBER_PERIOD = 1_000, 60.0

log = structlog.get_logger()


class Lanes:
    """`supervisor` has them, and nothing else; `registry` lets those go that are idle. Both are started by the tree."""

    def __init__(self, context: LaneContext, places: Places, *, runtime: Runtime) -> None:
        self._context = context
        self._places = places
        self._new_lane = partial(Lane, context=context)
        self.supervisor = Supervisor("lanes", runtime=runtime, intensity=NUMBER_RESTARTS, period=NUMBER_PERIOD)
        self.registry: Registry[SenderKey] = Registry(self.supervisor, idle_after=IDLE_AFTER)

    def tell(self, sender: SenderKey, message: object) -> None:
        """Tell a sender's lane, which is started when need be. A hint that is lost is made up for by the poller."""
        away = self._places.away(sender)
        if away is not None:
            away(sender, message)
        else:
            self._tell(sender, message)

    def tell_here(self, sender: SenderKey, message: object) -> None:
        """As `tell`, where another process says that the lane is here; it is lost where that is no more so."""
        if self._places.away(sender) is None:
            self._tell(sender, message)

    def _tell(self, sender: SenderKey, message: object) -> None:
        try:
            self.registry.get_or_spawn(sender, self._new_lane).tell(message)
        except (MailboxFull, ActorDeadError):
            log.debug("hint_lost", sender_id=sender.sender_id, told=type(message).__name__)

    async def ask_situation(self, sender: SenderKey) -> LaneSituation | None:
        """What holds the sender now; None when its lane is not here, or does not answer in time."""
        if self._places.away(sender) is not None:
            return None
        try:
            situation: LaneSituation = await self.registry.get_or_spawn(sender, self._new_lane).ask(
                AskSituation(), timeout=ASK_LIMIT
            )
        except (MailboxFull, ActorDeadError, AskTimeout):
            return None
        return situation

    def in_memory(self, sender: SenderKey) -> bool:
        """Whether its lane need not be begun: it is at work here, or in another process, which begins it."""
        return self._places.away(sender) is not None or self.registry.get(sender) is not None

    def of_organization(self, organization_id: str) -> Iterator[SenderKey]:
        """The senders of an organization whose lanes are in memory here."""
        for cell in self.registry:
            key = cell.key
            if isinstance(key, SenderKey) and key.organization_id == organization_id:
                yield key

    async def give_up(self, shards: Collection[int]) -> Handed:
        """Stop the lanes of these shards, of which nobody here is told any more: nothing of them departs from then on.

        Comes back when all calls of their numbers are recorded: who has them next counts what left by the table, and
        what was waited for by what is answered.
        """
        waits = self._context.waits
        closed = waits.closed_among(shards)
        leaving = [cell for cell in self.registry if isinstance(cell.key, SenderKey) and _among(cell.key, shards)]
        await asyncio.gather(*(cell.stop() for cell in leaving))
        await self._context.calls.settled(
            lambda row: _among(SenderKey(row.organization_id, row.env, row.channel, row.sender_id), shards)
        )
        self._context.forget_shards(shards)
        return waits.take(shards, closed)


def _among(sender: SenderKey, shards: Collection[int]) -> bool:
    return sender.channel == NUMBERS_CHANNEL and shard_of(sender) in shards
