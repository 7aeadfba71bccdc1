"""The figures at the end of a load test."""

import math
from collections.abc import Sequence
from typing import Any

from recado.loadtest.generator import Outcomes
from recado.loadtest.verification import Verification

SHARES = (("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p999", 0.999), ("max", 1.0))


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """Return the values below which the shares lie (nearest rank), and the greatest; empty without values."""
    ordered = sorted(values)
    if not ordered:
        return {}
    return {name: ordered[math.ceil(share * len(ordered)) - 1] for name, share in SHARES}


def as_json(
    outcomes: Outcomes,
    verification: Verification,
    *,
    campaign_id: str,
    seconds: float,
    interrupted: bool = False,
    topped_up_coins: int = 0,
) -> dict[str, Any]:
    """Return the whole report; latencies in milliseconds, times to sent in seconds."""
    latencies = {name: round(value * 1_000, 3) for name, value in percentiles(outcomes.latencies).items()}
    to_sent = {name: round(value, 3) for name, value in percentiles(verification.seconds_to_sent).items()}
    return {
        "campaignId": campaign_id,
        "seconds": round(seconds, 3),
        "requests": outcomes.requested,
        "accepted": len(outcomes.accepted),
        "acceptedPerSecond": round(len(outcomes.accepted) / seconds, 1) if seconds else 0.0,
        "acceptLatencyMs": latencies,
        "refusals": dict(outcomes.refusals.most_common()),
        "unanswered": outcomes.unanswered,
        "left": verification.left,
        "secondsToSent": to_sent,
        "numbers": [
            {"numberId": each.number_id, "perSecond": each.per_second, "left": each.left, "busiestSecond": each.peak}
            for each in verification.numbers
        ],
        "toppedUpCoins": topped_up_coins,
        "interrupted": interrupted,
        "ok": not verification.problems,
        "problems": verification.problems,
    }
