"""The context of all lanes of a process: what they share, and what outlives each of them."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import inf

from recado.actors.dispatch.call_room import CallRoom
from recado.actors.dispatch.calls import Calls
from recado.actors.dispatch.failover import Failover, OrganizationGateways
from recado.actors.dispatch.gateway import Gateway
from recado.actors.dispatch.ready_rows import Wanted
from recado.actors.dispatch.sender_view import SenderRecords, SenderView, connect, limit_comes, read_sender, view_of
from recado.actors.dispatch.shared_gateway import GatewayPlan, SharedGateway
from recado.actors.dispatch.waits import Waits
from recado.channels.http.outbound_http import CONNECTIONS
from recado.domain.channels.policies import NUMBERS_CHANNEL, carrier_of
from recado.domain.core.errors import Unavailable
from recado.domain.core.moments import Moments
from recado.domain.dispatch.day_usage import DayUsage
from recado.domain.dispatch.gates import Hold
from recado.domain.dispatch.pair_pacing import PairPacing
from recado.domain.dispatch.placement import SHARDS, shard_of
from recado.domain.senders.sender import SenderKey
from recado.services.dispatch.consent_watch import ConsentWatch
from recado.services.dispatch.records import Records
from recado.services.dispatch.row import Row, row_from
from recado.services.dispatch.sending import Sending
from recado.storage.dispatch import addressed, dispatch
from recado.storage.senders import numbers

CLAIM_AHEAD = 0.05  # seconds
# Before a database that is far away a claim begins so much earlier that its answer is there for the departure. It waits
# for one of the two batches that are under way, half of their time at most.
CLAIM_TAKES, CLAIM_MARGIN = 1.5, 0.02
AT_ONCE = 6  # of the sixteen connections that answer requests
COUNTS_AT_ONCE = 2  # of the four for long work
COUNT_AGAIN_AFTER = 1.0  # seconds after the database was away
DAY = timedelta(days=1)


@dataclass(slots=True, eq=False)
class LaneContext:
    """What all lanes share: one for the process.

    `turn`: few actors at a time have the database. Thousands may wake at once (a change of their organization, a
    restart), and callers use it too.

    `moments`: one wall clock for the departures of all, before and after a restart.

    `opens_at`: monotonic moment before which nothing leaves: a second after this process became the owner (C14.5.5).
    `opens`: likewise of the numbers of each shard, which another process had before.

    `consents`: what a refusal stops before its call.

    `waits`: what held messages so far, until they leave.

    `starting`: lanes that have not read their sender yet.

    `connections`: by channel and environment, how many calls the adapter of those who have a gateway of their own bears
    at once, where those are fewer than usual (C31).
    """

    records: Records
    sending: Sending
    calls: Calls
    moments: Moments
    opens_at: float
    connections: Mapping[tuple[str, str], int] = field(default_factory=dict)
    starting: int = 0
    opens: list[float] = field(default_factory=lambda: [-inf] * SHARDS)
    consents: ConsentWatch = field(default_factory=ConsentWatch)
    waits: Waits = field(default_factory=Waits)
    _own: dict[str, Gateway] = field(default_factory=dict)
    _shards: dict[str, int] = field(default_factory=dict)  # of those whose senders may be in other processes
    _rooms: dict[tuple[str, str], CallRoom] = field(default_factory=dict)
    _shared: dict[tuple[str, str], Failover] = field(default_factory=dict)
    _days: dict[str, DayUsage] = field(default_factory=dict)
    _pairs: dict[str, PairPacing] = field(default_factory=dict)
    turn: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))
    _counts: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(COUNTS_AT_ONCE))

    def share(self, plans: Iterable[GatewayPlan]) -> None:
        """Have the lanes of their channels share these gateways, which are preferred in this order."""
        made: dict[tuple[str, str], list[SharedGateway]] = {}
        for plan in plans:
            gateway = SharedGateway(plan, self.records.clock, ahead=self.claims_ahead, opens_at=lambda: self.opens_at)
            made.setdefault((plan.channel, plan.env), []).append(gateway)
        self._shared = {key: Failover(self.records.clock, tuple(gateways)) for key, gateways in made.items()}

    def shared_gateways(self, channel: str, env: str, organization_id: str) -> OrganizationGateways:
        """The gateways of a channel whose senders share some, as an organization has them."""
        return self._shared[channel, env].of(organization_id)

    def trouble(self, sender_id: str) -> Hold | None:
        """What holds everything of a sender with a gateway of its own there, or lets only a probe pass (C34.2)."""
        own = self._own.get(sender_id)
        return None if own is None else own.trouble()

    def own_gateway(self, sender_id: str) -> Gateway | None:
        """The gateway of a sender that has one of its own, while it is in memory."""
        return self._own.get(sender_id)

    def own_gateways(self) -> Iterable[Gateway]:
        """Those of senders that have one of their own, while they are in memory."""
        return self._own.values()

    def day(self, sender_id: str) -> DayUsage | None:
        """What has left of a sender in its rolling day, while it is in memory."""
        return self._days.get(sender_id)

    @property
    def failovers(self) -> Mapping[tuple[str, str], Failover]:
        """The gateways that lanes share, by channel and environment."""
        return self._shared

    @property
    def rooms(self) -> Mapping[tuple[str, str], CallRoom]:
        """The calls at once of those who have a gateway of their own, by channel and environment."""
        return self._rooms

    def room(self, channel: str, env: str) -> CallRoom:
        """The calls at once of the adapter of those senders of a channel that have a gateway of their own."""
        key = (channel, env)
        if key not in self._rooms:
            self._rooms[key] = CallRoom(self.connections.get(key, CONNECTIONS))
        return self._rooms[key]

    def claims_ahead(self) -> float:
        """How many seconds before its departure a message is claimed."""
        return max(CLAIM_AHEAD, CLAIM_TAKES * self.sending.claim_takes + CLAIM_MARGIN)

    async def sender(self, key: SenderKey) -> tuple[SenderView | None, DayUsage]:
        """What a lane has to know before its first turn: its sender, and what has left in the last 24 hours."""
        async with self.turn:
            found = await read_sender(self.records, key)
            view = None if found is None else await self._view(key, found, None)
            return view, await self._day(key)

    async def view(
        self, key: SenderKey, before: SenderView | None, claims_answered: Callable[[], Awaitable[None]]
    ) -> SenderView | None:
        """The sender as it is now; None when it does not exist any more. `before` keeps what was counted so far.

        `claims_answered` comes back when no claim of it is under way. It begins none meanwhile.
        """
        async with self.turn:
            found = await read_sender(self.records, key)
            if found is None or not limit_comes(found, before):
                return None if found is None else await self._view(key, found, before)
        # They were begun without a limit, and the table has them once they commit. Who waits for that has no turn:
        # claims that stall would else keep the numbers that read waiting.
        await claims_answered()
        async with self.turn:
            return await self._view(key, found, before)

    async def _view(self, key: SenderKey, found: SenderRecords, before: SenderView | None) -> SenderView:
        gateway = self._gateway(key, found)
        return await view_of(self.records, key, found, before, gateway=gateway, pairs_of=self._pairs_of)

    async def count_recipients(self, key: SenderKey, limited_at: datetime) -> None:
        """Count whom the number wrote to before this limit came (C14.5.5); it claims nothing that counts meanwhile.

        While the database is away this waits. What is broken off begins anew, also after a restart.
        """
        records = self.records
        while True:
            try:
                async with self._counts:
                    await addressed.count(records.db.bulk, key, records.clock.now())
                await numbers.counted(records.db, key.organization_id, key.sender_id, limited_at)
            except Unavailable:
                await records.clock.sleep(COUNT_AGAIN_AFTER)
            else:
                records.numbers.forget((key.organization_id, key.env, key.sender_id))
                return

    async def rows(self, key: SenderKey, wanted: Wanted) -> list[Row]:
        """Ready rows of one class."""
        async with self.turn:
            records = await dispatch.refill(
                self.records.db, key.organization_id, key.sender_id, wanted.klass, wanted.after_owner, wanted.limit
            )
        return [row_from(record) for record in records]

    async def forced(self, key: SenderKey, limit: int) -> Sequence[Row]:
        """The first ready rows that a caller forced."""
        async with self.turn:
            records = await dispatch.forced(self.records.db, key.organization_id, key.sender_id, limit)
        return [row_from(record) for record in records]

    # What outlives an actor: one that was restarted remembers what has left -------------------------------------------

    def _gateway(self, key: SenderKey, found: SenderRecords) -> Gateway | OrganizationGateways:
        """The gateway through which the sender's messages go: its own, as it is connected now, or its channel's."""
        shared = self._shared.get((carrier_of(key.channel, key.sender_id), key.env))
        if shared is not None:
            return shared.of(key.organization_id)
        own = self._own.get(key.sender_id)
        if own is None:
            if key.channel == NUMBERS_CHANNEL:
                self._shards[key.sender_id] = shard_of(key)
            own = self._own[key.sender_id] = Gateway(
                self.records.clock, self.room(key.channel, key.env), channel=key.channel
            )
        connect(own, self.records, found, key.channel)
        return own

    def forget(self, sender_id: str) -> None:
        """The sender leaves memory, unless its last second still counts; its day is in the database."""
        if (pairs := self._pairs.get(sender_id)) is not None:
            pairs.forget(self.records.clock.now())
            if not len(pairs):
                del self._pairs[sender_id]
        now = self.records.clock.monotonic()
        own = self._own.get(sender_id)
        if own is None or (own.untroubled and own.pacer.sent_within(now, 1.0) == 0 and own.pacer.tokens(now) >= 0):
            self._own.pop(sender_id, None)
            self._shards.pop(sender_id, None)
            self._days.pop(sender_id, None)

    def forget_shards(self, shards: Collection[int]) -> None:
        """Another process sends for the numbers of these: what is remembered of them here is soon no more true."""
        for sender_id in [sender_id for sender_id, shard in self._shards.items() if shard in shards]:
            del self._own[sender_id], self._shards[sender_id]
            self._days.pop(sender_id, None)
            self._pairs.pop(sender_id, None)

    def _pairs_of(self, sender_id: str) -> PairPacing:
        return self._pairs.setdefault(sender_id, PairPacing())

    async def _day(self, key: SenderKey) -> DayUsage:
        """Sent, or perhaps sent by an owner that died.

        What a restore ended, and a report revives later, is in it when it is read after that (C14.5.5): other failures
        of unknown outcome are revived when their calls have left the day.
        """
        organization_id, sender_id = key.organization_id, key.sender_id
        known = self._days.get(sender_id)
        if known is not None:
            return known
        db, now = self.records.db, self.records.clock.now()
        # In this order: what is settled meanwhile, as by the owner before, counts twice rather than never.
        uncertain = await dispatch.uncertain_of_sender(db, organization_id, sender_id, now - DAY)
        day = DayUsage(now, await dispatch.day_minutes(db, organization_id, sender_id, now))
        for at in uncertain:
            day.add(at)
        return self._days.setdefault(sender_id, day)
