"""The events of webhooks as the OpenAPI document describes them: the envelope (C23.5) and the data of each (C23.6)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, Field, JsonValue

from recado.domain.channels.email import BounceType, EmailReason
from recado.domain.channels.policies import POLICIES
from recado.domain.channels.rcs import RcsReason
from recado.domain.channels.sms import SmsReason, SmsRoute
from recado.domain.core.events import API_VERSION, JOURNEY_ACTION
from recado.domain.messages.message import GenericStatus
from recado.http.api.models import ApiModel, Timestamp
from recado.http.routes.email.message_models import EmailStatus
from recado.http.routes.messages.bulk_models import Totals
from recado.http.routes.messages.message_models import Direction, LinkOrigin, MessageType
from recado.http.routes.rcs.rcs_models import Carrier, RcsStatus
from recado.http.routes.sms.sms_models import Region, SmsStatus
from recado.services.webhooks.webhook_samples import sample_of

TAG = "Webhooks"

if TYPE_CHECKING:
    AnyChannel = str
else:
    AnyChannel = Literal[tuple(POLICIES)]


class _MessageSummary(ApiModel):
    """A message. When it was removed before the delivery, only `id` is there. Without `includePii`, `to` is masked."""

    id: str
    channel: AnyChannel | None = None
    direction: Direction | None = None
    type: MessageType | None = None
    to: str | None = None
    number_id: str | None = None
    social_account_id: str | None = None
    contact_id: str | None = None
    contact_external_id: str | None = None
    campaign_id: str | None = None
    template_id: str | None = None
    batch_id: str | None = None
    metadata: dict[str, str | int | float | bool] | None = None
    provider_message_id: str | None = None
    created_at: Timestamp | None = None
    scheduled_at: Timestamp | None = None
    sent_at: Timestamp | None = None
    delivered_at: Timestamp | None = None
    read_at: Timestamp | None = None
    failed_at: Timestamp | None = None


class _MessageEvent(_MessageSummary):
    """A message. When it was removed before the delivery, only `id` is there. Without `includePii`, `to` is masked."""

    status: GenericStatus | None = None


class FailedMessageEvent(_MessageEvent):
    """A message that failed."""

    last_error: str | None = None
    attempts: int | None = None


class EventContact(ApiModel):
    """Who wrote; `created`: with this message."""

    id: str
    created: bool


class ReceivedMessageEvent(_MessageEvent):
    """A message of a customer; `inReplyTo`: the message that it answers."""

    payload: JsonValue = None
    contact: EventContact | None = None
    origem_do_link: LinkOrigin | None = None
    in_reply_to: str | None = None


class _SmsSummary(_MessageSummary):
    """An SMS; its `status` is the channel's own, which has `undelivered`."""

    status: SmsStatus | None = None


class SmsEvent(_SmsSummary):
    """An SMS that went out. When it was removed before the delivery, only `id` is there."""

    route: SmsRoute | None = None
    segments: int | None = None
    region: Region | None = None


class SmsFailedEvent(SmsEvent):
    """An SMS that did not arrive, and why."""

    reason: SmsReason | None = None


class SmsReceivedEvent(_SmsSummary):
    """An SMS of a person."""

    text: str | None = None


class SmsClickedEvent(_SmsSummary):
    """A click on a link of an SMS; `firstClick`: no link of the message was clicked before."""

    url: str | None = None
    clicked_at: Timestamp | None = None
    first_click: bool | None = None


class RcsEvent(_MessageSummary):
    """An RCS message; `deliveredVia`: what carried it. When it was removed before the delivery, only `id` is there."""

    status: RcsStatus | None = None
    delivered_via: Carrier | None = None


class RcsFailedEvent(RcsEvent):
    """An RCS message that did not arrive, and why."""

    failure_reason: RcsReason | None = None


class RcsClickedEvent(_MessageSummary):
    """A click on a link of an RCS message; `firstClick`: no link of the message was clicked before."""

    status: RcsStatus | None = None
    url: str | None = None
    clicked_at: Timestamp | None = None
    first_click: bool | None = None


class SocialReceivedEvent(_MessageEvent):
    """A social message of a person; `contact` is null of whoever is no contact, `inReplyTo`: what it answers."""

    payload: JsonValue = None
    contact: EventContact | None = None
    in_reply_to: str | None = None


