"""What time settles: claims of a dead process become uncertain, uncertain ones fail after a day, lives run out.

Where the adapter bears it, such a claim is sent again instead. What was held for a reason that is gone goes on, though
nobody released it. And it watches the ownership of the numbers: a process that lost it can claim nothing and must end
(C14.5).
"""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from zoneinfo import ZoneInfo

import structlog

from recado.actors.number_view import Records, standing_of
from recado.actors.overtaken import OvertakenHolds
from recado.actors.sending import Sending
from recado.domain.gates import Standing, expires_at
from recado.domain.message import BULK, UNCERTAIN_AFTER, FailureCode, last_error
from recado.domain.number import NumberStatus, QualityRating
from recado.domain.template import TemplateCategory
from recado.engine.periodic import Periodic
from recado.storage import dispatch, rescue
from recado.storage.dispatch import BLOCK
from recado.storage.settlements import Failed

log = structlog.get_logger()

ENVIRONMENTS = ("live", "test")
LOOK_EVERY = 2.0  # seconds
SETTLE_EVERY = 60.0  # seconds (C32)
OVERTAKEN_EVERY = 60.0  # seconds
LAST_CLAIMS = 90.0
"""Seconds after a takeover in which a claim of the process before may still commit: longer than any statement takes."""
ABANDONED_AFTER = timedelta(seconds=120)
"""A claim of ours whose call neither answered nor timed out by then was forgotten by a failing actor."""

_NO_NUMBER = Standing(NumberStatus.DISCONNECTED, QualityRating.UNKNOWN, None, False, None, 0, None, ZoneInfo("UTC"))


class OwnershipLost(Exception):
    """Another process has taken the numbers over."""


class Rescuer:
    """Sweeps continually: a dead process's last claim can still commit after the restart."""

    def __init__(self, records: Records, *, sending: Sending, lost: Callable[[BaseException], None]) -> None:
        """`lost` is told when another process owns the numbers."""
        self._records = records
        self._sending = sending
        self._lost = lost
        self._watch = Periodic("ownership", LOOK_EVERY, self.watch, records.clock)
        self._settling = Periodic("expiry", SETTLE_EVERY, self.settle, records.clock)
        self._overtaken = Periodic(
            "overtaken holds", OVERTAKEN_EVERY, self.release_overtaken, records.clock, at_once=True
        )
        self._holds = OvertakenHolds(records.db)
        self._taken_over_at = 0.0

    async def start(self) -> None:
        """What the process before had in hand is marked before any number starts."""
        self._taken_over_at = self._records.clock.monotonic()
        await self._rescue()
        await self._watch.start()
        await self._settling.start()
        await self._overtaken.start()

    async def stop(self) -> None:
        await self._overtaken.stop()
        await self._settling.stop()
        await self._watch.stop()

    async def watch(self) -> None:
        """See whether the numbers are still ours, and for a while whether a late claim of their last owner came."""
        if await dispatch.current_epoch(self._records.db) != self._sending.epoch:
            self._lost(OwnershipLost("another process has taken the numbers over"))
        elif self._records.clock.monotonic() - self._taken_over_at < LAST_CLAIMS:
            await self._rescue()

    async def _rescue(self) -> None:
        """Send again what bears being sent twice, and mark the rest uncertain (C29.2)."""
        db, epoch, now = self._records.db, self._sending.epoch, self._records.clock.now()
        for env in ENVIRONMENTS:
            provider = self._records.provider_for(env)
            if provider is not None and provider.idempotent:
                repeated = await rescue.send_again(db, env, epoch, now - ABANDONED_AFTER, now)
                if repeated:
                    log.warning("sends_repeated", provider=provider.name, count=repeated)
        count = await dispatch.rescue(db, epoch, now - ABANDONED_AFTER)
        if count:
            log.warning("sends_uncertain", count=count)

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
        error = last_error(FailureCode.OUTCOME_UNKNOWN, "the provider's answer was lost and no report came in 24 hours")
        while rows := await dispatch.to_give_up(self._records.db, now - UNCERTAIN_AFTER):
            failed = [
                Failed(row["organization_id"], row["env"], row["channel"], row["id"], error, now, False) for row in rows
            ]
            await asyncio.gather(*(self._sending.settle(each) for each in failed))
            if len(rows) < BLOCK:
                return

    async def _expire(self) -> None:
        db, now = self._records.db, self._records.clock.now()
        error = last_error(FailureCode.EXPIRED, "its time to live ran out")
        while rows := await dispatch.expiring(db, now):
            failed, prolonged = [], []
            for row in rows:
                organization_id, env = row["organization_id"], row["env"]
                template = None
                if row["template_id"] is not None:
                    template = await self._records.templates.get((organization_id, env, row["template_id"]))
                marketing = template is not None and template.category is TemplateCategory.MARKETING
                ends = expires_at(
                    await self._standing(organization_id, env, row["number_id"]),
                    now,
                    due_at=row["due_at"],
                    ttl=timedelta(
                        milliseconds=row["ttl_ms"] + self._records.owners.held_ms(row["owner"], row["due_at"], now)
                    ),
                    held_base_ms=row["held_base_ms"],
                    obeys_quiet_hours=marketing or row["class"] == BULK,
                )
                if ends <= now:
                    failed.append(Failed(organization_id, env, row["channel"], row["id"], error, now, True))
                else:
                    prolonged.append((organization_id, row["id"], ends))
            if failed:
                await asyncio.gather(*(self._sending.settle(each) for each in failed))
            if prolonged:
                await dispatch.prolong(db, prolonged)
            if len(rows) < BLOCK:
                return

    async def _standing(self, organization_id: str, env: str, number_id: str) -> Standing:
        number = await self._records.numbers.get((organization_id, env, number_id))
        organization = await self._records.organizations.get(organization_id)
        if number is None or organization is None:
            return _NO_NUMBER
        return standing_of(number, organization)
