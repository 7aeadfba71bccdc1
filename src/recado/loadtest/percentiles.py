"""Percentiles of what a load test measures."""

import math
from collections.abc import Sequence

SHARES = (("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p999", 0.999), ("max", 1.0))


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """Return the values below which the shares lie (nearest rank), and the greatest; empty without values."""
    ordered = sorted(values)
    if not ordered:
        return {}
    return {name: ordered[math.ceil(share * len(ordered)) - 1] for name, share in SHARES}
