"""Campaigns as a consequence of what is accepted, and their completion, looked for every minute (C15.6)."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

import structlog

from recado.domain.batches.campaign import QUIET_FOR
from recado.domain.core.clock import Clock
from recado.domain.core.ids import IdSource
from recado.domain.messages.changes import DeliveriesQueued, OnChange
from recado.engine.periodic import Periodic
from recado.services.effects.record_events import announce
from recado.storage.batches import campaigns
from recado.storage.batches.campaigns import Campaign, CampaignKey
from recado.storage.core.connections.postgres import Database
from recado.storage.core.statements.moves import AfterCommit, Moved
from recado.storage.core.statements.rows import Executor
from recado.storage.webhooks.events import emit

log = structlog.get_logger()

MINUTE = 60.0  # seconds
BLOCK = 100
COMPLETED = "campaign.completed"


class Campaigns:
    """Opens the campaigns of accepted messages, in their commit; after `MessageTotals`, whose rows are the locks."""

    async def wanted(self, environments: Collection[tuple[str, str]], to_status: str) -> bool:
        """Never by itself: whatever carries a campaign is counted, so that the totals want it."""
        return False

    async def write(self, connection: Executor, moved: Sequence[Moved]) -> AfterCommit | None:
        """Open them, or open them again."""
        tagged = {
            (move.organization_id, move.env, move.campaign_id, move.channel)
            for move in moved
            if move.from_status is None and move.campaign_id is not None
        }
        if tagged:
            await campaigns.opened(connection, tagged)
        return None


class CampaignCompletion:
    """Every minute: completes what is done, with its event in the same commit."""

    def __init__(self, db: Database, *, clock: Clock, ids: IdSource, changed: OnChange) -> None:
        self._db = db
        self._clock = clock
        self._ids = ids
        self._changed = changed
        self._worker = Periodic("campaigns", MINUTE, self.work, clock, at_once=True)

    async def start(self) -> None:
        await self._worker.start()

    async def stop(self) -> None:
        await self._worker.stop()

    async def work(self) -> None:
        """One look at the open campaigns."""
        quiet_since = self._clock.now() - QUIET_FOR
        while keys := await campaigns.through(self._db, quiet_since, BLOCK):
            completed = [await self._complete(key, quiet_since) for key in keys]
            if not any(completed):
                return  # others are about to change them

    async def _complete(self, key: CampaignKey, quiet_since: datetime) -> bool:
        async with self._db.transaction() as connection:
            campaign = await campaigns.complete(connection, key, quiet_since, self._clock.now())
            if campaign is None:
                return False
            hints = DeliveriesQueued(
                tuple(
                    await emit(
                        connection,
                        self._ids,
                        organization_id=campaign.organization_id,
                        env=campaign.env,
                        type=COMPLETED,
                        data=completion(campaign),
                    )
                )
            )
        announce(self._changed, hints)
        log.info("campaign_completed", organization_id=campaign.organization_id, completions=campaign.completions)
        return True


def completion(campaign: Campaign) -> dict[str, Any]:
    """The data of `campaign.completed` (C23.6)."""
    return {
        "campaignId": campaign.campaign_id,
        "totals": totals_of(campaign),
        "channels": campaign.channels,
        "chargedCoins": campaign.charged_coins,
        "firstMessageAt": campaign.first_message_at,
        "completedAt": campaign.completed_at,
        "completions": campaign.completions,
    }


def totals_of(campaign: Campaign) -> dict[str, int]:
    """The counts as callers see them (C15.6)."""
    return {
        "requested": campaign.requested,
        "accepted": campaign.accepted,
        "skipped": campaign.skipped,
        "queued": campaign.queued,
        "sent": campaign.sent,
        "delivered": campaign.delivered,
        "read": campaign.read,
        "failed": campaign.failed,
        "archived": campaign.archived,
    }
