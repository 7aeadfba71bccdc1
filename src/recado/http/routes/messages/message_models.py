"""What callers send to and receive from the operations on messages (C15.1, C15.2)."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Protocol

from pydantic import Field, PlainValidator, StringConstraints, ValidationError, ValidationInfo
from pydantic_core import InitErrorDetails, PydanticCustomError

from recado.domain.channels.chatapp import CHATAPP, TEMPLATE
from recado.domain.channels.policies import GENERIC_CHANNELS, POLICIES, sender_field
from recado.domain.channels.social import SOCIAL, TYPES
from recado.domain.core.errors import FieldError, validation_error
from recado.domain.core.metadata import metadata_errors
from recado.domain.links.origin import Fonte
from recado.domain.messages.message import MAX_TTL, MIN_TTL, GenericStatus, Priority, WaitReason
from recado.http.api.models import ApiModel, Timestamp
from recado.http.api.paging import CountedPage, MessagePageQuery, PeriodQuery
from recado.http.routes.messages.message_payloads import EXAMPLES, SHAPES, AnyPayload

CHANNELS: Final = GENERIC_CHANNELS
"""Of the generic view."""

if TYPE_CHECKING:
    Channel = str
else:
    Channel = Literal[CHANNELS]
Direction = Literal["outbound", "inbound"]
MessageType = Literal["text", "template", "media", "interactive"]

Id = Annotated[str, Field(min_length=1, max_length=64)]
Variables = Annotated[list[Annotated[str, Field(max_length=1024)]], Field(max_length=60, fail_fast=True)]
Ttl = Annotated[int, Field(ge=int(MIN_TTL.total_seconds()), le=int(MAX_TTL.total_seconds()))]
Metadata = Annotated[
    Any,
    Field(
        json_schema_extra={
            "type": ["object", "null"],
            "maxProperties": 20,
            "additionalProperties": {"type": ["string", "number", "boolean"]},
        }
    ),
]
"""Checked by hand (`metadata.py`): its faults have a code of their own."""


SENDER_REQUIRED: Final = {
    channel: FieldError(f"/{field}", "REQUIRED", f"`{field}` is required for channel {channel}.")
    for channel in POLICIES
    if (field := sender_field(channel)) is not None
}
"""By channel, of those whose callers name what a message leaves from."""
TEMPLATE_REQUIRED: Final = FieldError("/templateId", "REQUIRED", "`templateId` is required for type template.")
NO_RECIPIENT: Final = "The message has no recipient: give `to` or `contactId`."


def payload_of_type(value: Any, info: ValidationInfo) -> Any:
    """The payload in the shape of the message's type, which stands before it in the model."""
    kind = info.data.get("type")
    if kind is None:  # said already
        return None
    if value is None:
        if kind == "template":
            return None
        raise PydanticCustomError("missing", "Field required", {"hint": _shape(kind)})
    try:
        return SHAPES[kind].validator.validate_python(value)
    except ValidationError as error:
        if kind not in EXAMPLES or all(len(details["loc"]) > 1 for details in _details(error)):
            raise
        raise _with_shape(error, _shape(kind)) from None


def _with_shape(error: ValidationError, shape: str) -> ValidationError:
    """The same faults; the first of the outer shape, of which there is one here, says how it is."""
    lines: list[InitErrorDetails] = []
    hint = {"hint": shape}
    for details in _details(error):
        outer = len(details["loc"]) <= 1
        context = {**details.get("ctx", {}), **(hint if outer else {})}
        if outer:
            hint = {}
        lines.append(
            {
                "type": PydanticCustomError(details["type"], details["msg"], context),
                "loc": details["loc"],
                "input": None,
            }
        )
    return ValidationError.from_exception_data(error.title, lines)


def _details(error: ValidationError) -> list[Any]:
    return list(error.errors(include_url=False, include_input=False))


def _shape(kind: str) -> str:
    return f"for type {kind}, the payload is such as {json.dumps(EXAMPLES[kind])}"


Payload = Annotated[
    Any, PlainValidator(payload_of_type, json_schema_input_type=AnyPayload | None), Field(validate_default=True)
]


def missing_to_send(document: Mapping[str, Any]) -> list[FieldError]:
    """What a document lacks whatever its type is, and what its type needs beside it (C15.2)."""
    missing = []
    channel = document.get("channel", CHATAPP)
    required = SENDER_REQUIRED.get(channel) if isinstance(channel, str) else None
    if required is not None and document.get(required.path[1:]) is None:
        missing.append(required)
    if document.get("type") == TEMPLATE and document.get("templateId") is None:
        missing.append(TEMPLATE_REQUIRED)
    return missing


class _Content(Protocol):
    """What messages and batches say."""

    template_id: str | None
    template_vars: list[str] | None

    @property
    def sender_id(self) -> str | None: ...

    @property
    def channel(self) -> str: ...

    @property
    def type(self) -> str: ...


def refuse_misfits(body: _Content) -> None:
    """Raise `Problem` 422 for fields that the channel or the type requires, or does not take."""
    if wrong := misfits(body):
        raise validation_error(wrong)


def refuse_metadata(metadata: object) -> None:
    """Raise `Problem` 422 for odd metadata."""
    if metadata is not None and (wrong := metadata_errors(metadata)):
        raise validation_error(wrong, code="METADATA_INVALID")


