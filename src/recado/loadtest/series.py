"""A load test second by second: what was accepted, refused and sent, and how long an answer took."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from recado.loadtest.generator import Outcomes
from recado.loadtest.percentiles import percentiles
from recado.loadtest.verification import Verification

MOST_POINTS: Final = 600
_TOLD: Final = ("p50", "p95", "p99")


def series(outcomes: Outcomes, verification: Verification) -> list[dict[str, Any]]:
    """One point a second, of a longer run of as many whole seconds as make no more than 600.

    `second`: where it begins; `accepted`, `refused`, `sent`: messages a second; `acceptLatencyMs`: of what was accepted
    in it, empty where nothing was. What was sent is counted from the first message that the service made, by its clock.
    """
    last = max(max(each, default=0.0) for each in (outcomes.answered_at, outcomes.refused_at, verification.sent_at))
    width = 1 + int(last) // MOST_POINTS
    points = 1 + int(last) // width
    counts = [
        _counts(each, width, points) for each in (outcomes.answered_at, outcomes.refused_at, verification.sent_at)
    ]
    latencies: list[list[float]] = [[] for _ in range(points)]
    for at, latency in zip(outcomes.answered_at, outcomes.latencies, strict=True):
        latencies[int(at) // width].append(latency)
    return [
        {
            "second": width * point,
            "accepted": round(accepted / width, 3),
            "refused": round(refused / width, 3),
            "sent": round(sent / width, 3),
            "acceptLatencyMs": _milliseconds(latencies[point]),
        }
        for point, (accepted, refused, sent) in enumerate(zip(*counts, strict=True))
    ]


def _counts(moments: Iterable[float], width: int, points: int) -> list[int]:
    counts = [0] * points
    for at in moments:
        counts[int(at) // width] += 1
    return counts


def _milliseconds(latencies: Sequence[float]) -> dict[str, float]:
    found = percentiles(latencies)
    return {name: round(1_000 * found[name], 3) for name in _TOLD} if found else {}
