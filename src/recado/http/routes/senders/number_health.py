"""The health of a number: what the provider says now, what waits, and what went out in a day (C14.3)."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Literal

from pydantic import Field

from recado.channels.core.provider import NumberHealth
from recado.domain.channels.policies import NUMBERS_CHANNEL
from recado.domain.core.clock import Clock
from recado.domain.core.timestamps import format_timestamp
from recado.domain.dispatch.gates import FOREVER, Hold
from recado.domain.messages.message import WaitReason
from recado.domain.senders.number import (
    IN_SERVICE,
    TIER_LIMITS,
    MessagingTier,
    NumberStatus,
    QualityRating,
    effective_per_second,
    what_to_do,
)
from recado.domain.senders.sender import SenderKey
from recado.http.api.call import Call
from recado.http.api.models import ApiModel, Timestamp
from recado.http.api.route import Route
from recado.http.problems.missing import found
from recado.http.routes.core.dependencies import Dependencies
from recado.http.routes.senders.number_models import NameStatus, ProfileOut
from recado.http.routes.senders.numbers import number_resource
from recado.http.wire.reply import Reply
from recado.services.senders.number_refresh import Checked, NumberRefresh
from recado.storage.core.connections.postgres import Database
from recado.storage.core.directory import Directory
from recado.storage.senders import numbers, usage
from recado.storage.senders.numbers import Number, NumberKey

CACHED = 10.0  # seconds that an answer is given again
PATIENCE = 7.0  # seconds with the provider: less than an answer may take in all (C31)
DAY = timedelta(hours=24)


class Issue(ApiModel):
    """Something that keeps the number from sending as it could."""

    code: str
    message: str


class Throughput(ApiModel):
    """The pace in force, in messages a second."""

    per_second: float


class Queue(ApiModel):
    """Messages that have not left, by priority."""

    critical: int
    normal: int
    bulk: int


class Window(ApiModel):
    """The last 24 hours. `tierLimit` is null where the provider sets none.

    `uniqueRecipients` of such a number are counted among the newest 200,000 messages of its organization.
    """

    sent: int
    unique_recipients: int
    tier_limit: int | None


class HealthOut(ApiModel):
    """`live` is false when the provider did not answer; then `error` says why and the rest are stored values."""

    number_id: str
    checked_at: Timestamp
    live: bool
    error: str | None = None
    status: NumberStatus
    quality_rating: QualityRating
    messaging_tier: MessagingTier
    name_status: NameStatus | None = None
    verified_name: str | None = None
    can_send: Literal["available", "limited", "blocked"]
    issues: list[Issue]
    throughput: Throughput
    profile: ProfileOut
    queue: Queue
    window24h: Window = Field(alias="window24h")


class HealthReader:
    """Asks, and remembers each number's answer for 10 s or until the number is changed.

    Anyone who asks while the provider is being asked waits for the same answer.
    """

    def __init__(
        self,
        database: Database,
        *,
        clock: Clock,
        refresh: NumberRefresh,
        trouble: Callable[[SenderKey], Awaitable[Hold | None]],
    ) -> None:
        """`trouble`: what keeps a number from reaching its provider now."""
        self._database = database
        self._trouble = trouble
        self._clock = clock
        self._refresh = refresh
        self._answers: Directory[NumberKey, tuple[int, dict[str, Any]]] = Directory(self._read, clock=clock, ttl=CACHED)

    async def health(self, call: Call) -> Reply:
        number: Number = call.resource
        key = (number.organization_id, number.env, number.id)
        remembered = self._answers.peek(key)
        if remembered is not None and remembered[0] != number.revision:
            self._answers.forget(key)
        view = found(await self._answers.get(key))[1]
        trouble = await self._trouble(
            SenderKey(number.organization_id, number.env, NUMBERS_CHANNEL, number.id)
        )  # as it is now, not as it was when the provider was asked
        return Reply(200, view if trouble is None else troubled_view(view, trouble, self._clock.now()))

    async def _read(self, key: NumberKey) -> tuple[int, dict[str, Any]] | None:
        stored = await numbers.get(self._database, *key)
        if stored is None:
            return None
        checked = await self._refresh.check(stored, patience=PATIENCE)
        now = self._clock.now()
        since = (now - DAY).replace(second=0, microsecond=0)
        number = checked.number
        sent = await usage.totals(self._database, number.organization_id, number.id, since, now)
        recipients = await self._recipients(number, now - DAY)
        waiting = await usage.waiting(self._database, number.organization_id, number.id)
        window = {
            "sent": sent.sent,
            "uniqueRecipients": recipients,
            "tierLimit": TIER_LIMITS[number.messaging_tier],
        }
        return number.revision, {**health_view(checked, now), "queue": waiting, "window24h": window}

    async def _recipients(self, number: Number, since: datetime) -> int:
        if TIER_LIMITS[number.messaging_tier] is None or number.limited_at is not None:
            sender = SenderKey(number.organization_id, number.env, NUMBERS_CHANNEL, number.id)
            return await usage.addressed(self._database.searches, sender, since)
        return await usage.unique_recipients(self._database, number.organization_id, number.id, since)


def health_view(checked: Checked, now: datetime) -> dict[str, Any]:
    """What follows from the number and the provider's answer alone."""
    number, health = checked.number, checked.health
    pace = effective_per_second(number.per_second, number.quality_rating)
    if health is not None and health.per_second is not None:
        pace = min(pace, float(health.per_second))
    view: dict[str, Any] = {
        "numberId": number.id,
        "checkedAt": now,
        "live": health is not None,
        "status": number.status.value,
        "qualityRating": number.quality_rating.value,
        "messagingTier": number.messaging_tier.value,
        "canSend": can_send(number),
        "issues": [{"code": code, "message": message} for code, message in issues(number, health)],
        "throughput": {"perSecond": pace},
        "profile": dict(number.profile),
    }
    optional = {
        "error": checked.error,
        "nameStatus": number.name_status,
        "verifiedName": number.verified_name,
    }
    view.update((name, value) for name, value in optional.items() if value is not None)
    return view


