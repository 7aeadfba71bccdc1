"""What a send costs: kinds of units, regions, and the tiers of a month's volume (C25.3)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final
from zoneinfo import ZoneInfo

BR, INTL = "BR", "INTL"
_BRAZILIAN: Final = ("+55", "BR.")

CHATAPP_MARKETING: Final = "chatapp_marketing"
CHATAPP_UTILITY: Final = "chatapp_utility"
CHATAPP_AUTHENTICATION: Final = "chatapp_authentication"
CHATAPP_FREE_FORM: Final = "chatapp_free_form"
CHATAPP_PLATFORM: Final = "chatapp_platform"  # of numbers whose owner pays the provider directly (C25.2.6)
SMS_PREMIUM: Final = "sms_premium"
SMS_OTP: Final = "sms_otp"
SMS_DEDICATED: Final = "sms_la_dedicada"
RCS_TEXT: Final = "rcs_text"  # short, without suggestions
RCS_OTHER: Final = "rcs_other"
RCS_OTP: Final = "rcs_otp"
EMAIL_RECIPIENT: Final = "email"
SOCIAL_MESSAGE: Final = "social"

FAMILY_OF: Final[Mapping[str, str]] = {
    SMS_PREMIUM: "sms",
    SMS_OTP: "sms",
    SMS_DEDICATED: "sms",
    RCS_TEXT: "rcs",
    RCS_OTHER: "rcs",
    RCS_OTP: "rcs",
    CHATAPP_UTILITY: "chatapp",
    CHATAPP_AUTHENTICATION: "chatapp",
}
"""Kinds whose price falls with volume, by the family that counts their units together; the others have one tier."""

FAMILIES: Final = tuple(dict.fromkeys(FAMILY_OF.values()))
TIERS: Final = (0, 10_000, 100_000, 1_000_000)
"""Units captured in the month from which tier 1, 2, 3, 4 is in force."""


@dataclass(frozen=True, slots=True)
class Price:
    """What one unit costs, in coins. `kind`: what it counts for when it is captured; None when for nothing (C25.3)."""

    coins: int
    kind: str | None


@dataclass(frozen=True, slots=True)
class PriceRow:
    """A price with its validity, until then or until further notice."""

    kind: str
    region: str
    tier: int
    coins: int
    valid_from: datetime
    valid_until: datetime | None


class PriceTable:
    """The prices of one organization: its own rows stand before everybody's."""

    __slots__ = ("_rows",)

    def __init__(self, *layers: Iterable[PriceRow]) -> None:
        """`layers`: the first that has a price in force has the say; inside one, the latest row."""
        self._rows: dict[tuple[str, str, int], list[PriceRow]] = {}
        for layer in layers:
            for row in sorted(layer, key=lambda row: row.valid_from, reverse=True):
                self._rows.setdefault((row.kind, row.region, row.tier), []).append(row)

    def coins(self, kind: str, region: str, tier: int, at: datetime) -> int | None:
        """The price in force; None when there is none."""
        for row in self._rows.get((kind, region, tier), ()):
            if row.valid_from <= at and (row.valid_until is None or at < row.valid_until):
                return row.coins
        return None

    def in_force(self, at: datetime) -> dict[tuple[str, str, int], int]:
        """Every price in force, by kind, region and tier."""
        found = {key: self.coins(*key, at) for key in self._rows}
        return {key: coins for key, coins in found.items() if coins is not None}


@dataclass(frozen=True, slots=True)
class Volumes:
    """Units that an organization has captured in live, by family and month: its first day in the zone."""

    zone: ZoneInfo
    units: Mapping[tuple[str, date], int]

    def tier(self, kind: str, region: str, at: datetime) -> int:
        """The tier in force for a unit of this kind."""
        family = FAMILY_OF.get(kind) if region == BR else None
        return 1 if family is None else tier_of(self.units.get((family, month_of(self.zone, at)), 0))


def tier_of(units: int) -> int:
    """The tier of a month in which so many units were captured, from 1."""
    return sum(units >= least for least in TIERS)


def month_of(zone: ZoneInfo, at: datetime) -> date:
    """The first day of the month that `at` falls into."""
    return at.astimezone(zone).date().replace(day=1)


def region_of(recipient: str) -> str:
    """`BR` for a phone of Brazil, and a user id that is one there (`BR.…`), else `INTL`."""
    return BR if recipient.startswith(_BRAZILIAN) else INTL


def price_in(table: PriceTable, volumes: Volumes, *, env: str, kind: str, region: str, at: datetime) -> Price | None:
    """What a unit costs now. Test is priced as live, and counts for no tier."""
    coins = table.coins(kind, region, volumes.tier(kind, region, at), at)
    if coins is None:
        return None
    return Price(coins, kind if env == "live" and region == BR and kind in FAMILY_OF else None)
