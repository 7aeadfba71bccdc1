"""What callers send to POST /messages/bulk, and a batch as they see it (C15.5)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, NotRequired

from pydantic import ConfigDict, Field
from typing_extensions import TypedDict

from recado.domain.batches.batch import MAX_RECIPIENTS, BatchStatus
from recado.domain.core.errors import FieldError
from recado.domain.messages.message import Priority
from recado.http.api.models import ApiModel, Timestamp
from recado.http.api.paging import CountedPage, PageQuery, PeriodQuery
from recado.http.routes.messages.message_models import (
    Id,
    MessageType,
    Metadata,
    Payload,
    Ttl,
    Variables,
    missing_to_send,
)


class _Recipient(TypedDict):
    """One recipient; a dict and no model, because there may be ten thousand."""

    __pydantic_config__ = ConfigDict(strict=True, str_strip_whitespace=True, extra="ignore", hide_input_in_errors=True)  # type: ignore[misc]

    to: NotRequired[Annotated[str | None, Field(max_length=64, examples=["+5511987654321"])]]
    contactId: NotRequired[Id | None]
    templateVars: NotRequired[Variables | None]
    metadata: NotRequired[Metadata]


_RecipientList = Annotated[list[_Recipient], Field(min_length=1, max_length=MAX_RECIPIENTS, fail_fast=True)]


class CreateBatch(ApiModel):
    """The body of POST /messages/bulk: what the messages share, and one audience.

    `templateVars` and `metadata` are those of recipients who have none of their own.
    """

    channel: Literal["chatapp", "sms", "rcs"] = "chatapp"
    name: Annotated[str, Field(min_length=1, max_length=120)] | None = None
    number_id: Id | None = None
    type: MessageType
    template_id: Id | None = None
    template_vars: Variables | None = None
    payload: Payload = None
    priority: Priority = Priority.BULK
    recipients: _RecipientList | None = None
    list_id: Id | None = None
    segment_id: Id | None = None
    campaign_id: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    metadata: Metadata = None
    scheduled_at: Timestamp | None = None
    ttl_seconds: Ttl | None = None

    @classmethod
    def missing_beside(cls, document: Mapping[str, Any]) -> list[FieldError]:
        return missing_to_send(document)


class Totals(ApiModel):
    """Where messages stand: each accepted one in one of the counts from `queued` on, which holds `sending` too."""

    requested: int
    accepted: int
    skipped: int
    queued: int
    sent: int
    delivered: int
    read: int
    failed: int
    archived: int


class RecipientError(ApiModel):
    """Why a recipient was left out. `path` points into the body."""

    path: str
    code: str
    message: str


class BatchOut(ApiModel):
    """A batch; fields without value are absent."""

    id: str
    organization_id: str
    env: Literal["live", "test"]
    name: str | None = None
    channel: Literal["chatapp", "sms", "rcs"]
    number_id: str | None = None
    template_id: str | None = None
    campaign_id: str | None = None
    status: BatchStatus
    pause_reason: (
        Annotated[Literal["no_balance"], Field(description="Present while it is paused and no caller paused it.")]
        | None
    ) = None
    totals: Totals
    skipped_reasons: dict[str, int]
    errors: list[RecipientError]
    held_coins: int
    charged_coins: int
    created_by_id: str | None = None
    created_at: datetime
    scheduled_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None


class BatchPage(CountedPage[BatchOut]):
    """Batches, newest first."""


class BatchQuery(PageQuery, PeriodQuery):
    """Filters of GET /v2/batches. A period holds what was created in [from, to)."""

    status: BatchStatus | None = None
    campaign_id: str | None = None
