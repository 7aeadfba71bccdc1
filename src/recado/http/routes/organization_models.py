"""Bodies of the organization's operations (C24.1)."""

from datetime import time
from functools import cache
from typing import Annotated, Any, Self
from zoneinfo import available_timezones

from pydantic import AfterValidator, Field, model_validator

from recado.http.models import ApiModel, PatchModel, Timestamp, unset
from recado.http.routes.api_key_models import IssuedKey
from recado.storage.organizations import Organization


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
Sender = Annotated[str, Field(min_length=1, max_length=64)]


class QuietHours(ApiModel):
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
    quiet_hours: QuietHours | None = None
    require_granted_for_marketing: bool = unset()
    opt_out_keywords: Keywords = unset()
    opt_in_keywords: Keywords = unset()
    opt_out_reply: Text | None = None


class OrganizationCreate(ApiModel):
    """A new organization."""

    name: Name


class OrganizationAdminPatch(PatchModel):
    """What the installation's administrator decides about an organization."""

    status: Annotated[str, Field(pattern="^(active|suspended)$")] = unset()
    dedicated_sender: Sender | None = None


class OrganizationOut(ApiModel):
    """An organization."""

    id: str
    name: str
    status: str
    time_zone: str
    country: str
    quiet_hours: QuietHours | None
    require_granted_for_marketing: bool
    opt_out_keywords: list[str]
    opt_in_keywords: list[str]
    opt_out_reply: str | None
    dedicated_sender: str | None
    created_at: Timestamp
    updated_at: Timestamp


class FirstKeys(ApiModel):
    """The first key of each environment, with its token, which is shown once."""

    live: IssuedKey
    test: IssuedKey


class NewOrganizationOut(OrganizationOut):
    """An organization just made."""

    keys: FirstKeys


def organization_view(organization: Organization) -> dict[str, Any]:
    """The organization as callers see it."""
    quiet = None
    if organization.quiet_start is not None and organization.quiet_end is not None:
        quiet = {"start": f"{organization.quiet_start:%H:%M}", "end": f"{organization.quiet_end:%H:%M}"}
    return {
        "id": organization.id,
        "name": organization.name,
        "status": organization.status,
        "timeZone": organization.time_zone,
        "country": organization.country,
        "quietHours": quiet,
        "requireGrantedForMarketing": organization.require_granted_for_marketing,
        "optOutKeywords": list(organization.opt_out_keywords),
        "optInKeywords": list(organization.opt_in_keywords),
        "optOutReply": organization.opt_out_reply,
        "dedicatedSender": organization.dedicated_sender,
        "createdAt": organization.created_at,
        "updatedAt": organization.updated_at,
    }
