"""What time settles: claims of a dead process become uncertain, uncertain ones fail after a day, lives run out.

A claim whose call had certainly not begun goes back to the queue, and where the adapter bears it one whose call had is
sent again. What was held for a reason that is gone goes on, though nobody released it. And it watches the ownership of
the numbers: a process that lost it can claim nothing and must end (C14.5).
"""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import structlog

from recado.actors.dispatch.gate_check import EXPIRED
from recado.actors.dispatch.overtaken import OvertakenHolds
from recado.actors.dispatch.own_claims import (
    LAST_CLAIMS,
    LOOK_EVERY,
    SETTLE_EVERY,
    OwnClaims,
    answer_for_claims,
    put_back,
)
from recado.actors.dispatch.sender_view import read_sender, state_of
from recado.domain.channels.policies import POLICIES
from recado.domain.dispatch.gates import SenderState, expires_at
from recado.domain.messages.message import UNCERTAIN_AFTER
from recado.domain.senders.number import NumberStatus, QualityRating
from recado.domain.senders.sender import SenderKey
from recado.engine.periodic import Periodic
from recado.services.dispatch.records import Records
from recado.services.dispatch.sending import Sending
from recado.storage.dispatch import dispatch, epochs, rescue
from recado.storage.dispatch.begun_calls import BegunCalls, FormerCalls
from recado.storage.dispatch.dispatch import BLOCK
from recado.storage.dispatch.epochs import TakenEpoch
from recado.storage.dispatch.settlements import Failed

log = structlog.get_logger()

OVERTAKEN_EVERY = 60.0  # seconds
FENCED_AFTER = 0.05
"""Seconds after which a note that was being written when we closed the file of begun calls can be read."""

_NO_SENDER = SenderState(NumberStatus.DISCONNECTED, QualityRating.UNKNOWN, None, False, None, 0, None, ZoneInfo("UTC"))


