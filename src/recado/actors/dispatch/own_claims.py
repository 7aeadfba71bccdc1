"""What this process claimed itself: whether it still may, and what of it came back to nobody (C14.5.6, C32).

Each process that sends looks after its own; what a dead one left is sorted out by the owner (`rescuer.py`).
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import product
from typing import Any, Final

import structlog

from recado.domain.channels.policies import POLICIES
from recado.domain.messages.message import Cause, FailureCode
from recado.services.dispatch.records import Records
from recado.services.dispatch.sending import Sending
from recado.storage.access.organizations import ENVIRONMENTS
from recado.storage.dispatch import epochs, rescue, settlements
from recado.storage.dispatch.begun_calls import BegunCalls
from recado.storage.dispatch.ownership import owner_of
from recado.storage.dispatch.settlements import Failed, Returned

LOOK_EVERY: Final = 2.0  # seconds
SETTLE_EVERY: Final = 60.0  # seconds (C32)
ABANDONED_AFTER: Final = timedelta(seconds=120)
"""A claim of ours whose call neither answered nor timed out by then was forgotten by a failing actor."""
FORGET_AFTER: Final = timedelta(seconds=5)
"""A claim is mostly settled by then, and its note goes."""
LAST_CLAIMS: Final = 90.0
"""Seconds in which a claim of this process can still commit though nobody waits for it any more: longer than any
statement takes."""
NOT_CALLED: Final = Cause(FailureCode.PROVIDER_ERROR.value, "the service stopped before the provider was called")

log = structlog.get_logger()


class OwnershipLost(Exception):
    """Another process has taken the numbers over."""


class OwnClaims:
    """`look` is to be called every two seconds."""

    def __init__(
        self, records: Records, *, sending: Sending, begun: BegunCalls, lost: Callable[[BaseException], None]
    ) -> None:
        """`lost` is told when this process may claim nothing more."""
        self._records = records
        self._sending = sending
        self._begun = begun
        self._lost = lost

    async def look(self) -> bool:
        """See whether this process may still claim, and whether a claim of it came that nobody waits for."""
        db, epoch = self._records.db, self._sending.epoch
        if not await epochs.lives(db, epoch):
            self._begun.overtaken()
            self._lost(OwnershipLost(f"{await owner_of(db)} has taken the numbers over"))
            return False
        await self.put_back_unanswered()
        await rescue.forget_settled(db, epoch, self._records.clock.now() - FORGET_AFTER)
        return True

    async def answer_for_forgotten(self) -> None:
        """Send again what a failing actor forgot, or mark it uncertain; the owner does so for all that are dead."""
        await answer_for_claims(self._records, self._sending.epoch, self._records.clock.now(), of_dead=False)

    async def put_back_unanswered(self) -> None:
        """Put back our own claims that committed though nobody waited for them any more: no call began for them."""
        unanswered, epoch = self._sending.unanswered, self._sending.epoch
        if not unanswered:
            return
        looked_at, now = self._records.clock.monotonic(), self._records.clock.now()
        in_hand = await rescue.in_hand(self._records.db, epoch)
        back = [row for row in in_hand if (row["id"], row["claimed_at"]) in unanswered]
        await put_back(self._records, self._sending, back, epoch, now)
        for claim in [claim for claim, since in unanswered.items() if since < looked_at - LAST_CLAIMS]:
            del unanswered[claim]


async def answer_for_claims(records: Records, epoch: int, now: datetime, *, of_dead: bool) -> None:
    """Of claims for which nobody will answer any more send again what bears it, and mark the rest uncertain (C29.2)."""
    db, before = records.db, now - ABANDONED_AFTER
    for channel, env in product(POLICIES, ENVIRONMENTS):
        provider = records.sender_for(channel, env)
        if provider is not None and provider.idempotent:
            repeated = await rescue.send_again(db, channel, env, epoch, before, now, of_dead=of_dead)
            if repeated:
                log.warning("sends_repeated", provider=provider.name, count=repeated)
    count = await rescue.rescue(db, epoch, before, of_dead=of_dead)
    if count:
        log.warning("sends_uncertain", count=count)


async def put_back(
    records: Records, sending: Sending, claims: Sequence[Mapping[str, Any]], epoch: int, now: datetime
) -> None:
    """Put back claims for which no call began. What was to be sent directly has failed: its content is gone."""
    returned = [_never_left(row, now) for row in claims if not row["direct"]]
    if returned:
        db = records.db
        await settlements.returned(db.hot, returned, epoch, months=db.months)
        log.info("claims_put_back", count=len(returned))
    lost = [
        Failed(row["organization_id"], row["env"], row["channel"], row["id"], NOT_CALLED, now, False)
        for row in claims
        if row["direct"]
    ]
    await asyncio.gather(*(sending.settle(each) for each in lost))


def _never_left(row: Mapping[str, Any], now: datetime) -> Returned:
    """Of a claim for which no call began: back to the head of its lane, the attempt uncounted."""
    message = (row["organization_id"], row["env"], row["channel"], row["id"])
    return Returned(*message, row["claimed_at"], None, None, None, True, now)
