"""Campaigns as rows: opened in the commit that accepts a message, completed when they are done (C15.6).

Their counts are in `totals.py`. A campaign's totals are its lock: anyone who opens or completes it has locked them.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from recado.domain.batches.campaign import CAMPAIGN_MACHINE, CampaignEvent, CampaignStatus
from recado.storage.core.statements.rows import Executor, Page, columns, page, reader
from recado.storage.core.statements.sql import load

SQL = load("campaigns")

CampaignKey = tuple[str, str, str]
"""Organization, environment, and the caller's tag."""


@dataclass(slots=True)
class Gain:
    """What a campaign's counts rise by. `conversion_value`: in BRL."""

    clicks: int = 0
    opens: int = 0
    conversions: int = 0
    conversion_value: Decimal = Decimal(0)


_COMPLETABLE = list(CAMPAIGN_MACHINE.sources(CampaignEvent.THROUGH))


@dataclass(frozen=True, slots=True)
class Campaign:
    """One campaign. `queued` includes what is being sent; `unmade`: recipients whose batch has not come to them yet.

    `conversions`: customer events that are attributed to its messages; `conversion_value`: of those in BRL.
    """

    organization_id: str
    env: str
    campaign_id: str
    status: CampaignStatus
    channels: list[str]
    first_message_at: datetime
    last_message_at: datetime
    completed_at: datetime | None
    completions: int
    accepted: int
    skipped: int
    unmade: int
    queued: int
    sent: int
    delivered: int
    read: int
    failed: int
    archived: int
    charged_coins: int
    clicks: int
    opens: int
    conversions: int
    conversion_value: Decimal

    @property
    def requested(self) -> int:
        return self.accepted + self.skipped + self.unmade


read = reader(Campaign, status=CampaignStatus)


async def opened(executor: Executor, tagged: Collection[tuple[str, str, str, str]]) -> None:
    """Messages of (organization, environment, campaign, channel) were accepted; after their totals, in that commit."""
    await executor.execute(SQL.open, *columns(sorted(tagged), 4), CampaignStatus.RUNNING)


async def add(connection: Executor, gains: Mapping[CampaignKey, Gain]) -> None:
    """Raise the counts of campaigns, in a transaction."""
    if not gains:
        return
    rows = sorted(
        (*key, each.clicks, each.opens, each.conversions, each.conversion_value) for key, each in gains.items()
    )
    organizations, envs, ids, *counts = columns(rows, 7)
    await connection.execute(SQL.lock_several, organizations, envs, ids)
    await connection.execute(SQL.add, organizations, envs, ids, *counts)


async def through(executor: Executor, quiet_since: datetime, limit: int) -> list[CampaignKey]:
    """Running campaigns that seem to be through; `complete` decides."""
    rows = await executor.fetch(SQL.through, CampaignStatus.RUNNING, quiet_since, limit)
    return [(row["organization_id"], row["env"], row["campaign_id"]) for row in rows]


async def complete(connection: Executor, key: CampaignKey, quiet_since: datetime, now: datetime) -> Campaign | None:
    """Complete a campaign, in a transaction; None when a message or a batch came, or it is completed already."""
    found = await connection.fetchrow(SQL.lock, *key)
    if found is None or found["queued"] or found["last_at"] > quiet_since:
        return None
    if await connection.fetchval(SQL.complete, *key, CampaignStatus.COMPLETED, now, _COMPLETABLE) is None:
        return None
    return await get(connection, *key)


async def get(executor: Executor, organization_id: str, env: str, campaign_id: str) -> Campaign | None:
    """The campaign, when a message of this environment carries its tag."""
    row = await executor.fetchrow(_of(SQL.by_id), organization_id, env, campaign_id)
    return read(row) if row else None


async def list_page(
    executor: Executor,
    organization_id: str,
    env: str,
    *,
    status: str | None = None,
    start: datetime | None = None,
    end: datetime | None = None,
    limit: int,
    skip: int,
) -> Page[Campaign]:
    """Newest first; a period holds the campaigns whose first message was accepted in [start, end)."""
    filters = (organization_id, env, status, start, end)
    rows = await executor.fetch(_of(SQL.page), *filters, limit, skip)
    return page([read(row) for row in rows], await executor.fetchval(SQL.page_count, *filters))


def _of(found: str) -> str:
    return SQL.campaign.replace("{found}", found)
