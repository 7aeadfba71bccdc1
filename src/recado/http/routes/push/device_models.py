"""Bodies and views of devices (C22.2)."""

from collections.abc import Callable
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from recado.domain.core.base64url import from_base64url
from recado.domain.core.errors import Problem
from recado.domain.core.masking import mask_email, mask_phone
from recado.domain.push.device import (
    LONGEST_TEXT,
    LONGEST_TOKEN,
    LONGEST_TOPIC,
    MOST_TOPICS,
    PLATFORMS,
    WEB,
    DeviceStatus,
)
from recado.http.api.models import BLANK_IS_NONE, ApiModel, Timestamp
from recado.http.api.paging import CountedPage, PageQuery
from recado.http.routes.core.views import view_of, view_with
from recado.http.routes.push.app_models import Platform
from recado.services.push.registrations import Registered
from recado.storage.push.devices import PlatformSum, PushDevice

POINT_BYTES, AUTH_BYTES = 65, 16  # of an uncompressed point on P-256, of the secret beside it (RFC 8291)

Token = Annotated[str, Field(min_length=1, max_length=LONGEST_TOKEN)]
Text = Annotated[str, Field(max_length=LONGEST_TEXT), BLANK_IS_NONE]
Id = Annotated[str, Field(max_length=64)]
Topic = Annotated[str, Field(min_length=1, max_length=LONGEST_TOPIC, pattern=r"^[^\x00-\x1f]*$")]


class DeviceRegister(ApiModel):
    """What an app says of a device at each start. What is left out stays as it is."""

    app_id: Id
    token: Token
    platform: Platform | None = None
    p256dh: Annotated[str | None, Field(alias="p256dh", max_length=128)] = None
    auth: Annotated[str | None, Field(max_length=64)] = None
    external_id: Text | None = None
    contact_id: Id | None = None
    user_name: Text | None = None
    user_email: Text | None = None
    user_phone: Text | None = None
    device_name: Text | None = None
    topics: Annotated[list[Topic] | None, Field(max_length=MOST_TOPICS)] = None
    opted_in: bool | None = None

    @model_validator(mode="after")
    def _has_both_keys(self) -> Self:
        given = (self.p256dh is not None) + (self.auth is not None)
        if given == 1 or (self.platform == WEB and not given):
            raise Problem("WEB_PUSH_KEYS_REQUIRED", "A browser is registered with `p256dh` and `auth`.")
        if self.p256dh is not None and not _has_bytes(self.p256dh, POINT_BYTES):
            raise PydanticCustomError("invalid", "needs as p256dh the 65 bytes of a key, base64url")
        if self.auth is not None and not _has_bytes(self.auth, AUTH_BYTES):
            raise PydanticCustomError("invalid", "needs as auth 16 bytes, base64url")
        return self


class DeviceOptOut(ApiModel):
    """The device that leaves."""

    app_id: Id
    token: Token


class DeviceRegistered(ApiModel):
    """The device as it is now. `created`: nobody had registered its token."""

    id: str
    app_id: str
    platform: Platform
    status: DeviceStatus
    opted_in: bool
    contact_id: str | None = None
    topics: list[str]
    created: bool
    updated_at: Timestamp


class DeviceOptedOut(ApiModel):
    """It gets nothing any more."""

    id: str
    status: Literal["opted_out"]
    opted_out_at: Timestamp


class DeviceQuery(PageQuery):
    """Filters of GET /v2/push/devices."""

    app_id: Id | None = None
    platform: Platform | None = None
    status: DeviceStatus | None = None
    contact_id: Id | None = None


class DeviceOut(ApiModel):
    """A device. Phone and e-mail address are masked without the scope `pii:full`; its token is not shown."""

    id: str
    app_id: str
    platform: Platform
    status: DeviceStatus
    opted_in: bool
    external_id: str | None = None
    contact_id: str | None = None
    user_name: str | None = None
    user_email: str | None = None
    user_phone: str | None = None
    device_name: str | None = None
    topics: list[str]
    opted_out_at: Timestamp | None = None
    created_at: Timestamp
    updated_at: Timestamp


class DevicePage(CountedPage[DeviceOut]):
    """Devices, newest first."""


class DeviceSum(ApiModel):
    """How many devices of a platform stand where."""

    platform: Platform
    registered: int
    opted_out: int
    invalid: int


class DeviceSums(ApiModel):
    """One entry for each platform."""

    items: list[DeviceSum]


def _has_bytes(text: str, length: int) -> bool:
    try:
        return len(from_base64url(text.rstrip("="))) == length
    except ValueError:
        return False


def _opted_in(device: PushDevice) -> bool:
    return device.status is not DeviceStatus.OPTED_OUT


registered_view = view_of(
    Registered,
    DeviceRegistered,
    id=lambda made: made.device.id,
    app_id=lambda made: made.device.app_id,
    platform=lambda made: made.device.platform,
    status=lambda made: made.device.status.value,
    opted_in=lambda made: _opted_in(made.device),
    contact_id=lambda made: made.device.contact_id,
    topics=lambda made: list(made.device.topics),
    updated_at=lambda made: made.device.updated_at,
)
device_view: Callable[[PushDevice, bool], dict[str, Any]] = view_with(
    PushDevice,
    DeviceOut,
    status=lambda device, _: device.status.value,
    opted_in=lambda device, _: _opted_in(device),
    topics=lambda device, _: list(device.topics),
    user_email=lambda device, unmasked: _shown(device.user_email, mask_email, unmasked),
    user_phone=lambda device, unmasked: _shown(device.user_phone, mask_phone, unmasked),
)
"""With whether the caller sees addresses in the clear."""


def _shown(text: str | None, mask: Callable[[str], str], unmasked: bool) -> str | None:
    return text if text is None or unmasked else mask(text)


def sums_view(sums: list[PlatformSum]) -> dict[str, object]:
    """Every platform, also one without a device."""
    known = {each.platform: each for each in sums}
    none = [PlatformSum(platform, 0, 0, 0) for platform in PLATFORMS]
    shown = [known.get(each.platform, each) for each in none]
    return {
        "items": [
            {"platform": s.platform, "registered": s.registered, "optedOut": s.opted_out, "invalid": s.invalid}
            for s in shown
        ]
    }
