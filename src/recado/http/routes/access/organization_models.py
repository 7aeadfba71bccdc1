"""Bodies of the organization's operations (C24.1)."""

from collections.abc import Mapping
from datetime import time
from functools import cache
from typing import Annotated, Any, Literal, Self
from zoneinfo import available_timezones

from pydantic import AfterValidator, Field, model_validator

from recado.domain.channels.sms import SENDER
from recado.http.api.models import ApiModel, PatchModel, Timestamp, most_members, unset
from recado.http.routes.access.api_key_models import IssuedKey
from recado.http.routes.core.emails import Email
from recado.http.routes.core.views import view_of
from recado.storage.access.organizations import Organization
from recado.storage.billing.price_overrides import Override


@cache
def _zones() -> frozenset[str]:
    return frozenset(available_timezones())


def _zone(name: str) -> str:
    if name not in _zones():
        raise ValueError("must be the name of an IANA time zone, such as America/Sao_Paulo")
    return name


Name = Annotated[str, Field(min_length=1, max_length=120)]
TimeZone = Annotated[str, Field(max_length=64, examples=["America/Sao_Paulo"]), AfterValidator(_zone)]
Country = Annotated[str, Field(pattern="^[A-Z]{2}$", description="ISO 3166 code, two letters.")]
Minute = Annotated[str, Field(pattern="^([01][0-9]|2[0-3]):[0-5][0-9]$", description="HH:MM, local time.")]
Keyword = Annotated[str, Field(min_length=1, max_length=80)]
Keywords = Annotated[list[Keyword], Field(max_length=30)]
Text = Annotated[str, Field(min_length=1, max_length=1024)]
Sender = Annotated[
    str,
    Field(pattern=SENDER, examples=["28282"], description="A phone, a short code, or a name of at most 11 characters."),
]
Coins = Annotated[int, Field(ge=0, le=1_000_000_000)]
PriceKind = Literal[
    "sms_premium", "sms_otp", "sms_la_dedicada", "rcs_text", "rcs_other", "rcs_otp", "chatapp_marketing",
    "chatapp_utility", "chatapp_authentication", "chatapp_free_form", "chatapp_platform", "email", "push_simple",
    "push_rich", "push_silent", "social",
]  # fmt: skip


class _QuietHours(ApiModel):
    """The hours in which marketing waits; they may span midnight."""

    start: Minute
    end: Minute

    @model_validator(mode="after")
    def _some_hours_remain(self) -> Self:
        if self.start == self.end:
            raise ValueError("start and end must differ")
        return self

    def times(self) -> tuple[time, time]:
        return time.fromisoformat(self.start), time.fromisoformat(self.end)


class OrganizationPatch(PatchModel):
    """Settings to change; they hold for both environments."""

    name: Name = unset()
    time_zone: TimeZone = unset()
    country: Country = unset()
    quiet_hours: _QuietHours | None = None
    require_granted_for_marketing: bool = unset()
    hide_phone_hash: bool = unset()
    opt_out_keywords: Keywords = unset()
    opt_in_keywords: Keywords = unset()
    opt_out_reply: Text | None = None


class OrganizationCreate(ApiModel):
    """A new organization, and the e-mail address of the person who is invited as its owner."""

    name: Name
    owner_email: Email


class PriceOverride(ApiModel):
    """What one kind of unit costs this organization; where a member is left out, everybody's price holds."""

    coins: Annotated[list[Coins], Field(min_length=4, max_length=4, description="In BR, by tier.")] | None = None
    international_coins: Coins | None = None


class PriceOverrideOut(ApiModel):
    """What one kind of unit costs this organization; where a member is absent, everybody's price holds."""

    coins: Annotated[list[int], Field(min_length=4, max_length=4, description="In BR, by tier.")] | None = None
    international_coins: int | None = None


class OrganizationAdminPatch(PatchModel):
    """What the installation's administrator decides about an organization."""

    status: Annotated[str, Field(pattern="^(active|suspended)$")] = unset()
    dedicated_sender: Sender | None = None
    price_overrides: Annotated[
        dict[PriceKind, PriceOverride] | None,
        Field(description="All of them: what is not named is ended."),
        most_members(100),
    ] = None


class OrganizationOut(ApiModel):
    """An organization."""

    id: str
    name: str
    status: str
    time_zone: str
    country: str
    quiet_hours: _QuietHours | None
    require_granted_for_marketing: bool
    hide_phone_hash: Annotated[bool, Field(description="`phoneHash` of contacts is left out without `pii:full`.")]
    opt_out_keywords: list[str]
    opt_in_keywords: list[str]
    opt_out_reply: str | None
    dedicated_sender: str | None
    created_at: Timestamp
    updated_at: Timestamp


class AdministeredOrganizationOut(OrganizationOut):
    """An organization as the administrator sees it."""

    price_overrides: dict[str, PriceOverrideOut]


class FirstKeys(ApiModel):
    """The first key of each environment, with its token, which is shown once."""

    live: IssuedKey
    test: IssuedKey


class NewOrganizationOut(OrganizationOut):
    """An organization just made."""

    keys: FirstKeys
    invite_token: str = Field(description="With it, the owner chooses a password. It holds for 72 hours.")


def overrides_view(overrides: Mapping[str, Override]) -> dict[str, Any]:
    """Agreed prices as the administrator sees them."""
    shown: dict[str, Any] = {}
    for kind, override in overrides.items():
        members = {"coins": override.coins, "internationalCoins": override.international_coins}
        shown[kind] = {name: value for name, value in members.items() if value is not None}
    return shown


def _quiet_hours(organization: Organization) -> dict[str, str] | None:
    start, end = organization.quiet_start, organization.quiet_end
    return None if start is None or end is None else {"start": f"{start:%H:%M}", "end": f"{end:%H:%M}"}


organization_view = view_of(Organization, OrganizationOut, quiet_hours=_quiet_hours)
