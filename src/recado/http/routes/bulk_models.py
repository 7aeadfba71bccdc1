"""What callers send to POST /messages/bulk, and a batch as they see it (C15.5)."""

from datetime import datetime
from typing import Annotated, Any, Literal, NotRequired

from pydantic import ConfigDict, Field, PlainValidator
from typing_extensions import TypedDict

from recado.domain.batch import MAX_RECIPIENTS, BatchStatus
from recado.domain.message import MAX_TTL, MIN_TTL, Priority
from recado.http.models import ApiModel, QueryInt, Timestamp
from recado.http.paging import MOST_SKIPPED_MESSAGES, Page, PageQuery
from recado.http.routes.message_models import MessageType, payload_of_type
from recado.http.routes.message_payloads import AnyPayload

_Id = Annotated[str, Field(min_length=1, max_length=64)]
_Variables = Annotated[list[Annotated[str, Field(max_length=1024)]], Field(max_length=60)]
_METADATA = {
    "type": ["object", "null"],
    "maxProperties": 20,
    "additionalProperties": {"type": ["string", "number", "boolean"]},
}
_Metadata = Annotated[Any, Field(json_schema_extra=_METADATA)]


class Recipient(TypedDict):
    """One recipient; a dict and no model, because there may be ten thousand."""

    __pydantic_config__ = ConfigDict(strict=True, str_strip_whitespace=True, extra="ignore", hide_input_in_errors=True)  # type: ignore[misc]

    to: NotRequired[Annotated[str | None, Field(max_length=64, examples=["+5511987654321"])]]
    contactId: NotRequired[_Id | None]
    templateVars: NotRequired[_Variables | None]
    metadata: NotRequired[_Metadata]


class CreateBatch(ApiModel):
    """The body of POST /messages/bulk: what the messages share, and one audience.

    `templateVars` and `metadata` are those of recipients who have none of their own.
    """

    channel: Literal["chatapp", "sms", "rcs"] = "chatapp"
    name: Annotated[str, Field(min_length=1, max_length=120)] | None = None
    number_id: _Id | None = None
    type: MessageType
    template_id: _Id | None = None
    template_vars: _Variables | None = None
    payload: Annotated[
        Any, PlainValidator(payload_of_type, json_schema_input_type=AnyPayload | None), Field(validate_default=True)
    ] = None
    priority: Priority = Priority.BULK
    recipients: Annotated[list[Recipient], Field(min_length=1, max_length=MAX_RECIPIENTS)] | None = None
    list_id: _Id | None = None
    segment_id: _Id | None = None
    campaign_id: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    metadata: _Metadata = None
    scheduled_at: Timestamp | None = None
    ttl_seconds: Annotated[int, Field(ge=int(MIN_TTL.total_seconds()), le=int(MAX_TTL.total_seconds()))] | None = None


class BatchTotals(ApiModel):
    """How many of the recipients stand where. `queued` holds what is being sent too."""

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
    totals: BatchTotals
    skipped_reasons: dict[str, int]
    errors: list[RecipientError]
    held_coins: int
    charged_coins: int
    created_by_id: str | None = None
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None


class BatchPage(Page[BatchOut]):
    """Batches, newest first."""


class BatchQuery(PageQuery):
    """Filters of GET /v2/batches. A period holds what was created in [from, to)."""

    skip: Annotated[QueryInt, Field(ge=0, le=MOST_SKIPPED_MESSAGES, description="How many items to leave out.")] = 0
    status: BatchStatus | None = None
    campaign_id: str | None = None
    from_: Annotated[Timestamp | None, Field(alias="from")] = None
    to: Timestamp | None = None
