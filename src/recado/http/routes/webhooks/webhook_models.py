"""Bodies and views of webhook subscriptions and their deliveries (C23.1)."""

from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, WithJsonSchema, field_validator

from recado.channels.webhooks.webhook_signing import header_key, header_value
from recado.domain.core.events import EVENT_NAMES, EVERY
from recado.http.api.models import BLANK_IS_NONE, ApiModel, PatchModel, Timestamp, one_of, unset
from recado.http.api.paging import CursorQuery, PageQuery, PeriodQuery

MASK = "********"
MOST_HEADERS = 10
_TELLTALE = ("token", "key", "secret")

EventName = Annotated[str, WithJsonSchema({"type": "string", "enum": list(EVENT_NAMES)})]


def _one_by_one(events: list[str]) -> list[str]:
    if EVERY in events and len(events) > 1:
        raise ValueError("must hold nothing else beside *, which means every event")
    return list(dict.fromkeys(events))


Event = Annotated[EventName, one_of(EVENT_NAMES)]
Taken = Annotated[str, one_of([*EVENT_NAMES, EVERY]), WithJsonSchema({"type": "string", "enum": [*EVENT_NAMES, EVERY]})]
Events = Annotated[list[Taken], Field(min_length=1, max_length=len(EVENT_NAMES)), AfterValidator(_one_by_one)]
Url = Annotated[str, Field(min_length=1, max_length=2_048), WithJsonSchema({"type": "string", "format": "uri"})]
Description = Annotated[str, Field(max_length=200), BLANK_IS_NONE]


class Header(ApiModel):
    """A header sent with every delivery."""

    key: Annotated[str, Field(min_length=1, max_length=64), AfterValidator(header_key)]
    value: Annotated[str, Field(max_length=1_024), AfterValidator(header_value)]


def _each_once(headers: list[Header] | None) -> list[Header] | None:
    names = [header.key.lower() for header in headers or ()]
    if len(set(names)) < len(names):
        raise ValueError("must hold each key only once")
    return headers


Headers = Annotated[list[Header], Field(max_length=MOST_HEADERS), AfterValidator(_each_once)]


class _Retry(ApiModel):
    """How often and after how long a delivery is tried again."""

    max_attempts: int = Field(8, ge=1, le=15)
    backoff_seconds: int = Field(30, ge=1, le=3_600)


USUAL_RETRY: Final = _Retry()


class RetryPatch(PatchModel):
    """What to change about the retries."""

    max_attempts: Annotated[int, Field(ge=1, le=15)] = unset()
    backoff_seconds: Annotated[int, Field(ge=1, le=3_600)] = unset()


class WebhookCreate(ApiModel):
    """A new subscription. `includePii` needs the scope `pii:full`."""

    url: Url
    events: Events
    description: Description | None = None
    headers: Headers | None = None
    retry: _Retry | None = None
    include_pii: bool = False


class WebhookPatch(PatchModel):
    """What to change. A header value `********` keeps the one that is stored under its key."""

    url: Url = unset()
    events: Events = unset()
    description: Description | None = None
    headers: Headers | None = None
    retry: RetryPatch = unset()
    include_pii: bool = unset()
    status: Literal["active", "paused"] = unset()


class SecretRotation(ApiModel):
    """How long the former secret signs beside the new one."""

    grace_hours: int = Field(24, ge=0, le=168)


class WebhookTest(ApiModel):
    """Which event the test shows; by default the first one that the subscription takes."""

    event: Event | None = None


class WebhookReplay(ApiModel):
    """Which events are delivered once more: those of [from, to), at most 7 days, not older than 30."""

    from_: Timestamp = Field(alias="from")
    to: Timestamp
    events: Annotated[list[Event], Field(min_length=1, max_length=len(EVENT_NAMES))] | None = None
    only_failed: bool = True

    @field_validator("events")
    @classmethod
    def once(cls, events: list[str] | None) -> list[str] | None:
        return None if events is None else list(dict.fromkeys(events))


class WebhookQuery(PageQuery):
    """Filters of the list."""

    status: Literal["active", "paused", "failing", "revoked"] | None = None
    event: Annotated[Event | None, Field(description="Subscriptions that take this event.")] = None


class DeliveryQuery(CursorQuery, PeriodQuery):
    """Filters of deliveries; `from` is included, `to` is not."""

    status: Literal["pending", "delivered", "dropped"] | None = None
    event: Event | None = None
    message_id: Annotated[
        str | None,
        Field(min_length=1, max_length=64, description="Those that tell of this message: of its newest 1,000 events."),
    ] = None

    @property
    def searches(self) -> bool:
        """Of a message, each event and each of its replays is looked at."""
        return super().searches or self.message_id is not None


def masks(key: str) -> bool:
    """Whether the value of a header with that key is a credential, by its name."""
    name = key.lower()
    return name == "authorization" or any(word in name for word in _TELLTALE)
