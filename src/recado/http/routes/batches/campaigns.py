"""Campaigns: what became of the messages of one `campaignId` (C15.6)."""

import re
from typing import Any, Final

from recado.domain.batches.campaign import CampaignStatus
from recado.domain.core.errors import Problem
from recado.http.api.call import Call
from recado.http.api.models import ApiModel, Timestamp
from recado.http.api.paging import CountedPage, PageQuery, PeriodQuery
from recado.http.api.route import Route
from recado.http.routes.core.lists import listed
from recado.http.routes.messages.bulk_models import Totals
from recado.http.wire.reply import Reply
from recado.services.effects.campaigns import totals_of
from recado.storage.batches import campaigns
from recado.storage.batches.campaigns import Campaign
from recado.storage.core.connections.postgres import Database

SCOPE: Final = "campaigns:read"
_PLAIN: Final = re.compile(r"(?=.*[A-Za-z])[A-Za-z0-9_.-]{1,80}").fullmatch


class CampaignQuery(PageQuery, PeriodQuery):
    """Filters of the list. A period holds the campaigns whose first message was accepted in [from, to)."""

    status: CampaignStatus | None = None


class Conversions(ApiModel):
    """Customer events attributed to its messages; `value`: of those in BRL."""

    count: int
    value: float


class CampaignOut(ApiModel):
    """A campaign: every message with one `campaignId` in the environment."""

    campaign_id: str
    status: CampaignStatus
    channels: list[str]
    totals: Totals
    clicks: int
    opens: int
    conversions: Conversions
    charged_coins: int
    first_message_at: Timestamp
    last_message_at: Timestamp
    completed_at: Timestamp | None = None
    completions: int


class CampaignPage(CountedPage[CampaignOut]):
    """Campaigns of the environment, the newest first."""


def campaign_view(campaign: Campaign) -> dict[str, Any]:
    """The record."""
    view: dict[str, Any] = {
        "campaignId": campaign.campaign_id,
        "status": campaign.status,
        "channels": campaign.channels,
        "totals": totals_of(campaign),
        "clicks": campaign.clicks,
        "opens": campaign.opens,
        "conversions": {"count": campaign.conversions, "value": float(campaign.conversion_value)},
        "chargedCoins": campaign.charged_coins,
        "firstMessageAt": campaign.first_message_at,
        "lastMessageAt": campaign.last_message_at,
        "completions": campaign.completions,
    }
    if campaign.completed_at is not None:
        view["completedAt"] = campaign.completed_at
    return view


def _no_campaign(campaign_id: str, env: str) -> Problem:
    """404. The caller's text is repeated only where it can be no phone or address."""
    named = f"No campaign {campaign_id}" if _PLAIN(campaign_id) else "No such campaign"
    return Problem("NOT_FOUND", f"{named} in {env}.")


class CampaignOperations:
    """The handlers."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def list(self, call: Call) -> Reply:
        principal, query = call.principal, call.query
        page = await campaigns.list_page(
            self._database.page(query.skip),
            principal.organization_id,
            principal.env,
            status=query.status,
            start=query.from_,
            end=query.to,
            limit=query.limit,
            skip=query.skip,
        )
        return await listed(page, campaign_view)

    async def read(self, call: Call) -> Reply:
        return Reply(200, campaign_view(call.resource))

    async def find(self, call: Call) -> Campaign:
        """The campaign of the path; 404."""
        principal = call.principal
        found = await campaigns.get(self._database, principal.organization_id, principal.env, call.path["campaignId"])
        if found is None:
            raise _no_campaign(call.path["campaignId"], principal.env)
        return found


def campaign_routes(*, database: Database) -> tuple[Route, ...]:
    """The operations on campaigns: they come to be by the messages that name them."""
    operations = CampaignOperations(database)
    return (
        Route(
            method="GET",
            path="/v2/campaigns",
            handler=operations.list,
            operation_id="listCampaigns",
            summary="List campaigns, the newest first",
            tag="Campaigns",
            scope=SCOPE,
            rate_class="read",
            query=CampaignQuery,
            responses={200: CampaignPage},
        ),
        Route(
            method="GET",
            path="/v2/campaigns/{campaignId}",
            handler=operations.read,
            operation_id="getCampaign",
            summary="Read a campaign: what became of its messages",
            description=(
                "A campaign is completed when none of its messages is queued or sending, no batch makes more of them, "
                "and none was accepted for 15 minutes; then `campaign.completed` is told. A message that is accepted "
                "later opens it again."
            ),
            tag="Campaigns",
            scope=SCOPE,
            rate_class="read",
            responses={200: CampaignOut},
            load=operations.find,
        ),
    )