class EmailEvent(_MessageSummary):
    """An e-mail; its `status` is the channel's own. When it was removed before the delivery, only `id` is there."""

    status: EmailStatus | None = None
    subject: str | None = None
    from_: Annotated[str | None, Field(alias="from")] = None


class EmailBouncedEvent(EmailEvent):
    """An e-mail that came back; after a `permanent` bounce its address is suppressed."""

    reason: EmailReason | None = None
    bounce_type: BounceType | None = None


class EmailComplainedEvent(EmailEvent):
    """An e-mail that its recipient called unwanted: the address is suppressed, and its contact has opted out."""

    reason: Literal["complaint"] | None = None


class EmailClickedEvent(_MessageSummary):
    """A click on a link of an e-mail; `firstClick`: no link of the message was clicked before."""

    status: EmailStatus | None = None
    url: str | None = None
    clicked_at: Timestamp | None = None
    first_click: bool | None = None


class EmailOpenedEvent(EmailEvent):
    """An e-mail whose image was loaded; `firstOpen`: it was not before."""

    opened_at: Timestamp | None = None
    first_open: bool | None = None


class CampaignCompletedEvent(ApiModel):
    """A campaign through which everything has gone."""

    campaign_id: str
    totals: Totals
    channels: list[str]
    charged_coins: int
    first_message_at: Timestamp
    completed_at: Timestamp
    completions: int


class NumberStanding(ApiModel):
    """What the provider thinks of a number."""

    quality_rating: str
    messaging_tier: str
    status: str


class NumberQualityEvent(ApiModel):
    """A number whose quality or tier changed; `displayPhone` is masked without `includePii`."""

    number_id: str
    display_phone: str
    previous: NumberStanding
    current: NumberStanding


class _TemplateEvent(ApiModel):
    """A template that was decided on."""

    id: str
    number_id: str
    name: str
    language: str
    category: str
    version: int
    status: str


class TemplateRejectedEvent(_TemplateEvent):
    """A template that was rejected, and why."""

    rejection_reason: str | None = Field(...)


class ContactCreatedEvent(ApiModel):
    """A new contact; `phone` is masked without `includePii`."""

    id: str
    external_id: str | None = None
    source: str
    phone: str
    opt_in_status: str
    tags: list[str]
    created_at: Timestamp


class ContactOptedOutEvent(ApiModel):
    """A refusal; without `id` of somebody who is no contact."""

    id: str | None = None
    external_id: str | None = None
    phone: str | None = None
    source: str
    revoked_at: Timestamp
    revoked_reason: str | None = None


class ConsentChangedEvent(ApiModel):
    """A consent that changed; `dataInformada`: whether the caller gave its date."""

    id: str
    external_id: str | None = None
    from_: str = Field(alias="from")
    to: str
    at: Timestamp
    source: str | None = None
    data_informada: bool


class ApiKeyEvent(ApiModel):
    """A new API key; its token is in no event."""

    id: str
    name: str
    env: str
    scopes: list[str]
    prefix: str
    created_by_id: str | None = None
    expires_at: Timestamp | None = None


class ApiKeyRotatedEvent(ApiKeyEvent):
    """A key with a new token; the former one is good until `previousValidUntil`."""

    previous_valid_until: Timestamp | None = None


class WalletDepletedEvent(ApiModel):
    """A wallet with nothing left."""

    wallet_id: str
    available_coins: int


class WalletLowEvent(WalletDepletedEvent):
    """A wallet that fell below its threshold."""

    threshold_coins: int


class ActionJourney(ApiModel):
    """The journey that calls."""

    id: str
    name: str
    versao: int


class ActionExecution(ApiModel):
    """The contact's way through it."""

    id: str


class ActionStep(ApiModel):
    """The step that calls."""

    id: str


class ActionContact(ApiModel):
    """Whose way it is."""

    id: str
    external_id: str | None = None


class JourneyActionEvent(ApiModel):
    """A webhook step that an execution has come to; `entrada`: what its contact entered with, unmasked."""

    journey: ActionJourney
    execution: ActionExecution
    step: ActionStep
    contact: ActionContact
    entrada: dict[str, JsonValue]


