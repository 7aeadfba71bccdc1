"""The calls of a webhook step: which answers end them, and when another one is made (C9.13)."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from recado.domain.journeys.execution import Awaited, TrailResult
from recado.domain.journeys.outcomes import Advance, Await, CallWebhook
from recado.domain.journeys.steps import WebhookStep

RETRY_DELAYS: Final = (timedelta(seconds=10), timedelta(seconds=60), timedelta(seconds=300))
"""After the first, second and third failed call; the fourth is the last."""
TIMEOUT: Final = timedelta(seconds=10)
"""How long a call may take."""

_TOO_MANY_REQUESTS: Final = 429


@dataclass(frozen=True, slots=True)
class LastCall:
    """The call that was made last. `attempt`: 1 for the first; `status`: of its answer, None: there was none."""

    attempt: int
    status: int | None
    ended_at: datetime

    @property
    def succeeded(self) -> bool:
        """Whether the endpoint took it: any 2xx."""
        return self.status is not None and 200 <= self.status < 300

    @property
    def may_be_repeated(self) -> bool:
        """Whether another call may fare better: there was no answer, or one of 5xx or 429."""
        return self.status is None or self.status >= 500 or self.status == _TOO_MANY_REQUESTS


def decide_webhook(
    step: WebhookStep, last: LastCall | None, now: datetime, *, callable_now: bool
) -> Advance | Await | CallWebhook:
    """Call, wait for the next call, or go on. `callable_now`: the subscription is active, its URL not refused."""
    failed = Advance(step.if_failed or step.next, TrailResult.WEBHOOK_FAILED)
    if last is None:
        return CallWebhook(1) if callable_now else failed
    if last.succeeded:
        return Advance(step.next, TrailResult.WEBHOOK_OK)
    if not last.may_be_repeated or last.attempt > len(RETRY_DELAYS):
        return failed
    again_at = last.ended_at + RETRY_DELAYS[last.attempt - 1]
    if now < again_at:
        return Await(Awaited.WEBHOOK, again_at)
    return CallWebhook(last.attempt + 1) if callable_now else failed
