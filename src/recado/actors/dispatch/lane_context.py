"""The desk at which all number actors of a process work: what they share, and what outlives each of them."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from recado.actors.dispatch.calls import Calls
from recado.actors.dispatch.ready_rows import Wanted
from recado.actors.dispatch.sender_view import SenderView, limit_comes, read_rows, view_of
from recado.domain.core.moments import Moments
from recado.domain.dispatch.day_usage import DayUsage
from recado.domain.dispatch.pacing import Pacer
from recado.domain.dispatch.pair_pacing import PairPacing
from recado.domain.senders.sender import SenderKey
from recado.services.dispatch.consent_watch import ConsentWatch
from recado.services.dispatch.records import Records
from recado.services.dispatch.row import Row, row_from
from recado.services.dispatch.sending import Sending
from recado.storage.dispatch import dispatch

AT_ONCE = 6  # of the sixteen connections that answer requests
DAY = timedelta(days=1)


@dataclass(slots=True, eq=False)
class LaneContext:
    """What all number actors share: one for the process.

    `turn`: few actors at a time have the database. Thousands may wake at once (a change of their organization, a
    restart), and callers use it too.

    `moments`: one wall clock for the departures of all, before and after a restart.

    `opens_at`: monotonic moment before which nothing leaves: a second after this process became the owner (C14.5.5).

    `consents`: what a refusal stops before its call.

    `starting`: actors that have not read their number yet.
    """

    records: Records
    sending: Sending
    calls: Calls
    moments: Moments
    opens_at: float
    starting: int = 0
    consents: ConsentWatch = field(default_factory=ConsentWatch)
    _pacers: dict[str, Pacer] = field(default_factory=dict)
    _days: dict[str, DayUsage] = field(default_factory=dict)
    _pairs: dict[str, PairPacing] = field(default_factory=dict)
    turn: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))

    async def number(self, key: SenderKey) -> tuple[SenderView | None, DayUsage]:
        """What an actor has to know before its first turn: its number, and what has left in the last 24 hours."""
        async with self.turn:
            rows = await read_rows(self.records, key)
            view = None if rows is None else await view_of(self.records, rows, None, self._pairs_of)
            return view, await self._day(key)

    async def view(
        self, key: SenderKey, before: SenderView | None, claims_answered: Callable[[], Awaitable[None]]
    ) -> SenderView | None:
        """The number as it is now; None when it does not exist any more. `before` keeps what was counted so far.

        `claims_answered` comes back when no claim of it is under way. It begins none meanwhile.
        """
        async with self.turn:
            rows = await read_rows(self.records, key)
            if rows is None or not limit_comes(rows, before):
                return None if rows is None else await view_of(self.records, rows, before, self._pairs_of)
        # They were begun without a limit, and the table has them once they commit. Who waits for that has no turn:
        # claims that stall would else keep the numbers that read waiting.
        await claims_answered()
        async with self.turn:
            return await view_of(self.records, rows, before, self._pairs_of)

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

    def pacer(self, sender_id: str, per_second: float) -> Pacer:
        """The number's pacer, at this rate from now on."""
        pacer = self._pacers.get(sender_id)
        if pacer is None:
            pacer = self._pacers[sender_id] = Pacer(per_second)
        else:
            pacer.set_rate(per_second)
        return pacer

    def forget(self, sender_id: str) -> None:
        """The number leaves memory, unless its last second still counts; its day is in the database."""
        if (pairs := self._pairs.get(sender_id)) is not None:
            pairs.forget(self.records.clock.now())
            if not len(pairs):
                del self._pairs[sender_id]
        now = self.records.clock.monotonic()
        pacer = self._pacers[sender_id]
        if pacer.sent_within(now, 1.0) == 0 and pacer.tokens(now) >= 0:
            del self._pacers[sender_id], self._days[sender_id]

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
        day = DayUsage(now, await dispatch.day_minutes(db, organization_id, sender_id, now))
        for at in await dispatch.uncertain_of_sender(db, organization_id, sender_id, now - DAY):
            day.add(at)
        return self._days.setdefault(sender_id, day)
