"""Bodies of the operations on social accounts (C26)."""

from typing import Annotated

from pydantic import Field

from recado.domain.senders.social_account import Platform, SocialAccountStatus
from recado.http.api.models import ApiModel, PatchModel, Timestamp, unset
from recado.http.api.paging import CountedPage, PageQuery
from recado.http.routes.core.views import view_of
from recado.storage.senders.social_accounts import SocialAccount

ExternalId = Annotated[str, Field(min_length=1, max_length=128, description="The id of the account at its platform.")]
DisplayName = Annotated[str, Field(min_length=1, max_length=120)]
Secret = Annotated[str, Field(min_length=1, max_length=4096)]


class SocialAccountQuery(PageQuery):
    """Filters of the list of accounts."""

    status: SocialAccountStatus | None = None
    platform: Platform | None = None


class SocialAccountCreate(ApiModel):
    """An account to register. `accessToken` is stored encrypted and never returned; in test it is not kept."""

    platform: Annotated[Platform, Field(strict=False)]
    external_account_id: ExternalId
    display_name: DisplayName
    access_token: Secret | None = None


class SocialAccountPatch(PatchModel):
    """What to change about an account. The new token of a connected one goes to the provider first."""

    display_name: DisplayName = unset()
    access_token: Secret | None = None


class SocialAccountOut(ApiModel):
    """A social account."""

    id: str
    organization_id: str
    env: str
    platform: Platform
    external_account_id: str
    display_name: str
    status: SocialAccountStatus
    created_at: Timestamp
    updated_at: Timestamp


class SocialAccountPage(CountedPage[SocialAccountOut]):
    """Social accounts, newest first."""


social_account_view = view_of(SocialAccount, SocialAccountOut)
