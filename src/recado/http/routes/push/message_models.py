"""Bodies and views of push messages (C22.3)."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from recado.domain.core.errors import FieldError, Problem
from recado.domain.core.web_addresses import is_web_address, opens
from recado.domain.push.device import LONGEST_TOKEN, PLATFORMS
from recado.domain.push.message import (
    ALL_OPT_IN,
    MOST_TOKENS,
    DispatchStatus,
    PushContent,
    PushStatus,
    RateKind,
)
from recado.http.api.models import BLANK_IS_NONE, ApiModel, Timestamp
from recado.http.api.paging import CursorPage, CursorQuery, PeriodQuery
from recado.http.routes.messages.message_models import Metadata
from recado.http.routes.push.app_models import Platform, Platforms
from recado.services.push.sends import PushPreview
from recado.storage.push.audiences import Reach
from recado.storage.push.messages import PushCounts, PushDispatch, PushMessage

Origin = Literal["composer", "api", "automation"]


def _deep_link(text: str) -> str:
    if not opens(text):
        raise PydanticCustomError("invalid", "must be a link with a scheme, but for javascript, data and file")
    return text


def _image_url(text: str) -> str:
    if not is_web_address(text) or text[:6].lower() != "https:" or not text.isprintable():
        raise PydanticCustomError("invalid", "must be an https URL")
    return text


Link = Annotated[str, Field(max_length=2_048), AfterValidator(_deep_link)]
ImageUrl = Annotated[str, Field(max_length=2_048), AfterValidator(_image_url)]
DeviceToken = Annotated[str, Field(min_length=1, max_length=LONGEST_TOKEN)]
Segment = Annotated[str, Field(max_length=64, examples=[ALL_OPT_IN])]
Tokens = Annotated[list[DeviceToken], Field(max_length=MOST_TOKENS, fail_fast=True)]


class PushAction(ApiModel):
    """A button."""

    label: Annotated[str, Field(min_length=1, max_length=40)]
    link: Link | None = None


Actions = Annotated[list[PushAction], Field(max_length=3)]


class _Audience(ApiModel):
    """Whom it goes to: exactly one of `segment` and `tokenIds`."""

    platforms: Platforms
    segment: Segment | None = None
    token_ids: Annotated[Tokens | None, Field(description="Ids of devices (`dev_`), or their tokens.")] = None

    def refuse_audience(self, status: int) -> None:
        """AUDIENCE_INVALID for neither or both."""
        if (self.segment is None) == (self.token_ids is None):
            sentence = "Send exactly one of `segment` and `tokenIds`."
            paths = [""] if self.segment is None else ["/segment", "/tokenIds"]
            errors = [FieldError(path, "AUDIENCE_INVALID", sentence) for path in paths]
            raise Problem("AUDIENCE_INVALID", sentence, errors=errors, status=status)


class CreatePush(_Audience):
    """A notification to many devices. Without anything that shows it is silent: `data` alone, which the app reads."""

    title: Annotated[str | None, Field(max_length=100), BLANK_IS_NONE] = None
    body: Annotated[str | None, Field(max_length=1_000), BLANK_IS_NONE] = None
    deep_link: Link | None = None
    image_url: ImageUrl | None = None
    actions: Actions = Field(default_factory=list)
    data: Metadata = None
    scheduled_at: Timestamp | None = None
    campaign_id: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    metadata: Metadata = None

    @model_validator(mode="after")
    def _shows_or_tells(self) -> Self:
        if self.content.silent:
            if not self.data:
                raise PydanticCustomError("invalid", "needs title and body, or data alone")
        elif self.title is None or self.body is None:
            raise PydanticCustomError("invalid", "needs both title and body where anything is shown")
        return self

    @property
    def content(self) -> PushContent:
        """What devices get."""
        return PushContent(
            title=self.title, body=self.body, deep_link=self.deep_link, image_url=self.image_url,
            actions=[action.model_dump(exclude_none=True) for action in self.actions], data=self.data,
        )  # fmt: skip


class PreviewPush(_Audience):
    """The part of a send that its reach and price depend on. It stands for one that shows something."""

    image_url: ImageUrl | None = None
    actions: Actions = Field(default_factory=list)

    @property
    def content(self) -> PushContent:
        """As far as the price depends on it."""
        return PushContent(title="", body="", image_url=self.image_url, actions=[{} for _ in self.actions])


class PushQuery(CursorQuery, PeriodQuery):
    """Filters of GET /v2/push/messages."""

    misordered: ClassVar[str] = "VALIDATION_ERROR"
    status: list[PushStatus] | None = None
    origin: list[Origin] | None = None


class ReachOut(ApiModel):
    """Devices of a platform."""

    reach: int


class ReachByPlatform(ApiModel):
    """By platform."""

    ios: ReachOut
    android: ReachOut
    web: ReachOut


class HeldCoins(ApiModel):
    """What is held until devices have it."""

    held_coins: int


class CreatedPush(ApiModel):
    """The message, once its queue is built."""

    id: str
    status: PushStatus
    env: str
    origin: Origin
    rate_kind: RateKind
    unit_coins: int
    reach: int
    breakdown: ReachByPlatform
    scheduled_at: Timestamp | None = None
    quiet_deferred_to: Annotated[Timestamp | None, Field(description="When it leaves, after the quiet hours.")] = None
    billing: HeldCoins | None = None
    created_at: Timestamp
    replayed: bool


class PushMetrics(ApiModel):
    """`delivered`: its provider took it; `opened`: as its app told."""

    reach: int
    delivered: int
    opened: int
    failed: int
    unregistered: int


class MetricsByPlatform(ApiModel):
    """By platform."""

    ios: PushMetrics
    android: PushMetrics
    web: PushMetrics


class _PushBase(ApiModel):
    id: str
    status: PushStatus
    env: str
    origin: Origin
    rate_kind: RateKind
    unit_coins: int
    title: str | None = None
    body: str | None = None
    platforms: list[Platform]
    deep_link: str | None = None
    image_url: str | None = None
    actions: list[PushAction]
    data: Metadata = None
    segment: str | None = None
    campaign_id: str | None = None
    metadata: Metadata = None
    metrics: PushMetrics
    charged_coins: int
    scheduled_at: Timestamp | None = None
    quiet_deferred_to: Timestamp | None = None
    started_at: Timestamp | None = None
    finished_at: Timestamp | None = None
    created_at: Timestamp


class PushItem(_PushBase):
    """A push message in a list."""


class PushModel(_PushBase):
    """A push message."""

    breakdown: MetricsByPlatform


class PushPage(CursorPage[PushItem]):
    """Push messages, newest first."""


class PushPreviewOut(ApiModel):
    """What it would come to."""

    reach: int
    breakdown: ReachByPlatform
    rate_kind: RateKind
    unit_coins: int
    total_coins: int
    charged: bool
    quiet_deferred_to: Timestamp | None = None


class DispatchOut(ApiModel):
    """A device of a message."""

    id: str
    device_id: str
    platform: Platform
    status: DispatchStatus
    opened_at: Timestamp | None = None


class DispatchPage(CursorPage[DispatchOut]):
    """The devices of a message."""


class DispatchOpenedOut(ApiModel):
    """`counted`: it was the first time, and its device has the notification."""

    id: str
    counted: bool
    opened_at: Timestamp | None = None


def _reach_view(reach: Reach) -> dict[str, Any]:
    return {platform: {"reach": reach.get(platform, 0)} for platform in PLATFORMS}


def _without_none(view: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in view.items() if value is not None}


def created_view(message: PushMessage, reach: Reach, *, replayed: bool) -> dict[str, Any]:
    """The answer to a send."""
    held = {"heldCoins": message.reach * message.unit_coins} if message.billed else None
    return _without_none(
        {
            "id": message.id,
            "status": message.status.value,
            "env": message.env,
            "origin": message.origin,
            "rateKind": message.rate_kind.value,
            "unitCoins": message.unit_coins,
            "reach": message.reach,
            "breakdown": _reach_view(reach),
            "scheduledAt": message.scheduled_at,
            "quietDeferredTo": message.quiet_deferred_to,
            "billing": held,
            "createdAt": message.created_at,
            "replayed": replayed,
        }
    )


def preview_view(found: PushPreview) -> dict[str, Any]:
    """The answer to a preview."""
    reach = sum(found.reach.values())
    return _without_none(
        {
            "reach": reach,
            "breakdown": _reach_view(found.reach),
            "rateKind": found.rate_kind,
            "unitCoins": found.unit_coins,
            "totalCoins": reach * found.unit_coins,
            "charged": found.charged,
            "quietDeferredTo": found.quiet_deferred_to,
        }
    )


_NONE = dict.fromkeys(("reach", "delivered", "opened", "failed", "unregistered"), 0)


def _metrics(counts: PushCounts) -> dict[str, int]:
    return {name: getattr(counts, name) for name in _NONE}


def push_view(message: PushMessage, counts: Sequence[PushCounts], *, breakdown: bool) -> dict[str, Any]:
    """A message as it is read. `breakdown`: also by platform."""
    by_platform: Mapping[str, dict[str, int]] = {each.platform: _metrics(each) for each in counts}
    total = {name: sum(each[name] for each in by_platform.values()) for name in _NONE}
    view = {
        "id": message.id,
        "status": message.status.value,
        "env": message.env,
        "origin": message.origin,
        "rateKind": message.rate_kind.value,
        "unitCoins": message.unit_coins,
        "title": message.title,
        "body": message.body,
        "platforms": list(message.platforms),
        "deepLink": message.deep_link,
        "imageUrl": message.image_url,
        "actions": list(message.actions),
        "data": message.data,
        "segment": message.segment,
        "campaignId": message.campaign_id,
        "metadata": message.metadata,
        "metrics": total,
        "chargedCoins": total["delivered"] * message.unit_coins,
        "scheduledAt": message.scheduled_at,
        "quietDeferredTo": message.quiet_deferred_to,
        "startedAt": message.started_at,
        "finishedAt": message.finished_at,
        "createdAt": message.created_at,
    }
    if breakdown:
        view["breakdown"] = {platform: by_platform.get(platform, _NONE) for platform in PLATFORMS}
    return _without_none(view)


def dispatch_view(dispatch: PushDispatch, dispatch_id: str) -> dict[str, Any]:
    """A device of a message."""
    return _without_none(
        {
            "id": dispatch_id,
            "deviceId": dispatch.device_id,
            "platform": dispatch.platform,
            "status": dispatch.status,
            "openedAt": dispatch.opened_at,
        }
    )
