"""What operators see, from what was found (C34.1, C34.2). Made for thousands at once: plain dicts, without models."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from recado.actors.ops.number_state import NumberState
from recado.actors.ops.provider_states import ProviderState
from recado.actors.ops.scope_numbers import Sums
from recado.actors.ops.webhook_states import WebhookState
from recado.domain.core.masking import mask_phone
from recado.domain.dispatch.gates import FOREVER, Hold
from recado.domain.messages.message import WaitReason
from recado.domain.ops.recent_calls import RecentCalls
from recado.domain.senders.number import TIER_LIMITS
from recado.engine.child import Node
from recado.engine.failure import Failure
from recado.services.ops.activity import minute_of

SUMMED: Final = ("numbers", "sentLastSecond", "sentLastMinute", "due", "scheduled", "inFlight")
_UNTIL_KNOWN: Final = FOREVER - timedelta(days=1)


def number_state_view(state: NumberState, now: datetime) -> dict[str, Any]:
    """One number."""
    queue, failure = state.queue, state.last_failure
    actor: dict[str, Any] = {"state": state.actor, "restarts": state.restarts}
    if failure is not None:
        actor["lastFailure"] = _failure(failure)
    critical, normal, bulk = queue.due
    view: dict[str, Any] = {
        "organizationId": state.organization_id,
        "env": state.env,
        "numberId": state.id,
        "displayPhone": mask_phone(state.display_phone),
        "status": state.status,
        "qualityRating": state.quality,
        "messagingTier": state.tier,
        "actor": actor,
        "rate": {
            "perSecond": state.per_second,
            "tokens": round(state.tokens, 2),
            "sentLastSecond": state.sent_last_second,
            "sentLastMinute": state.sent_last_minute,
        },
        "day": {"used": state.day_used, "limit": state.per_day},
        "tier": {"used": state.tier_used, "limit": TIER_LIMITS[state.tier]},
        "queue": {"critical": critical, "normal": normal, "bulk": bulk, "scheduled": queue.scheduled},
        "oldestAgeSeconds": _age(queue.oldest_due, now),
        "inFlight": state.in_flight,
        "uncertain": queue.uncertain,
        "errorRate5m": round(state.error_rate, 4),
        "lastErrors": state.errors,
        "breaker": state.breaker,
    }
    if state.holding is not None:
        view["holding"] = _hold(state.holding)
    if state.due and (state.holding is None or state.holding.reason is WaitReason.RATE):
        view["drainSeconds"] = math.ceil(state.due / state.per_second)
    return view


def throughput_view(sums: Sums) -> dict[str, int]:
    """The figures of all numbers together."""
    return dict(zip(SUMMED, sums, strict=True))


def number_detail_view(state: NumberState, sent: Mapping[datetime, int], now: datetime) -> dict[str, Any]:
    """One number with its failures and its series. `sent`: as it is stored, by minute."""
    return {
        **number_state_view(state, now),
        "failures": [{"at": each.at, "messageId": each.message_id, "code": each.code} for each in state.hour.failures],
        "series": [
            {
                "minute": (at := datetime.fromtimestamp(60 * each.minute, UTC)),
                "sent": sent.get(at, 0),
                "failed": each.failed,
                "queued": each.queued,
                "p95Ms": each.p95_ms,
            }
            for each in state.hour.series(minute_of(now))
        ],
    }


def actor_view(node: Node) -> dict[str, Any]:
    """One line of the tree."""
    view: dict[str, Any] = {
        "path": node.path,
        "kind": node.kind,
        "key": node.key,
        "state": node.state,
        "mailbox": node.mailbox,
        "handled": node.handled,
        "restarts": node.restarts,
    }
    if node.last_failure is not None:
        view["lastFailure"] = _failure(node.last_failure)
    if node.up_since is not None:
        view["upSince"] = node.up_since
    return view


def webhook_state_view(state: WebhookState, now: datetime) -> dict[str, Any]:
    """One subscription."""
    stored = state.stored
    return {
        "organizationId": stored.organization_id,
        "env": stored.env,
        "subscriptionId": stored.id,
        "status": stored.status,
        "inFlight": state.in_flight,
        "backlog": stored.backlog,
        "oldestAgeSeconds": _age(stored.oldest_at, now),
        **_calls(state.calls),
        "circuit": state.circuit,
    }


def provider_state_view(state: ProviderState, now: datetime) -> dict[str, Any]:
    """One connection to a provider."""
    view = {
        "env": state.env,
        "channel": state.channel,
        "provider": state.provider,
        "inFlight": state.in_flight,
        "backlog": state.backlog,
        "oldestAgeSeconds": _age(state.oldest_at, now),
        **_calls(state.calls),
        "circuit": state.circuit,
        "troubled": state.troubled,
    }
    return view if state.gateway is None else {**view, "gateway": state.gateway}


def _calls(calls: RecentCalls) -> dict[str, Any]:
    rate = calls.success_rate()
    p50, p95 = calls.percentiles(0.5, 0.95)
    return {"successRate": None if rate is None else round(rate, 4), "p50Ms": p50, "p95Ms": p95}


def _hold(hold: Hold) -> dict[str, Any]:
    return {"reason": hold.reason} if hold.until >= _UNTIL_KNOWN else {"reason": hold.reason, "until": hold.until}


def _failure(failure: Failure) -> dict[str, Any]:
    return {"at": failure.at, "type": failure.type, "where": failure.where}


def _age(since: datetime | None, now: datetime) -> int:
    return 0 if since is None else max(0, int((now - since).total_seconds()))