def troubled_view(view: Mapping[str, Any], trouble: Hold, now: datetime) -> dict[str, Any]:
    """The view of a number whose provider asked for a pause, or to which there is no connection (C29.2).

    While the next message would be the probe it is `limited`: a caller that sends to no blocked number would else keep
    it blocked.
    """
    until = "" if trouble.until == FOREVER else f" until {format_timestamp(trouble.until)}"
    blocked = trouble.reason is WaitReason.NO_CONNECTION and trouble.until > now
    if trouble.reason is WaitReason.NUMBER_PAUSED:
        message = f"The provider asked the number to slow down: its messages wait{until}."
    elif not blocked:
        message = "The provider could not be reached: the next message is tried, and the others follow when it leaves."
    elif until:
        message = f"The provider could not be reached, or did not answer: nothing leaves{until}, then one is tried."
    else:
        message = "The provider could not be reached: one message is tried now, and all others wait for it."
    shown = max(("limited", "blocked")[blocked], view["canSend"], key=("available", "limited", "blocked").index)
    issue = {"code": trouble.reason.value, "message": message}
    return {**view, "canSend": shown, "issues": [issue, *view["issues"]]}


def can_send(number: Number) -> str:
    """`available`: everything leaves. `limited`: some classes wait, or the pace is cut. `blocked`: nothing leaves."""
    in_service = number.status in IN_SERVICE
    if not in_service or number.operator_paused_at is not None or number.partner_removed_at is not None:
        return "blocked"
    low = number.quality_rating in (QualityRating.YELLOW, QualityRating.RED)
    return "limited" if number.status is NumberStatus.FLAGGED or low else "available"


def issues(number: Number, health: NumberHealth | None) -> list[tuple[str, str]]:
    """Codes and sentences: ours first, then the provider's."""
    found = []
    if number.status is not NumberStatus.CONNECTED:
        what = what_to_do(number.status, number.env, number.id)
        found.append(("number_state", f"The number is {number.status.value}: {what}."))
    if number.operator_paused_at is not None:
        found.append(("operator_paused", "An operator has paused the number."))
    if number.partner_removed_at is not None:
        found.append(("partner_removed", "The customer has removed this service from the number's account."))
    if number.quality_rating in (QualityRating.YELLOW, QualityRating.RED):
        found.append(("quality", f"The quality is {number.quality_rating.value}: the pace is cut."))
    if number.name_status in ("rejected", "expired"):
        found.append(("name_status", f"The display name is {number.name_status}."))
    return found + list(health.issues if health is not None else ())


def number_health_routes(dependencies: Dependencies, *, health: HealthReader) -> tuple[Route, ...]:
    """One operation."""
    resource = number_resource(dependencies)
    return (
        resource.route(
            "GET /numbers/{id}/health", "getNumberHealth", "Ask the provider how a number is", health.health,
            responses={200: HealthOut},
            description="The answer holds for 10 seconds. When the provider does not answer, `live` is false.",
        ),
    )  # fmt: skip
