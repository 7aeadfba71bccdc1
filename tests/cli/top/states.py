"""States of numbers as the service renders them (C34.2)."""

from typing import Any


def number(serial: int, **said: Any) -> dict[str, Any]:
    """A number in good order, and what the test says of it."""
    return {
        "organizationId": "org_" + "1" * 21,
        "env": "test",
        "numberId": f"num_{serial:021d}",
        "displayPhone": f"+55*******{serial % 10_000:04d}",
        "status": "connected",
        "qualityRating": "green",
        "messagingTier": "unlimited",
        "actor": {"state": "running", "restarts": 0},
        "rate": {"perSecond": 80.0, "tokens": 80.0, "sentLastSecond": 0, "sentLastMinute": 0},
        "day": {"used": 0, "limit": 100_000},
        "tier": {"used": None, "limit": None},
        "queue": {"critical": 0, "normal": 0, "bulk": 0, "scheduled": 0},
        "oldestAgeSeconds": 0,
        "inFlight": 0,
        "uncertain": 0,
        "errorRate5m": 0.0,
        "lastErrors": {},
        "breaker": "closed",
        **said,
    }


def due(count: int) -> dict[str, int]:
    """A queue."""
    return {"critical": 0, "normal": 0, "bulk": count, "scheduled": 0}
