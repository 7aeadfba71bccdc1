"""What a unit costs now, and the month's volume that decides it (C25.3)."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from recado.domain.billing.prices import BR, FAMILIES, INTL, TIERS, PriceTable, Volumes, month_of, tier_of
from recado.http.api.call import Call
from recado.http.api.models import ApiModel, Timestamp
from recado.http.api.route import Route
from recado.http.routes.billing.wallet_models import WALLET
from recado.http.wire.reply import Reply
from recado.storage.billing.prices import PriceDirectory

UNITS = {"sms": "segment", "email": "recipient", "push": "device"}
MESSAGE = "message"


class TierOut(ApiModel):
    """From how many units of a month on a tier is in force."""

    tier: int
    from_units: int


class VolumeOut(ApiModel):
    """What was captured this month in live, and the tier that follows from it."""

    channel: str
    units: int
    tier: int


class PriceOut(ApiModel):
    """What one kind of unit costs, in coins."""

    channel: str
    kind: str
    unit: Literal["segment", "message", "recipient", "device"]
    coins: Annotated[list[int], Field(description="In the region BR, by tier from the first.")]
    international_coins: Annotated[int | None, Field(description="Elsewhere; absent where it is not offered.")] = None
    unit_coins: Annotated[int, Field(description="In the region BR, in the tier in force.")]


class PricesOut(ApiModel):
    """The prices in force. Test is priced as live is."""

    at: Timestamp
    month: Annotated[str, Field(description="Of the volumes: YYYY-MM, in the organization's zone.")]
    time_zone: str
    tiers: list[TierOut]
    volumes: list[VolumeOut]
    prices: list[PriceOut]


def prices_view(table: PriceTable, volumes: Volumes, at: datetime) -> dict[str, Any]:
    """The prices as callers see them."""
    month = month_of(volumes.zone, at)
    captured = {family: volumes.units.get((family, month), 0) for family in FAMILIES}
    in_force = table.in_force(at)
    kinds = dict.fromkeys(kind for kind, region, _ in in_force if region == BR)
    return {
        "at": at,
        "month": f"{month:%Y-%m}",
        "timeZone": volumes.zone.key,
        "tiers": [{"tier": number, "fromUnits": units} for number, units in enumerate(TIERS, 1)],
        "volumes": [
            {"channel": family, "units": units, "tier": tier_of(units)} for family, units in sorted(captured.items())
        ],
        "prices": [_price_view(kind, in_force, volumes.tier(kind, BR, at)) for kind in sorted(kinds)],
    }


def _price_view(kind: str, in_force: dict[tuple[str, str, int], int], tier: int) -> dict[str, Any]:
    channel, _, name = kind.partition("_")
    by_tier = {number: coins for (of, region, number), coins in in_force.items() if (of, region) == (kind, BR)}
    view: dict[str, Any] = {
        "channel": channel,
        "kind": name or channel,
        "unit": UNITS.get(channel, MESSAGE),
        "coins": [by_tier[number] for number in sorted(by_tier)],
        "unitCoins": by_tier[tier],
    }
    elsewhere = in_force.get((kind, INTL, 1))
    return view if elsewhere is None else {**view, "internationalCoins": elsewhere}


def wallet_price_routes(prices: PriceDirectory) -> tuple[Route, ...]:
    """Reading them."""

    async def read(call: Call) -> Reply:
        organization_id = call.principal.organization_id
        table, volumes = await prices.table_of(organization_id), await prices.volumes_of(organization_id)
        return Reply(200, prices_view(table, volumes, call.now))

    return (
        WALLET.route(
            "GET /v2/wallet/prices", "getPrices", "Read the prices in force, the tier and the month's volume", read,
            responses={200: PricesOut},
        ),
    )  # fmt: skip
