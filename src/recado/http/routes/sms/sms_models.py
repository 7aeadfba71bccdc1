"""What callers send to and receive from the operations on SMS messages (C16.1)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from recado.domain.channels.sms import SmsReason, SmsRoute
from recado.domain.core.errors import FieldError, validation_error
from recado.domain.messages.sms_text import Encoding
from recado.http.api.models import ApiModel, Timestamp
from recado.http.api.paging import CountedPage, MessagePageQuery, PeriodQuery
from recado.http.routes.messages.bulk_models import BatchContent, BatchHead, TextBatchBody
from recado.http.routes.messages.message_models import NO_RECIPIENT, Billing, Id, Metadata
from recado.services.messages.sms_content import SmsForm

SmsStatus = Literal["queued", "sending", "sent", "delivered", "failed", "undelivered"]
Region = Literal["BR", "INTL"]
Text = Annotated[str, Field(min_length=1, examples=["Your order is ready."])]
"""How long it may be, its segments say."""


class _Content(ApiModel):
    """What a text becomes: its price, and its size."""

    text: Text
    route: Annotated[SmsRoute, Field(strict=False)] = SmsRoute.PREMIUM
    transliterate: Annotated[
        bool, Field(description="Replace accented and typographic characters that cost segments.")
    ] = False
    shorten_links: Annotated[
        bool, Field(description="Each http(s) URL becomes a short one, whose clicks are counted.")
    ] = False

    def form(self, transactional: bool = False) -> SmsForm:
        """How texts are to leave."""
        return SmsForm(
            route=self.route, transactional=transactional, transliterate=self.transliterate,
            shorten_links=self.shorten_links,
        )  # fmt: skip


class CreateSms(_Content):
    """The body of POST /v2/sms/messages."""

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


class CreateSmsBatch(TextBatchBody, _Content, BatchHead):
    """The body of POST /messages/bulk for SMS: one text, which may have placeholders, to one audience."""

    channel: Literal["sms"]
    transactional: Annotated[bool, Field(description="It answers what people did: not subject to consent.")] = False

    def shared(self) -> BatchContent:
        asked = self.form(self.transactional).asked
        return BatchContent(sender_id="", type="text", payload={"text": {"body": self.text}}, details=asked)


class PreviewSms(_Content):
    """The body of POST /v2/sms/preview. Without `to` the region is BR."""

    to: Annotated[str | None, Field(max_length=64, examples=["+5511987654321"])] = None


class SmsQuery(MessagePageQuery, PeriodQuery):
    """Filters of GET /v2/sms/messages. A period holds what was created in [from, to)."""

    status: SmsStatus | None = None
    region: Region | None = None
    contact_id: str | None = None
    campaign_id: str | None = None
    phone: Annotated[
        Annotated[str, StringConstraints(strip_whitespace=False)] | None,
        Field(
            min_length=1,
            max_length=64,
            examples=["+5511987654321"],
            description="The recipient: exact, in any spelling. Needs no `pii:full`.",
        ),
    ] = None

    @property
    def searches(self) -> bool:
        """A phone, or a region, is looked for along the history."""
        return super().searches or self.phone is not None or self.region is not None

    @model_validator(mode="after")
    def _begins_before_it_ends(self) -> Self:
        if self.from_ is not None and self.to is not None and self.from_ > self.to:
            raise validation_error([FieldError("from", "INVALID_PERIOD", "`from` must not be later than `to`.")])
        return self


class ProviderReceipt(ApiModel):
    """The last report, as the gateway gave it. Its members keep the gateway's names."""

    id: str | None = None
    type: Literal["api_message", "api_fast", "api_reply"] | None = None
    to: str | None = None
    message: str | None = None
    reference: str | None = None
    status: str | None = None
    status_description: Annotated[str | None, Field(alias="statusDescription")] = None
    received: str | None = None
    bill_factor: Annotated[float | None, Field(alias="bill_factor")] = None
    account_id: Annotated[float | None, Field(alias="account_id")] = None
    account_reference: Annotated[str | None, Field(alias="account_reference")] = None
    channel: Literal["SMS", "RCS", "CHATAPP"] | None = None


class SmsModel(ApiModel):
    """One SMS that went out; fields without value are absent. `length`: septets, or units of UTF-16."""

    id: str
    status: SmsStatus
    env: Literal["live", "test"]
    reason: SmsReason | None = None
    route: SmsRoute
    region: Region
    to: str
    provider: Literal["sandbox", "gateway_a", "gateway_b"]
    encoding: Encoding
    length: int
    segments: int
    contact_id: str | None = None
    campaign_id: str | None = None
    metadata: Mapping[str, str | float | bool] | None = None
    provider_receipt: ProviderReceipt | None = None
    scheduled_at: datetime | None = None
    sent_at: datetime | None = None
    delivered_at: datetime | None = None
    failed_at: datetime | None = None
    created_at: datetime


class CreatedSms(SmsModel):
    """`replayed`: the Idempotency-Key had made this message before (C6.2)."""

    billing: Billing | None = None
    replayed: bool


class SmsList(CountedPage[SmsModel]):
    """SMS messages, newest first."""


class SmsPreview(ApiModel):
    """What a text would take and cost. Prices are absent where nothing is billed.

    `charactersLeft`: the septets or units that the last segment has room for; `transliterated`: the text as it would
    leave, where that was asked for.
    """

    encoding: Encoding
    length: int
    segments: int
    characters_left: int
    non_gsm: Annotated[list[str], Field(description="The distinct characters outside GSM-7 of the text given.")]
    transliterated: str | None = None
    region: Region
    route: SmsRoute
    unit_coins: int | None = None
    total_coins: int | None = None
