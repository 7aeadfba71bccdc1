"""Bodies of the operations on numbers (C14.1)."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from recado.domain.access.scopes import PII
from recado.domain.core.masking import mask_phone
from recado.domain.senders.number import PER_DAY_BOUNDS, PER_SECOND_BOUNDS, MessagingTier, NumberStatus, QualityRating
from recado.http.api.call import Call
from recado.http.api.models import ApiModel, PatchModel, Timestamp, unset
from recado.http.api.paging import CountedPage, PageQuery
from recado.http.routes.core.emails import Email
from recado.http.routes.core.views import view_with
from recado.http.routes.core.web_addresses import WebAddress
from recado.http.wire.reply import Reply
from recado.storage.senders.numbers import Number

NameStatus = Literal["approved", "pending", "rejected", "expired", "none"]
Removal = Literal["PARTNER_REMOVED", "PARTNER_APP_UNINSTALLED"]
ProviderId = Annotated[str, Field(min_length=1, max_length=128)]
Secret = Annotated[str, Field(min_length=1, max_length=4096)]
PerSecond = Annotated[int, Field(ge=PER_SECOND_BOUNDS[0], le=PER_SECOND_BOUNDS[1])]
PerDay = Annotated[int, Field(ge=PER_DAY_BOUNDS[0], le=PER_DAY_BOUNDS[1])]


class NumberQuery(PageQuery):
    """Filters of the list of numbers."""

    status: NumberStatus | None = None
    quality_rating: QualityRating | None = None


class RateLimitIn(PatchModel):
    """The pace of a number; what is absent stays as it is, or takes its default on a create."""

    per_second: PerSecond = unset()
    per_day: PerDay = unset()


class Profile(PatchModel):
    """What people see of the number; `null` clears a field."""

    about: Annotated[str, Field(max_length=512)] | None = None
    address: Annotated[str, Field(max_length=256)] | None = None
    email: Email | None = None
    website: WebAddress | None = None
    vertical: Annotated[str, Field(max_length=64)] | None = None
    profile_picture_url: WebAddress | None = None

    def merged(self, current: Mapping[str, str]) -> dict[str, str]:
        """The profile `current` with what the caller sent, by the names of the interface."""
        sent = self.model_dump(by_alias=True, exclude_unset=True)
        return {name: value for name, value in {**current, **sent}.items() if value is not None}


class NumberCreate(ApiModel):
    """A number to register. `accessToken` is stored encrypted and never returned; in test it is not kept."""

    phone_number_id: ProviderId
    business_account_id: ProviderId
    display_phone: Annotated[str, Field(max_length=64, description="E.164.", examples=["+15550102030"])]
    access_token: Secret | None = None
    byo: Annotated[bool, Field(description="Set by the installation's administrator alone: true is refused.")] = False
    rate_limit: RateLimitIn | None = None
    profile: Profile | None = None


class NumberPatch(PatchModel):
    """What to change about a number. A change of the profile goes to the provider first."""

    rate_limit: RateLimitIn = unset()
    profile: Profile | None = None
    access_token: Secret | None = None


class NumberAdminPatch(PatchModel):
    """What the installation's administrator decides of a number. `byo`: the customer pays the provider itself."""

    byo: bool = unset()


class RateLimit(ApiModel):
    """The pace that the owner allows."""

    per_second: int
    per_day: int


class NumberMeta(ApiModel):
    """What the provider says of the number's name and of our access to it."""

    verified_name: str | None = None
    byo: bool
    name_status: NameStatus | None = None
    partner_removed_at: Timestamp | None
    partner_removed_reason: Removal | None


class ProfileOut(ApiModel):
    """What people see of the number."""

    about: str | None = None
    address: str | None = None
    email: str | None = None
    website: str | None = None
    vertical: str | None = None
    profile_picture_url: str | None = None


class NumberOut(ApiModel):
    """A number. `displayPhone` is masked without the scope `pii:full`."""

    id: str
    organization_id: str
    phone_number_id: str
    business_account_id: str
    display_phone: str
    status: NumberStatus
    quality_rating: QualityRating
    messaging_tier: MessagingTier
    rate_limit: RateLimit
    meta: NumberMeta
    profile: ProfileOut
    last_provider_sync_at: Timestamp | None
    created_at: Timestamp
    updated_at: Timestamp


class NumberPage(CountedPage[NumberOut]):
    """Numbers, newest first."""


def _meta(number: Number, _: bool) -> dict[str, Any]:
    known = {"verifiedName": number.verified_name, "nameStatus": number.name_status}
    return {
        "byo": number.byo,
        "partnerRemovedAt": number.partner_removed_at,
        "partnerRemovedReason": number.partner_removed_reason,
        **{name: value for name, value in known.items() if value is not None},
    }


# In full: with its phone in the clear.
number_view = view_with(
    Number,
    NumberOut,
    display_phone=lambda number, full: number.display_phone if full else mask_phone(number.display_phone),
    rate_limit=lambda number, _: {"perSecond": number.per_second, "perDay": number.per_day},
    meta=_meta,
)


def number_reply(call: Call, number: Number, status: int = 200) -> Reply:
    """The number for this caller; an idempotency key keeps it unmasked and masks it again for anyone who repeats."""
    return Reply(
        status,
        number_view(number, call.can(PII)),
        revision=number.revision,
        stored=number_view(number, True) if call.method == "POST" else None,
    )


async def number_replay(call: Call, status: int, body: Any) -> Reply:
    """A kept number as this caller may see it (C6.2)."""
    if not call.can(PII):
        body = {**body, "displayPhone": mask_phone(body["displayPhone"])}
    return Reply(status, body)
