"""What time settles: claims of a dead process become uncertain, uncertain ones fail after a day, lives run out.

A claim whose call had certainly not begun goes back to the queue, and where the adapter bears it one whose call had is
sent again. What was held for a reason that is gone goes on, though nobody released it. And it watches the ownership of
the numbers: a process that lost it can claim nothing and must end (C14.5).
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import product
from typing import Any
from zoneinfo import ZoneInfo

import structlog

from recado.actors.dispatch.gate_check import EXPIRED
from recado.actors.dispatch.overtaken import OvertakenHolds
from recado.actors.dispatch.sender_view import read_sender, state_of
from recado.domain.channels.policies import POLICIES
from recado.domain.dispatch.gates import SenderState, expires_at
from recado.domain.messages.message import UNCERTAIN_AFTER, Cause, FailureCode
from recado.domain.senders.number import NumberStatus, QualityRating
from recado.domain.senders.sender import SenderKey
from recado.engine.periodic import Periodic
from recado.services.dispatch.records import Records
from recado.services.dispatch.sending import Sending
from recado.storage.access.organizations import ENVIRONMENTS
from recado.storage.dispatch import dispatch, epochs, rescue, settlements
from recado.storage.dispatch.begun_calls import BegunCalls, FormerCalls
from recado.storage.dispatch.dispatch import BLOCK
from recado.storage.dispatch.epochs import TakenEpoch
from recado.storage.dispatch.ownership import owner_of
from recado.storage.dispatch.settlements import Failed, Returned

log = structlog.get_logger()

LOOK_EVERY = 2.0  # seconds
SETTLE_EVERY = 60.0  # seconds (C32)
OVERTAKEN_EVERY = 60.0  # seconds
FORGET_AFTER = timedelta(seconds=5)
"""A claim is mostly settled by then, and its note goes."""
LAST_CLAIMS = 90.0
"""Seconds in which a claim of this process can still commit though nobody waits for it any more: longer than any
statement takes. So long it is also known what the process before had begun."""
FENCED_AFTER = 0.05
"""Seconds after which a note that was being written when we closed the file of begun calls can be read."""
ABANDONED_AFTER = timedelta(seconds=120)
"""A claim of ours whose call neither answered nor timed out by then was forgotten by a failing actor."""

_NO_SENDER = SenderState(NumberStatus.DISCONNECTED, QualityRating.UNKNOWN, None, False, None, 0, None, ZoneInfo("UTC"))


NOT_CALLED = Cause(FailureCode.PROVIDER_ERROR.value, "the service stopped before the provider was called")


class OwnershipLost(Exception):
    """Another process has taken the numbers over."""


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
        self._lost = lost
        self._fenced = fenced
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
        await self._rescue()
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
        db, epoch = self._records.db, self._sending.epoch
        if await epochs.current_epoch(db) != epoch:
            self._begun.overtaken()
            self._lost(OwnershipLost(f"{await owner_of(db)} has taken the numbers over"))
            return
        if self._records.clock.monotonic() - self._taken_over_at >= LAST_CLAIMS:
            self._former = None  # what it had in hand is sorted out, and its notes are many
        await self._put_back_unanswered()
        await rescue.forget_settled(db, epoch, self._records.clock.now() - FORGET_AFTER)

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

    async def _rescue(self) -> None:
        """Put back what never left, send again what bears being sent twice, and mark the rest uncertain (C29.2)."""
        db, epoch, now = self._records.db, self._sending.epoch, self._records.clock.now()
        if self._former is not None:
            await self._sort_out(self._former, now)
        await self._put_back_unanswered()
        for channel, env in product(POLICIES, ENVIRONMENTS):
            provider = self._records.sender_for(channel, env)
            if provider is not None and provider.idempotent:
                repeated = await rescue.send_again(db, channel, env, epoch, now - ABANDONED_AFTER, now)
                if repeated:
                    log.warning("sends_repeated", provider=provider.name, count=repeated)
        count = await rescue.rescue(db, epoch, now - ABANDONED_AFTER)
        if count:
            log.warning("sends_uncertain", count=count)

    async def _sort_out(self, former: FormerCalls, now: datetime) -> None:
        """Of what the owner before had in hand, put back what it did not call for, its attempt uncounted (C32)."""
        back, begun = [], []
        for row in await rescue.in_hand(self._records.db, former.epoch):
            organization_id, message_id, claimed_at = row["organization_id"], row["id"], row["claimed_at"]
            if former.never_began(message_id, claimed_at):
                back.append(row)
            elif (departed_at := former.began_at(message_id, claimed_at)) is not None:
                begun.append((organization_id, message_id, departed_at))
        if begun:
            await rescue.departed(self._records.db, former.epoch, begun)
        await self._put_back(back, former.epoch, now)

    async def _put_back(self, claims: Sequence[Mapping[str, Any]], epoch: int, now: datetime) -> None:
        """Put back claims for which no call began. What was to be sent directly has failed: its content is gone."""
        returned = [_never_left(row, now) for row in claims if not row["direct"]]
        if returned:
            db = self._records.db
            await settlements.returned(db.hot, returned, epoch, months=db.months)
            log.info("claims_put_back", count=len(returned))
        lost = [
            Failed(row["organization_id"], row["env"], row["channel"], row["id"], NOT_CALLED, now, False)
            for row in claims
            if row["direct"]
        ]
        await asyncio.gather(*(self._sending.settle(each) for each in lost))

    async def _put_back_unanswered(self) -> None:
        """Put back our own claims that committed though nobody waited for them any more: no call began for them."""
        unanswered, epoch = self._sending.unanswered, self._sending.epoch
        if not unanswered:
            return
        looked_at, now = self._records.clock.monotonic(), self._records.clock.now()
        in_hand = await rescue.in_hand(self._records.db, epoch)
        back = [row for row in in_hand if (row["id"], row["claimed_at"]) in unanswered]
        await self._put_back(back, epoch, now)
        for claim in [claim for claim, since in unanswered.items() if since < looked_at - LAST_CLAIMS]:
            del unanswered[claim]

    async def settle(self) -> None:
        """Mark forgotten claims, fail what stayed uncertain for a day, and what waited longer than it may."""
        await self._rescue()
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


def _never_left(row: Mapping[str, Any], now: datetime) -> Returned:
    """Of a claim for which no call began: back to the head of its lane, the attempt uncounted."""
    message = (row["organization_id"], row["env"], row["channel"], row["id"])
    return Returned(*message, row["claimed_at"], None, None, None, True, now)