class Rescuer:
    """What dead processes had in hand is sorted out at the start: none of their claims commits after it (C14.5.6)."""

    def __init__(
        self,
        records: Records,
        *,
        sending: Sending,
        begun: BegunCalls,
        lost: Callable[[BaseException], None],
        fenced: Callable[[], None] = lambda: None,
    ) -> None:
        """`lost` is told when another process owns the numbers; `begun` tells which calls the one before had begun.

        `fenced` is told when that one, dead or alive, begins no more calls from now on.
        """
        self._records = records
        self._sending = sending
        self._begun = begun
        self._former: FormerCalls | None = None
        self._fenced = fenced
        self._own = OwnClaims(records, sending=sending, begun=begun, lost=lost)
        self._watch = Periodic("ownership", LOOK_EVERY, self.watch, records.clock)
        self._settling = Periodic("expiry", SETTLE_EVERY, self.settle, records.clock)
        self._overtaken = Periodic(
            "overtaken holds", OVERTAKEN_EVERY, self.release_overtaken, records.clock, at_once=True
        )
        self._holds = OvertakenHolds(records.db)
        self._taken_over_at = 0.0

    @property
    def former(self) -> FormerCalls | None:
        """What the process before had begun, while what it left is sorted out; None where that is not known."""
        return self._former

    async def start(self) -> None:
        """What the process before had in hand is marked before any number starts."""
        taken = self._sending.taken
        assert taken is not None  # noqa: S101 - claims are made only by who has taken the numbers
        self._taken_over_at = self._records.clock.monotonic()
        await self._read_notes(taken)
        await self.rescue()
        # An owner that ends before this has claimed nothing, and leaves the file of the one before to the next.
        await epochs.note_opened(self._records.db, taken.epoch)
        self._begun.open(taken.epoch, taken.at)
        await self._watch.start()
        self._sending.overtaken = self._watch.hint  # a claim may see it before the next look
        await self._settling.start()
        await self._overtaken.start()

    async def stop(self) -> None:
        await self._overtaken.stop()
        await self._settling.stop()
        await self._watch.stop()

    async def watch(self) -> None:
        """See whether the numbers are still ours, and whether a claim of ours came that nobody waits for."""
        if not await self._own.look():
            return
        if self._records.clock.monotonic() - self._taken_over_at >= LAST_CLAIMS:
            self._former = None  # what it had in hand is sorted out, and its notes are many

    async def _read_notes(self, taken: TakenEpoch) -> None:
        """Which calls the owner before us had begun, where it can be known; from now on it begins none."""
        before = taken.opened_before
        if before is None:
            return
        fenced = self._begun.fence(*before)
        if fenced is not None:
            await self._records.clock.sleep(FENCED_AFTER)
            self._former = fenced.read()
            self._fenced()

    async def rescue(self) -> None:
        """Put back what never left, send again what bears being sent twice, and mark the rest uncertain (C29.2)."""
        now = self._records.clock.now()
        if self._former is not None:
            await self._sort_out(self._former, now)
        await self._sort_out_beside(now)
        await self._own.put_back_unanswered()
        await answer_for_claims(self._records, self._sending.epoch, now, of_dead=True)

    async def _sort_out(self, former: FormerCalls, now: datetime) -> None:
        """Of what a dead process had in hand, put back what it did not call for, its attempt uncounted (C32)."""
        back, begun = [], []
        for row in await rescue.in_hand(self._records.db, former.epoch):
            organization_id, message_id, claimed_at = row["organization_id"], row["id"], row["claimed_at"]
            if former.never_began(message_id, claimed_at):
                back.append(row)
            elif (departed_at := former.began_at(message_id, claimed_at)) is not None:
                begun.append((organization_id, message_id, departed_at))
        if begun:
            await rescue.departed(self._records.db, former.epoch, begun)
        await put_back(self._records, self._sending, back, former.epoch, now)

    async def _sort_out_beside(self, now: datetime) -> None:
        """Of dead processes that were beside an owner, once: nothing of theirs commits any more."""
        for epoch, taken_at in await epochs.opened_beside(self._records.db):
            calls = self._begun.beside(epoch)
            fenced = calls.fence(epoch, taken_at)
            if fenced is not None:
                await self._records.clock.sleep(FENCED_AFTER)
                if (former := fenced.read()) is not None:
                    await self._sort_out(former, now)
            await epochs.note_sorted_out(self._records.db, epoch)
            calls.remove()

    async def settle(self) -> None:
        """Mark forgotten claims, fail what stayed uncertain for a day, and what waited longer than it may."""
        await self.rescue()
        await self._give_up()
        await self._expire()

    async def release_overtaken(self) -> None:
        """Make ready what waits for a change that has come."""
        count = await self._holds.look()
        if count:
            log.info("holds_overtaken", count=count)

    async def _give_up(self) -> None:
        now = self._records.clock.now()
        while rows := await dispatch.to_give_up(self._records.db, now - UNCERTAIN_AFTER):
            failed = []
            for row in rows:
                message = (row["organization_id"], row["env"], row["channel"], row["id"])
                cause = POLICIES[row["channel"]].unanswered
                failed.append(Failed(*message, cause, now, False, row["called_at"]))
            await asyncio.gather(*(self._sending.settle(each) for each in failed))
            if len(rows) < BLOCK:
                return

    async def _expire(self) -> None:
        db, now = self._records.db, self._records.clock.now()
        while rows := await dispatch.expiring(db, now):
            failed, prolonged = [], []
            for row in rows:
                sender = SenderKey(row["organization_id"], row["env"], row["channel"], row["sender_id"])
                ends = expires_at(
                    await self._state(sender),
                    now,
                    due_at=row["due_at"],
                    ttl=timedelta(
                        milliseconds=row["ttl_ms"] + self._records.owners.held_ms(row["owner"], row["due_at"], now)
                    ),
                    held_base_ms=row["held_base_ms"],
                    obeys_quiet_hours=row["obeys_quiet_hours"],
                )
                if ends <= now:
                    failed.append(Failed(*sender[:3], row["id"], EXPIRED, now, True, sender_id=sender.sender_id))
                else:
                    prolonged.append((sender.organization_id, row["id"], ends))
            if failed:
                await asyncio.gather(*(self._sending.settle(each) for each in failed))
            if prolonged:
                await dispatch.prolong(db, prolonged)
            if len(rows) < BLOCK:
                return

    async def _state(self, sender: SenderKey) -> SenderState:
        found = await read_sender(self._records, sender)
        return _NO_SENDER if found is None else state_of(found)