def misfits(body: _Content) -> list[FieldError]:
    """The fields that the channel or the type requires, or does not take."""
    wrong: list[FieldError] = []
    required = SENDER_REQUIRED.get(body.channel)
    if required is not None and body.sender_id is None:
        wrong.append(required)
    if body.channel == SOCIAL and body.type not in TYPES:
        wrong.append(FieldError("/type", "NOT_ALLOWED", f"Channel social takes type {' or '.join(TYPES)}."))
        return wrong
    if body.type == TEMPLATE:
        if body.template_id is None:
            wrong.append(TEMPLATE_REQUIRED)
        return wrong
    for path, value in (("/templateId", body.template_id), ("/templateVars", body.template_vars)):
        if value:
            wrong.append(FieldError(path, "NOT_ALLOWED", f"`{path[1:]}` is only for type template."))
    return wrong


class CreateMessage(ApiModel):
    """The body of POST /messages."""

    reads_document = True

    channel: Literal["chatapp", "social"] = "chatapp"
    number_id: Id | None = None
    social_account_id: Id | None = None
    to: Annotated[
        str | None,
        Field(
            max_length=128,
            examples=["+5511987654321"],
            description="A phone, or of chatapp a business-scoped user id such as `BR.1502576394655843`; for social a "
            "user id of the platform.",
        ),
    ] = None
    contact_id: Id | None = None
    type: MessageType
    template_id: Id | None = None
    template_vars: Variables | None = None
    payload: Payload = None
    priority: Annotated[Priority, Field(strict=False)] = Priority.NORMAL
    campaign_id: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    metadata: Metadata = None
    scheduled_at: Timestamp | None = None
    ttl_seconds: Ttl | None = None
    force: bool = False

    @property
    def sender_id(self) -> str | None:
        """What it leaves from."""
        return self.social_account_id if self.channel == SOCIAL else self.number_id

    @classmethod
    def missing_beside(cls, document: Mapping[str, Any]) -> list[FieldError]:
        nobody = document.get("to") is None and document.get("contactId") is None
        recipient = FieldError("/to", "REQUIRED", NO_RECIPIENT)
        return [*missing_to_send(document), *((recipient,) if nobody else ())]


class MessageQuery(MessagePageQuery, PeriodQuery):
    """Filters of GET /messages. A period holds what was created in [from, to)."""

    status: GenericStatus | None = None
    number_id: str | None = None
    contact_id: str | None = None
    campaign_id: str | None = None
    batch_id: str | None = None
    sent_by_account_id: str | None = None
    channel: Annotated[list[Channel] | None, Field(max_length=len(CHANNELS))] = None
    direction: Direction | None = None
    phone: Annotated[
        Annotated[str, StringConstraints(strip_whitespace=False)] | None,
        Field(
            min_length=1,
            max_length=128,
            examples=["+5511987654321"],
            description="The contact's side of the conversation: exact, in any spelling; or a business-scoped user id. "
            "Needs no `pii:full`. Searched along the history: give a period as well where that is long.",
        ),
    ] = None

    @property
    def searches(self) -> bool:
        """A phone is looked for along the history."""
        return super().searches or self.phone is not None


class ExplainedWait(ApiModel):
    """Why a message has not left yet, and when it is expected to (C14.6)."""

    reason: WaitReason
    until: datetime | None = None
    ahead: int | None = None
    detail: str | None = None


class _Waited(ApiModel):
    """How long a message waited for one reason until it left, in milliseconds (C34.4)."""

    reason: WaitReason
    ms: int


class LinkOrigin(ApiModel):
    """Which link brought the code that a person's message holds, and what its address said (C27.4)."""

    fonte: Fonte
    fonte_rotulo: str | None = None
    campanha: str | None = None
    grupo: str | None = None
    anuncio: str | None = None
    palavra_chave: str | None = None
    codigo: str


class MediaStorage(ApiModel):
    """What is stored of the media that came with a message. `mimeType`: what its bytes say."""

    mime_type: str
    size: int
    stored_at: datetime


class MessageModel(ApiModel):
    """One message of any channel; fields without value are absent."""

    id: str
    organization_id: str
    channel: Channel
    number_id: str | None = None
    social_account_id: str | None = None
    contact_id: str | None = None
    campaign_id: str | None = None
    template_id: str | None = None
    batch_id: str | None = None
    metadata: Mapping[str, str | float | bool] | None = None
    to: str
    type: MessageType
    direction: Direction
    priority: Priority
    status: GenericStatus
    force: bool
    reprocessed: bool
    replaced_by: str | None = None
    payload: Any = None
    template_vars: list[str] | None = None
    attempts: int
    last_error: str | None = None
    original_error: str | None = None
    provider_message_id: str | None = None
    origem_do_link: LinkOrigin | None = None
    media_storage: MediaStorage | None = None
    sent_by_account_id: str | None = None
    sent_by_name: str | None = None
    scheduled_at: datetime | None = None
    sent_at: datetime | None = None
    delivered_at: datetime | None = None
    read_at: datetime | None = None
    failed_at: datetime | None = None
    created_at: datetime
    updated_at: datetime


class MessageDetail(MessageModel):
    """A message with what it waits for, while it is `queued` or `sending`; once it left, with what it waited for."""

    waiting: ExplainedWait | None = None
    waits: list[_Waited] | None = None


class Billing(ApiModel):
    """What the message costs: held now, charged when it is sent (C25.2)."""

    coins: int


class CreatedMessage(MessageModel):
    """`replayed`: the Idempotency-Key had made this message before (C6.2)."""

    billing: Billing | None = None
    replayed: bool


class MessageList(CountedPage[MessageModel]):
    """Messages, newest first."""
