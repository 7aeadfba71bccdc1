"""Bodies of the operations on API keys (C24.4)."""

from ipaddress import ip_network
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, Field, WithJsonSchema

from recado.domain.access.scopes import ALL_SCOPES, KEY_SCOPES
from recado.http.api.models import ApiModel, PatchModel, Timestamp, most_members, one_of, unset
from recado.http.api.paging import CountedPage
from recado.http.routes.core.views import view_with
from recado.storage.access.api_keys import ApiKey

LONGEST_GRACE = 604_800  # seconds: a week


def _network(text: str) -> str:
    try:
        return str(ip_network(text, strict=False))
    except ValueError:
        raise ValueError("must be an IP address or a range in CIDR form, such as 203.0.113.0/24") from None


Name = Annotated[str, Field(min_length=1, max_length=80)]
Scope = Annotated[
    str,
    one_of(sorted(KEY_SCOPES), elsewhere=ALL_SCOPES),
    WithJsonSchema({"type": "string", "enum": sorted(KEY_SCOPES)}),
]
Scopes = Annotated[list[Scope], Field(min_length=1, max_length=100)]
Networks = Annotated[list[Annotated[str, Field(max_length=64), AfterValidator(_network)]], Field(max_length=50)]
RateClass = Literal["read", "write", "send", "bulk", "media", "device"]


class ClassLimit(ApiModel):
    """A token bucket: `perSecond` tokens flow in, at most `capacity` gather."""

    per_second: float = Field(gt=0.01, le=100_000)
    capacity: int = Field(ge=1, le=1_000_000)


class ApiKeyCreate(ApiModel):
    """A new key. It holds at most the scopes of the credential that makes it."""

    name: Name
    scopes: Scopes
    expires_at: Timestamp | None = None
    allowed_ips: Networks | None = None
    rate_limits: Annotated[dict[RateClass, ClassLimit], most_members(len(get_args(RateClass)))] | None = None


class ApiKeyPatch(PatchModel):
    """What to change about a key; `expiresAt` and `allowedIps` can be cleared."""

    name: Name = unset()
    scopes: Scopes = unset()
    expires_at: Timestamp | None = None
    allowed_ips: Networks | None = None


class Rotation(ApiModel):
    """How long the former token still holds."""

    grace_seconds: int = Field(86_400, ge=0, le=LONGEST_GRACE)


class ApiKeyOut(ApiModel):
    """A key, without its token."""

    id: str
    name: str
    env: Literal["live", "test"]
    prefix: str = Field(description="The first 13 characters of the token.")
    scopes: list[str]
    status: Literal["active", "expired", "revoked"]
    expires_at: Timestamp | None = None
    allowed_ips: list[str]
    rate_limits: dict[str, ClassLimit] | None = None
    created_by_id: str | None = None
    last_used_at: Timestamp | None = None
    rotated_at: Timestamp | None = None
    previous_valid_until: Timestamp | None = None
    created_at: Timestamp


class IssuedKey(ApiKeyOut):
    """A key with its new token, which is shown once; a repeat under the same Idempotency-Key leaves it out."""

    token: str | None = None


class ApiKeyPage(CountedPage[ApiKeyOut]):
    """Keys of the environment, newest first."""


# By the present.
key_view = view_with(ApiKey, ApiKeyOut, scopes=lambda key, _: sorted(key.scopes), status=ApiKey.status)
