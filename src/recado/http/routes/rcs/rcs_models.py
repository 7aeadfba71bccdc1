"""What callers send to and receive from the operations on RCS messages (C17)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, ValidationInfo, field_validator

from recado.domain.channels.rcs import LONGEST_WAIT, SHORTEST_WAIT, RcsReason, RcsRoute
from recado.domain.core.errors import FieldError
from recado.domain.core.web_addresses import opens
from recado.http.api.models import ApiModel, Timestamp
from recado.http.api.paging import CursorPage, CursorQuery
from recado.http.routes.core.web_addresses import CAN_BE_OPENED
from recado.http.routes.messages.bulk_models import BatchContent, BatchHead, TextBatchBody
from recado.http.routes.messages.message_models import NO_RECIPIENT, Billing, ExplainedWait, Id, Metadata
from recado.services.messages.rcs_content import LONGEST_TEXT, RcsForm

RcsStatus = Literal["queued", "sent", "delivered", "read", "failed"]
Carrier = Literal["rcs", "sms"]
MediaUrl = Annotated[
    str, StringConstraints(pattern=r"^[hH][tT][tT][pP][sS]://[^\s/?#]\S*$", max_length=2_048), CAN_BE_OPENED
]


class Suggestion(ApiModel):
    """What can be tapped. `value`: what a reply says, the address that opens, the phone that is dialed."""

    type: Literal["reply", "url", "dial"]
    text: Annotated[str, Field(min_length=1, max_length=25)]
    value: Annotated[str, Field(min_length=1, max_length=2_048)]

    @field_validator("value")
    @classmethod
    def _opens(cls, value: str, told: ValidationInfo) -> str:
        if told.data.get("type") == "url" and not opens(value):
            raise ValueError("must be an address that a phone can open, such as https://example.com/a")
        return value


class Card(ApiModel):
    """A card. `mediaUrl`: of its picture, https."""

    title: Annotated[str, Field(min_length=1, max_length=200)]
    description: Annotated[str, Field(max_length=2_000)] | None = None
    media_url: MediaUrl | None = None
    orientation: Literal["vertical", "horizontal"] | None = None
    suggestions: Annotated[list[Suggestion], Field(max_length=4)] | None = None


class RcsContentIn(ApiModel):
    """What the message says: a text, a card, or both."""

    text: Annotated[str, Field(min_length=1, max_length=LONGEST_TEXT, examples=["Your order is ready."])] | None = None
    card: Card | None = None
    suggestions: Annotated[list[Suggestion], Field(max_length=11)] | None = None


class Fallback(ApiModel):
    """The SMS that leaves where RCS does not arrive: at once where the phone has no RCS, else `afterSeconds` later."""

    text: Annotated[str, Field(min_length=1, examples=["Your order is ready."])]
    after_seconds: (
        Annotated[
            int,
            Field(ge=SHORTEST_WAIT, le=LONGEST_WAIT, description="By default 3,600; of `easy_otp_rcs` 60."),
        ]
        | None
    ) = None


class _Content(ApiModel):
    content: RcsContentIn
    route: Annotated[RcsRoute, Field(strict=False)] = RcsRoute.EASY
    fallback: Fallback | None = None

    def said(self) -> dict[str, Any]:
        """The content, as the payload of a draft."""
        given = self.content.model_dump(mode="json", by_alias=True, exclude_none=True)
        text = given.pop("text", None)
        said = {**given, **({} if text is None else {"text": {"body": text}})}
        return said if self.fallback is None else {**said, "fallback": {"text": self.fallback.text}}

    def form(self, transactional: bool) -> RcsForm:
        """How it is to leave."""
        after = None if self.fallback is None else self.fallback.after_seconds
        return RcsForm(route=self.route, transactional=transactional, after_seconds=after)


class CreateRcs(_Content):
    """The body of POST /v2/rcs/messages."""

    reads_document = True

    to: Annotated[str | None, Field(max_length=64, examples=["+5511987654321"])] = None
    contact_id: Id | None = None
    transactional: Annotated[bool, Field(description="It answers what the person did: not subject to consent.")] = False
    campaign_id: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    metadata: Metadata = None
    scheduled_at: Timestamp | None = None

    @classmethod
    def missing_beside(cls, document: Mapping[str, Any]) -> list[FieldError]:
        nobody = document.get("to") is None and document.get("contactId") is None
        return [FieldError("/to", "REQUIRED", NO_RECIPIENT)] if nobody else []


class CreateRcsBatch(TextBatchBody, _Content, BatchHead):
    """The body of POST /messages/bulk for RCS: one content to one audience. Its text and that of its SMS may have
    placeholders.
    """

    channel: Literal["rcs"]
    transactional: Annotated[bool, Field(description="It answers what people did: not subject to consent.")] = False

    def shared(self) -> BatchContent:
        return BatchContent(sender_id="", type="text", payload=self.said(), details=self.form(self.transactional).asked)


class RcsQuery(CursorQuery):
    """Filters of GET /v2/rcs/messages. `channel`: what carries them."""

    status: RcsStatus | None = None
    channel: Carrier | None = None
    campaign_id: str | None = None


class RcsContentOut(ApiModel):
    """What it says, with short links in place of its addresses."""

    text: str | None = None
    card: dict[str, Any] | None = None
    suggestions: list[Suggestion] | None = None


class FallbackOut(ApiModel):
    """The SMS that may take its place."""

    text: str | None = None
    after_seconds: int
    segments: int


class RcsModel(ApiModel):
    """One RCS message; fields without value are absent. `channel`: what carries it, or carried it."""

    id: str
    status: RcsStatus
    env: Literal["live", "test"]
    channel: Carrier
    route: RcsRoute
    to: str
    content: RcsContentOut
    fallback: FallbackOut | None = None
    failure_reason: RcsReason | None = None
    contact_id: str | None = None
    campaign_id: str | None = None
    metadata: Mapping[str, str | float | bool] | None = None
    scheduled_at: datetime | None = None
    sent_at: datetime | None = None
    delivered_at: datetime | None = None
    read_at: datetime | None = None
    failed_at: datetime | None = None
    created_at: datetime


class RcsDetail(RcsModel):
    """A message with what it waits for, until it leaves."""

    waiting: ExplainedWait | None = None


class CreatedRcs(RcsModel):
    """`replayed`: the Idempotency-Key had made this message before (C6.2)."""

    billing: Billing | None = None
    replayed: bool


class RcsList(CursorPage[RcsModel]):
    """RCS messages, newest first."""
