"""One message's way out, as named steps: accept, its sender's turn, claim, call, settle.

The lane of its sender (`lane.py`) decides whose turn it is; everything here is one batched commit a step. Answers come
after the commit, always.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial
from operator import attrgetter
from typing import TypeVar

import structlog

from recado.domain.channels.policies import address_of
from recado.domain.core.clock import Clock
from recado.domain.core.errors import Unavailable
from recado.domain.dispatch.leases import WINDOW, endless
from recado.domain.messages.message import Cause, MessageStatus
from recado.domain.senders.sender import SenderKey
from recado.engine.service import Service, ServiceGroup
from recado.services.dispatch.hints import Arrived, Forced, Queued
from recado.services.dispatch.row import Row, row_of
from recado.services.effects.consequences import Consequences
from recado.services.effects.recording import Recording
from recado.services.messages.admission import Admission
from recado.services.ops.activity import Activity
from recado.storage.core.connections.batch import Batcher
from recado.storage.core.connections.postgres import Database
from recado.storage.core.upkeep.partitions import partition_repair
from recado.storage.dispatch import dispatch, epochs, settlements
from recado.storage.dispatch.dispatch import OVERTAKEN, Claim, HeldRow
from recado.storage.dispatch.epochs import TakenEpoch
from recado.storage.dispatch.settlements import Departed, Failed, Onward, Returned, Uncertain
from recado.storage.messages import messages
from recado.storage.messages.messages import AcceptResult, NewMessage, OwnClaim, Stored

log = structlog.get_logger()

R = TypeVar("R")

# Seconds that a batch gathers while traffic is dense: a departure waits for the first (it is claimed 50 ms early),
# nobody for the second, but for callers of direct sends, who hurry it. Accepting gathers nothing: a caller waits for
# it, who sends the next message only then.
CLAIM_LINGER, SETTLE_LINGER = 0.005, 0.010
LONGEST_CLAIM = 0.5  # seconds: one that takes longer tells of a fault, not of the distance to the database
CLAIMS_REMEMBERED = 16  # batches
ACCEPTS_IN_FLIGHT = 3  # one is written while another is flushed to disk; the last is for those who are no crowd
ACCEPTS_IN_A_COMMIT = 100  # so that the next requests are read while these are written
# Outcomes of calls are bounded by the calls in flight (C31): refusing one here would only keep it in memory elsewhere.
MOST_OUTCOMES = 1_000_000
MOST_UNANSWERED = 100_000  # claims given up without an answer: some 20 MB
MOST_HELD = 20_000  # of what never left: the numbers stop reading on for a while
_A_SECOND, _A_MICROSECOND = timedelta(seconds=1), timedelta(microseconds=1)


Settled = Departed | Failed | Returned | Onward | Uncertain
"""What became of a call."""

Tell = Callable[[SenderKey, object], None]
"""A hint to the lane of a sender, which is started when need be."""


class Sending:
    """The batched commits of a message's way out."""

    def __init__(
        self,
        db: Database,
        *,
        clock: Clock,
        tell: Tell,
        admission: Admission,
        consequences: Consequences,
        recording: Recording,
        activity: Activity | None = None,
    ) -> None:
        """`activity`: where it is counted what these commits hold."""
        self._db = db
        self.activity = activity or Activity(clock)
        self._recording = recording
        self._admission = admission
        self._consequences = consequences
        self._clock = clock
        self._last_claim = clock.now()
        self.claim_takes = 0.0  # seconds: what a claim's way to the database and back takes as a rule
        self._tell = tell
        # Claims that were given up without an answer, by message and moment, and since when they are (monotonic). Their
        # numbers let none of them depart; their statements may have committed, or commit yet.
        self.unanswered: dict[tuple[str, datetime], float] = {}
        # Whether calls may begin; where nobody else can take the numbers, always.
        self.lease = endless()
        # Told when a claim shows that another process owns the numbers.
        self.overtaken: Callable[[], None] | None = None
        self.taken: TakenEpoch | None = None
        repair = partition_repair(db, clock)
        self._accepts: Batcher[NewMessage, AcceptResult] = Batcher(
            "accept",
            self._accept,
            clock=clock,
            repair=repair,
            max_rows=ACCEPTS_IN_A_COMMIT,
            concurrency=ACCEPTS_IN_FLIGHT,
            owner=attrgetter("organization_id"),
        )
        self._claims: Batcher[Claim, str] = Batcher(
            "claim", self._claim, clock=clock, linger=CLAIM_LINGER, repair=repair
        )

        def settling(
            name: str, run: Callable[[Sequence[R]], Awaitable[None]], *, max_queue: int = MOST_OUTCOMES
        ) -> Batcher[R, None]:
            return Batcher(
                name,
                nothing_to_answer(run),
                clock=clock,
                concurrency=1,
                linger=SETTLE_LINGER,
                max_queue=max_queue,
                repair=repair,
            )

        self._departed: Batcher[Departed, None] = settling("departed", self._depart)
        self._failed: Batcher[Failed, None] = settling("failed", self._fail, max_queue=MOST_HELD)
        self._returned: Batcher[Returned, None] = settling("returned", self._return)
        self._onward: Batcher[Onward, None] = settling("onward", self._send_on)
        self._uncertain: Batcher[Uncertain, None] = settling("uncertain", partial(settlements.uncertain, db))
        self._held: Batcher[HeldRow, None] = settling("held", partial(dispatch.hold, db), max_queue=MOST_HELD)
        self._departures = ServiceGroup(
            [
                self._claims,
                self._departed,
                self._failed,
                self._returned,
                self._onward,
                self._uncertain,
                self._held,
            ]
        )
        self._batchers = ServiceGroup([self._accepts, self._departures])

    @property
    def epoch(self) -> int:
        """Of this process's ownership; every claim carries it."""
        return 0 if self.taken is None else self.taken.epoch

    @property
    def accepting(self) -> Service:
        """What `store` needs, for a process that sends nothing and so does not start the rest."""
        return self._accepts

    @property
    def departing(self) -> Service:
        """What messages need to leave, for a process that accepts already and whose epoch is begun."""
        return self._departures

    async def start(self) -> None:
        """Takes the numbers, unless they are taken already."""
        if self.taken is None:
            now = self._clock.now()
            epoch = await epochs.take_epoch(self._db, now)
            opens_at = self._clock.monotonic() + WINDOW
            self.taken = TakenEpoch(epoch, now, opens_at, await epochs.opened(self._db, epoch))
        await self._batchers.start()

    async def stop(self) -> None:
        """Flushes what was given."""
        await self._batchers.stop()

    # Step 1: accept ------------------------------------------------------------------------------------------------

    def store(self, new: NewMessage) -> "asyncio.Future[AcceptResult]":
        """Commit the message; then its sender's lane knows it. Raises `Unavailable` when the queue is full."""
        return self._accepts.put(new)

    def claim_new(self, new: NewMessage) -> None:
        """Have the commit that stores it claim it: nobody else sends it (C10.2)."""
        new.claim = OwnClaim(self.epoch, self._claim_moment())

    async def rebind(self, new: NewMessage, old_message_id: str) -> AcceptResult:
        """Commit the message in the place of one that was refused for good under the same key (C6.2)."""
        await messages.unbind(self._db, new, old_message_id)
        return await self.store(new)

    def forced(self, sender: SenderKey) -> None:
        """A queued message of this sender was forced: it goes first."""
        self._tell(sender, Forced())

    async def _accept(self, batch: Sequence[NewMessage]) -> Sequence[AcceptResult | Exception]:
        results = await self._admission.store(batch)
        self.arrived([new for new, result in zip(batch, results, strict=True) if type(result) is Stored])
        return results

    def arrived(self, stored: Iterable[NewMessage]) -> None:
        """These messages are committed: the lanes of their senders know those that are due."""
        arrivals: dict[tuple[str, str], list[NewMessage]] = {}
        accepted = self.activity.accepted
        for new in stored:
            accepted[new.channel] += 1
            if new.due_at <= new.accepted_at and new.claim is None:
                arrivals.setdefault((new.organization_id, new.sender_id), []).append(new)
        for (organization_id, sender_id), arrived in arrivals.items():
            sender = SenderKey(organization_id, arrived[0].env, arrived[0].channel, sender_id)
            self._tell(sender, Arrived(tuple([row_of(new) for new in arrived])))

    # Step 2 is the sender's lane. Step 3: claim --------------------------------------------------------------------

    def claim(self, row: Row, *, in_window: bool = False, counts: bool = False) -> "asyncio.Future[str]":
        """queued → sending, committed before any call: a verdict of `dispatch.claim`.

        What is subject to consent is claimed only when its recipient has not refused (C12.5.4). `in_window`: only while
        its window is open, as what needs one always; `counts`: its recipient, toward the tier of its number.
        """
        asks = (row.env, address_of(row.channel, row.recipient)) if row.subject_to_consent else None
        at = row.claimed_at = self._claim_moment()
        return self._claims.put(
            Claim(row.organization_id, row.id, row.recipient_hash, row.needs_window or in_window, at, asks, counts)
        )

    def unclear(self, row: Row) -> None:
        """The row's claim ended without an answer: should the table show it, it goes back (`rescuer.py`)."""
        if row.claimed_at is None:
            return
        if len(self.unanswered) >= MOST_UNANSWERED:  # the oldest becomes uncertain, should it show
            del self.unanswered[next(iter(self.unanswered))]
        self.unanswered[(row.id, row.claimed_at)] = self._clock.monotonic()

    async def claims_settled(self) -> None:
        """Until every claim begun so far is committed, or has failed."""
        await self._claims.settled()

    def _claim_moment(self) -> datetime:
        """The present, a microsecond later than that of the last claim: it tells each claim from every other."""
        now = self._clock.now()
        if now <= self._last_claim < now + _A_SECOND:  # beyond, the clock was set back
            now = self._last_claim + _A_MICROSECOND
        self._last_claim = now
        return now

    async def _claim(self, rows: Sequence[Claim]) -> Sequence[str]:
        begun = self._clock.monotonic()
        verdicts = await dispatch.claim(self._db, rows, self.epoch, self._clock.now())
        if OVERTAKEN in verdicts and self.overtaken is not None:
            self.overtaken()
        took = min(self._clock.monotonic() - begun, LONGEST_CLAIM)
        self.claim_takes += (took - self.claim_takes) / CLAIMS_REMEMBERED
        return verdicts

    # Step 4 is the provider's call (`calls.py`). Step 5: settle -----------------------------------------------------

    def put(self, settled: Settled, *, hurries: bool = False) -> "asyncio.Future[None]":
        """Record what became of a call; done when it is committed. Raises `Unavailable`, also through the future.

        `hurries`: somebody waits for it, and it for no others, where it may end that.
        """
        match settled:
            case Departed():
                return self._departed.put(settled, hurries=hurries)
            case Failed():
                return self._failed.put(settled, hurries=hurries)
            case Returned():
                return self._returned.put(settled)
            case Onward():
                return self._onward.put(settled)
            case Uncertain():
                return self._uncertain.put(settled)

    async def settle(self, settled: Settled, *, hurries: bool = False) -> None:
        """As `put`. While the database is away this waits: an outcome is not lost for a restart."""
        while True:
            try:
                await self.put(settled, hurries=hurries)
                return
            except Unavailable:
                log.debug("settlement_waits", kind=type(settled).__name__)
                await self._clock.sleep(1.0)

    def fail(self, row: Row, cause: Cause, at: datetime) -> "asyncio.Future[None]":
        """queued → failed."""
        message = (row.organization_id, row.env, row.channel, row.id)
        return self._failed.put(Failed(*message, cause, at, True, sender_id=row.sender_id))

    def hold(self, row: Row, until: datetime, reason: str) -> "asyncio.Future[None]":
        """Take the row out of the ready index."""
        return self._held.put(HeldRow(row.organization_id, row.id, until, reason))

    async def _depart(self, rows: Sequence[Departed]) -> None:
        """Record departures, with what follows of them."""
        await self._recording.record(rows)
        self.activity.departed(rows)

    async def _fail(self, rows: Sequence[Failed]) -> None:
        """Record failures, with what follows of them in the same commit."""
        if not await self._consequences.wanted({(row.organization_id, row.env) for row in rows}, MessageStatus.FAILED):
            await settlements.failed(self._db.hot, rows, months=self._db.months)
        else:
            async with self._db.hot.transaction() as connection:
                moved = await settlements.failed(connection, rows, months=self._db.months)
                committed = await self._consequences.write(connection, moved)
            committed()
        self.activity.ended(rows)

    async def _return(self, rows: Sequence[Returned]) -> None:
        await settlements.returned(self._db.hot, rows, self.epoch, months=self._db.months)

    async def _send_on(self, rows: Sequence[Onward]) -> None:
        """Queue them for their next senders, whose lanes begin."""
        await settlements.onward(self._db.hot, rows, self.epoch, months=self._db.months)
        for key in {SenderKey(row.organization_id, row.env, row.channel, row.sender_id) for row in rows}:
            self._tell(key, Queued())


def nothing_to_answer(
    run: Callable[[Sequence[R]], Awaitable[None]],
) -> Callable[[Sequence[R]], Awaitable[Sequence[None]]]:
    """A batch whose rows have no answer but that they are committed."""

    async def answered(rows: Sequence[R]) -> Sequence[None]:
        await run(rows)
        return [None] * len(rows)

    return answered
