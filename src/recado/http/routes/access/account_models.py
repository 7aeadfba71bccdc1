"""Bodies of the operations on accounts and sessions (C24.2, C24.3)."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints, WithJsonSchema

from recado.domain.access.scopes import ALL_SCOPES
from recado.http.api.models import ApiModel, PatchModel, Timestamp, one_of, unset
from recado.http.api.paging import CountedPage
from recado.http.routes.core.emails import Email
from recado.http.routes.core.views import view_of
from recado.storage.access.accounts import UserAccount

Name = Annotated[str, Field(min_length=1, max_length=120)]
Scope = Annotated[str, one_of(sorted(ALL_SCOPES)), WithJsonSchema({"type": "string", "enum": sorted(ALL_SCOPES)})]
Scopes = Annotated[list[Scope], Field(max_length=100, description="Beyond those of the role.")]
RoleName = Literal["owner", "admin", "operator", "analyst"]
# A password is taken as it is: its blanks belong to it.
NewPassword = Annotated[str, StringConstraints(strip_whitespace=False, min_length=12, max_length=1024)]
Password = Annotated[str, StringConstraints(strip_whitespace=False, min_length=1, max_length=1024)]


class AccountCreate(ApiModel):
    """A person to invite. It holds at most the scopes of the account that invites."""

    name: Name
    email: Email
    role: RoleName
    extra_scopes: Scopes = Field(default_factory=list)


class AccountPatch(PatchModel):
    """What to change about an account."""

    name: Name = unset()
    role: RoleName = unset()
    extra_scopes: Scopes = unset()


class InviteAcceptance(ApiModel):
    """What the invited person sends."""

    token: Annotated[str, Field(min_length=1, max_length=128)]
    password: NewPassword


class AccountOut(ApiModel):
    """An account."""

    id: str
    name: str
    email: str
    role: RoleName
    extra_scopes: list[str]
    status: Literal["invited", "active", "disabled"]
    last_login_at: Timestamp | None = None
    created_at: Timestamp


class InvitedAccount(AccountOut):
    """An account with its invitation, which is shown once; a repeat under the same Idempotency-Key leaves it out."""

    invite_token: str | None = None


class AccountPage(CountedPage[AccountOut]):
    """Accounts of the organization, newest first."""


class SignIn(ApiModel):
    """Who signs in."""

    email: Annotated[str, Field(min_length=1, max_length=254)]
    password: Password


class SessionTokens(ApiModel):
    """One token for each environment."""

    live: str
    test: str


class SessionOut(ApiModel):
    """A session. Its tokens are shown once, and hold until `expiresAt` or until nobody used them for two hours."""

    tokens: SessionTokens
    account: AccountOut
    scopes: Annotated[list[str], Field(description="Those of the role, and the account's own.")]
    expires_at: Timestamp


account_view = view_of(UserAccount, AccountOut, extra_scopes=lambda account: sorted(account.extra_scopes))
