"""Push messages: their states, those of their devices, and what kind of unit a content is (C22.3)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final

from recado.domain.core.machine import Machine

PUSH: Final = "push"
ALL_OPT_IN: Final = "all_opt_in"
LIFETIME: Final = timedelta(hours=24)  # after which nothing leaves any more
MOST_TOKENS: Final = 10_000
MOST_ATTEMPTS: Final = 3
REFUSALS: Final = frozenset({"unregistered", "no_credentials", "too_long", "invalid_token", "unauthorized"})
"""Codes by which devices fail, besides those of every channel (C15.4)."""


class RateKind(StrEnum):
    """What one device costs by."""

    SIMPLE = "simple"
    RICH = "rich"
    SILENT = "silent"

    @property
    def price_kind(self) -> str:
        """As prices name it."""
        return f"push_{self.value}"


class PushStatus(StrEnum):
    """Of a message."""

    SCHEDULED = "scheduled"
    QUEUED = "queued"
    SENDING = "sending"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"


class PushEvent(StrEnum):
    """What moves a message. The comments name who does."""

    DUE = "time reached"  # the poller
    DEPARTED = "first device row leaves"  # a lane
    DELIVERED = "every row final, one delivered"  # a lane; or a day has passed
    NOT_DELIVERED = "every row final, none delivered"  # likewise
    CANCELED = "canceled"  # a caller
    DEFERRED = "goes on in quiet hours"  # who ends the suspension of its organization


_S = PushStatus
_E = PushEvent

PUSH_MACHINE: Final = Machine(
    "push message",
    {
        (_S.SCHEDULED, _E.DUE): _S.QUEUED,
        (_S.SCHEDULED, _E.CANCELED): _S.CANCELED,
        (_S.QUEUED, _E.DEPARTED): _S.SENDING,
        (_S.QUEUED, _E.CANCELED): _S.CANCELED,
        (_S.QUEUED, _E.DEFERRED): _S.SCHEDULED,
        (_S.QUEUED, _E.NOT_DELIVERED): _S.FAILED,
        (_S.SENDING, _E.DELIVERED): _S.COMPLETED,
        (_S.SENDING, _E.NOT_DELIVERED): _S.FAILED,
    },
    initial={"for later": _S.SCHEDULED, "for now": _S.QUEUED},
)


class DispatchStatus(StrEnum):
    """Of one device of a message."""

    QUEUED = "queued"
    DELIVERED = "delivered"
    FAILED = "failed"
    UNREGISTERED = "unregistered"


class DispatchEvent(StrEnum):
    """What moves a device of a message."""

    ACCEPTED = "provider accepted"
    REFUSED = "refused, skipped or expired"
    UNREGISTERED = "token unregistered"


DISPATCH_MACHINE: Final = Machine(
    "push dispatch",
    {
        (DispatchStatus.QUEUED, DispatchEvent.ACCEPTED): DispatchStatus.DELIVERED,
        (DispatchStatus.QUEUED, DispatchEvent.REFUSED): DispatchStatus.FAILED,
        (DispatchStatus.QUEUED, DispatchEvent.UNREGISTERED): DispatchStatus.UNREGISTERED,
    },
    initial={"audience fixed": DispatchStatus.QUEUED},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PushContent:
    """What a device shows, and what only its app reads. `actions`: objects of `label` and `link`."""

    title: str | None = None
    body: str | None = None
    deep_link: str | None = None
    image_url: str | None = None
    actions: Sequence[Mapping[str, Any]] = ()
    data: Mapping[str, Any] | None = None

    @property
    def silent(self) -> bool:
        """Whether it shows nothing."""
        return self.title is None and self.body is None and self.image_url is None and not self.actions

    @property
    def rate_kind(self) -> RateKind:
        if self.silent:
            return RateKind.SILENT
        return RateKind.RICH if self.image_url is not None or self.actions else RateKind.SIMPLE
