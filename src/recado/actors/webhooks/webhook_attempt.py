"""What one attempt to deliver comes to: the next state of the delivery, and its line in the history (C23.3)."""

from datetime import datetime, timedelta
from typing import Final

import orjson

from recado.channels.http.answer import retry_after
from recado.channels.http.guarded_http import Response
from recado.domain.core.ids import created_at
from recado.domain.core.timestamps import format_timestamp
from recado.domain.webhooks.webhook import GONE, MAX_AGE, retry_delay
from recado.storage.core.crypto import KeyRing
from recado.storage.webhooks.deliveries import DELIVERED, DROPPED, Due, Result
from recado.storage.webhooks.webhooks import Subscription

ANSWER_FIELD: Final = "webhook_answer"
_ASKS_TO_WAIT: Final = (429, 503)


def result_of(
    subscription: Subscription,
    due: Due,
    response: Response,
    now: datetime,
    chance: float,
    keys: KeyRing,
    *,
    may_end: bool,
) -> Result:
    """What an attempt comes to: delivered, tried again, or dropped after the last one or at its age (C23.3.3).

    `subscription`: as it was when the call began; `may_end`: an answer 410 ends it; `chance`, in [0, 1), spreads
    the retries.
    """
    attempts = due.attempts + 1
    outcome, due_at = None, None
    if response.ok:
        outcome = DELIVERED
    else:
        asked = retry_after(response.retry_after, now) if response.status in _ASKS_TO_WAIT else None
        due_at = now + timedelta(seconds=retry_delay(attempts, subscription.backoff_seconds, chance, asked))
        gone = may_end and response.status == GONE
        if attempts >= subscription.max_attempts or due_at - created_at(due.id) > MAX_AGE or gone:
            outcome, due_at = DROPPED, None
    return Result(
        subscription.key,
        due.id,
        due.attempts,
        outcome,
        now,
        response.status,
        None if response.ok else error_of(response),
        orjson.dumps(attempt_view(subscription, due.id, attempts, response, now, keys)).decode(),
        due_at,
    )


def error_of(response: Response) -> str:
    """Why an attempt failed, in words."""
    return response.error or f"the endpoint answered {response.status}"


def attempt_view(
    subscription: Subscription, delivery_id: str, attempt: int, response: Response, now: datetime, keys: KeyRing
) -> dict[str, object]:
    """An attempt as its delivery's history keeps it. Of a failure, up to 1 KiB of the answer is kept."""
    view: dict[str, object] = {
        "attempt": attempt,
        "at": format_timestamp(now),
        "durationMs": round(response.seconds * 1000),
    }
    if response.status is not None:
        view["statusCode"] = response.status
    if response.ok:
        return view
    view["error"] = error_of(response)
    text = response.body.decode("utf-8", "replace").replace("\x00", "\ufffd")
    if not text:
        return view
    if subscription.include_pii:  # an endpoint may well say what it was told (C30.5)
        view["answerCipher"] = keys.encrypt(
            text, organization_id=subscription.organization_id, record_id=delivery_id, field=ANSWER_FIELD
        )
    else:
        view["answer"] = text
    return view
