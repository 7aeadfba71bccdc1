"""What operators see, as the document describes it (C34.1, C34.2)."""

from typing import Annotated, Literal

from pydantic import Field

from recado.domain.dispatch.breaker import BreakerState
from recado.domain.messages.message import WaitReason
from recado.domain.senders.number import MessagingTier, NumberStatus, QualityRating
from recado.domain.webhooks.webhook import SubscriptionStatus
from recado.engine.child import State
from recado.http.api.models import ApiModel, Timestamp

Env = Literal["live", "test"]


class ActorFailure(ApiModel):
    """When, which type of error and in which function: never the text of the error."""

    at: Timestamp
    type: str
    where: str


class NumberActor(ApiModel):
    """The actor that sends for the number. It is `stopped` while the number has nothing to send."""

    state: State
    restarts: int
    last_failure: ActorFailure | None = None


class RateState(ApiModel):
    """`perSecond`: the rate in force; `tokens`: messages that may leave at once, below zero what forced ones owe."""

    per_second: float
    tokens: float
    sent_last_second: int
    sent_last_minute: int


class DayState(ApiModel):
    """Messages of the rolling day."""

    used: int
    limit: int


class TierState(ApiModel):
    """First recipients of the rolling day. Both are null where the provider sets no limit."""

    used: int | None
    limit: int | None


class QueueState(ApiModel):
    """Messages that are due and have not left, by class, and those whose moment has not come."""

    critical: int
    normal: int
    bulk: int
    scheduled: int


class HoldState(ApiModel):
    """What the first message waits for, and until when where that is known (C14.6)."""

    reason: WaitReason
    until: Timestamp | None = None


class NumberStateOut(ApiModel):
    """A number as it is now. `errorRate5m` and `lastErrors` count the last five minutes of this process."""

    organization_id: str
    env: Env
    number_id: str
    display_phone: str
    status: NumberStatus
    quality_rating: QualityRating
    messaging_tier: MessagingTier
    actor: NumberActor
    rate: RateState
    day: DayState
    tier: TierState
    queue: QueueState
    oldest_age_seconds: int
    in_flight: int
    uncertain: int
    holding: HoldState | None = None
    drain_seconds: int | None = None
    error_rate_5m: Annotated[float, Field(alias="errorRate5m")]
    last_errors: dict[str, int]
    breaker: BreakerState


class NumberStatesOut(ApiModel):
    """The numbers, the most troubled first, then those with the longest queue."""

    items: list[NumberStateOut]


class NumberFailure(ApiModel):
    """A message that failed."""

    at: Timestamp
    message_id: str
    code: str


class NumberMinute(ApiModel):
    """One minute. `queued` and `p95Ms` are null where nothing was counted."""

    minute: Timestamp
    sent: int
    failed: int
    queued: int | None
    p95_ms: int | None


class NumberDetailOut(NumberStateOut):
    """With the last 20 failures, the newest first, and the last 60 minutes, the present one last."""

    failures: list[NumberFailure]
    series: list[NumberMinute]


class ActorOut(ApiModel):
    """A supervisor, a service or an actor. `mailbox` and `handled` are 0 for what has no mailbox."""

    path: str
    kind: str
    key: str
    state: State
    mailbox: int
    handled: int
    restarts: int
    last_failure: ActorFailure | None = None
    up_since: Timestamp | None = None


class ActorsOut(ApiModel):
    """The tree, parents first."""

    items: list[ActorOut]


class RestartActor(ApiModel):
    """`path`: as the list of actors names it."""

    path: Annotated[str, Field(min_length=1, max_length=500)]


class RestartedOut(ApiModel):
    """The restart has begun."""

    path: str
    kind: str


class CallFigures(ApiModel):
    """`backlog`: what is due and waits. Rates and times are of the last 200 calls since the start, null without any."""

    in_flight: int
    backlog: int
    oldest_age_seconds: int
    success_rate: float | None
    p50_ms: int | None
    p95_ms: int | None
    circuit: BreakerState


class WebhookStateOut(CallFigures):
    """A subscription. `backlog` is counted up to 10,001. `circuit` is open while the subscription is failing."""

    organization_id: str
    env: Env
    subscription_id: str
    status: SubscriptionStatus


class WebhookStatesOut(ApiModel):
    """Those in trouble first, then those with the longest backlog."""

    items: list[WebhookStateOut]


class ProviderStateOut(CallFigures):
    """A connection to a provider: a gateway that senders share, or without `gateway` the accounts of all numbers.

    Of those `circuit` is the worst, and `troubled` says how many are not closed.
    """

    env: Env
    channel: str
    provider: str
    gateway: str | None = None
    troubled: int


class ProviderStatesOut(ApiModel):
    """By channel and environment."""

    items: list[ProviderStateOut]
