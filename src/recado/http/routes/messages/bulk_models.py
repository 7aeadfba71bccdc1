"""What callers send to POST /messages/bulk, and a batch as they see it (C15.5)."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NotRequired, Required

from pydantic import AfterValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from recado.domain.batches.batch import MAX_RECIPIENTS, BatchStatus
from recado.domain.channels.policies import POLICIES
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
    refuse_misfits,
)

if TYPE_CHECKING:
    Channel = str
else:
    Channel = Literal[tuple(dict.fromkeys(("chatapp", "sms", "rcs", *POLICIES)))]
"""Those of the interface, with or without a policy as yet, and all others that have one."""

Placeholders = Annotated[
    dict[Annotated[str, Field(max_length=64)], Annotated[str, Field(max_length=1024)]], Field(max_length=60)
]
_STRICT: Final = ConfigDict(strict=True, str_strip_whitespace=True, extra="ignore", hide_input_in_errors=True)


class TextRecipient(TypedDict):
    """One recipient of a text with placeholders. `variables`: what stands in their place, by their names."""

    __pydantic_config__ = _STRICT  # type: ignore[misc]

    to: NotRequired[Annotated[str | None, Field(max_length=254, examples=["+5511987654321"])]]
    contactId: NotRequired[Id | None]
    variables: NotRequired[Placeholders | None]
    metadata: NotRequired[Metadata]


class _Recipient(TypedDict):
    """One recipient; a dict and no model, because there may be ten thousand."""

    __pydantic_config__ = _STRICT  # type: ignore[misc]

    to: NotRequired[Annotated[str | None, Field(max_length=128, examples=["+5511987654321"])]]
    contactId: NotRequired[Id | None]
    templateVars: NotRequired[Variables | None]
    metadata: NotRequired[Metadata]


_LENGTHS = Field(min_length=1, max_length=MAX_RECIPIENTS, fail_fast=True)


class BatchContent(TypedDict, total=False):
    """The fields of a draft that hold what messages say, and whom they are from."""

    sender_id: Required[str]
    type: Required[str]
    template_id: str | None
    template_vars: Sequence[str] | None
    payload: Mapping[str, Any] | None
    details: Mapping[str, Any] | None


class BatchHead(ApiModel):
    """What the body of every channel begins with."""

    channel: str
    name: Annotated[str, Field(min_length=1, max_length=120)] | None = None


class BatchBody(BatchHead):
    """The body of POST /messages/bulk for one channel: what the messages share, and one audience."""

    priority: Priority = Priority.BULK
    recipients: Annotated[list[Any], _LENGTHS] | None = None
    list_id: Id | None = None
    segment_id: Id | None = None
    campaign_id: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    metadata: Metadata = None
    scheduled_at: Timestamp | None = None
    ttl_seconds: Ttl | None = None

    def shared(self) -> BatchContent:
        """What the messages share, as a draft has it. Raises `Problem` 422 for fields that do not go together."""
        raise NotImplementedError


class TextBatchBody(BatchBody):
    """The same for a channel whose text has placeholders."""

    recipients: Annotated[list[TextRecipient], _LENGTHS] | None = None


MOST_SHARED: Final = 4_096  # characters: they are stored with each message


def check_shared(characters: int) -> None:
    """Raise the finding of what all messages share, where it has too many."""
    if characters > MOST_SHARED:
        raise PydanticCustomError(
            "too_long", "must have at most {most} characters in all", {"most": f"{MOST_SHARED:,}"}
        )


def _few(values: list[str]) -> list[str]:
    check_shared(sum(map(len, values)))
    return values


class _ChatAppContent(ApiModel):
    number_id: Id | None = None
    type: MessageType
    template_id: Id | None = None
    template_vars: Annotated[Variables, AfterValidator(_few)] | None = Field(
        default=None, description=f"Of those who have none of their own; at most {MOST_SHARED:,} characters in all."
    )
    payload: Payload = None

    @property
    def sender_id(self) -> str | None:
        """What they leave from."""
        return self.number_id


class CreateBatch(BatchBody, _ChatAppContent, BatchHead):
    """The body of POST /messages/bulk: what the messages share, and one audience.

    `templateVars` and `metadata` are those of recipients who have none of their own.
    """

    channel: Literal["chatapp", "sms", "rcs"] = "chatapp"
    recipients: Annotated[list[_Recipient], _LENGTHS] | None = None

    @classmethod
    def missing_beside(cls, document: Mapping[str, Any]) -> list[FieldError]:
        return missing_to_send(document)

    def shared(self) -> BatchContent:
        refuse_misfits(self)
        return BatchContent(
            sender_id=self.number_id or "",
            type=self.type,
            template_id=self.template_id,
            template_vars=self.template_vars,
            payload=self.payload,
        )


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
    channel: Channel
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