EVENTS: Mapping[str, type[BaseModel]] = {
    "message.sent": _MessageEvent,
    "message.delivered": _MessageEvent,
    "message.read": _MessageEvent,
    "message.failed": FailedMessageEvent,
    "message.received": ReceivedMessageEvent,
    "sms.delivered": SmsEvent,
    "sms.failed": SmsFailedEvent,
    "sms.undelivered": SmsFailedEvent,
    "sms.received": SmsReceivedEvent,
    "sms.clicked": SmsClickedEvent,
    "rcs.delivered": RcsEvent,
    "rcs.read": RcsEvent,
    "rcs.failed": RcsFailedEvent,
    "rcs.clicked": RcsClickedEvent,
    "email.delivered": EmailEvent,
    "email.bounced": EmailBouncedEvent,
    "email.complained": EmailComplainedEvent,
    "email.clicked": EmailClickedEvent,
    "email.opened": EmailOpenedEvent,
    "social.message.received": SocialReceivedEvent,
    "social.message.sent": _MessageEvent,
    "social.message.failed": FailedMessageEvent,
    "campaign.completed": CampaignCompletedEvent,
    "number.quality_changed": NumberQualityEvent,
    "template.approved": _TemplateEvent,
    "template.rejected": TemplateRejectedEvent,
    "contact.created": ContactCreatedEvent,
    "contact.opted_out": ContactOptedOutEvent,
    "contact.consent_changed": ConsentChangedEvent,
    "apikey.created": ApiKeyEvent,
    "apikey.rotated": ApiKeyRotatedEvent,
    "wallet.low_balance": WalletLowEvent,
    "wallet.depleted": WalletDepletedEvent,
    JOURNEY_ACTION: JourneyActionEvent,
}
"""The data of each event that a subscription may name, and of what steps of journeys call."""

_DELIVERED: Mapping[str, Any] = {
    "summary": "`{}` is delivered to a subscription",
    "responses": {
        "2XX": {"description": "Taken, within 15 seconds. Any other answer but 410 is tried again later."},
        "410": {"description": "Ends the subscription."},
    },
}
_CALLED: Mapping[str, Any] = {
    "summary": "A step of a journey calls a subscription, whatever events that takes",
    "parameters": [
        {
            "name": "X-SVC-Idempotency-Key",
            "in": "header",
            "required": True,
            "schema": {"type": "string"},
            "description": "`<execution>:<step>`, the same in each attempt: act once for each of its values.",
        }
    ],
    "responses": {
        "2XX": {"description": "The execution goes on to `proximo`. Within 10 seconds."},
        "429": {
            "description": "The call is made again, four times in all, and then the execution goes on to `seFalhar`."
        },
        "5XX": {"description": "The same."},
        "default": {"description": "The execution goes on to `seFalhar`. No answer ends the subscription."},
    },
}


def webhook(event: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the item of `webhooks` for an event. `data`: the schema of its data."""
    text = {"type": "string"}
    way = _CALLED if event == JOURNEY_ACTION else _DELIVERED
    properties: dict[str, Any] = {
        "id": {**text, "pattern": "^evt_[0-9A-Za-z]{21}$", "description": "The same in every delivery of the event."},
        "type": {**text, "const": event},
        "env": {**text, "enum": ["live", "test"]},
        "organizationId": text,
        "createdAt": {**text, "format": "date-time"},
        "apiVersion": {**text, "const": API_VERSION},
        "test": {"type": "boolean", "const": True, "description": "Of `POST /webhooks/{id}/test` alone."},
        "data": data,
    }
    if way is _CALLED:
        del properties["test"]  # what a test of a journey calls is called in earnest
    example = {
        "id": "evt_" + "0" * 21,
        "type": event,
        "env": "test",
        "organizationId": "org_" + "0" * 21,
        "createdAt": "2026-01-02T12:00:00.000Z",
        "apiVersion": API_VERSION,
        "data": sample_of(event),
    }
    schema = {
        "type": "object",
        "required": [name for name in properties if name != "test"],
        "properties": properties,
    }
    name = "".join(word.capitalize() for word in event.replace("_", ".").split("."))
    operation = {
        "operationId": f"on{name}",
        "summary": way["summary"].format(event),
        "description": "Signed twice with the subscription's secret: `X-SVC-Signature` and `webhook-signature`.",
        "tags": [TAG],
        "security": [],
        **({"parameters": way["parameters"]} if "parameters" in way else {}),
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": schema, "example": example}},
        },
        "responses": way["responses"],
    }
    return {"post": operation}
