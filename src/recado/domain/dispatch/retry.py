"""How long to wait before another try: messages by a fixed list, everything else by doubling."""

from typing import Final

MAX_ATTEMPTS: Final = 5
RETRY_DELAYS: Final = (5.0, 30.0, 120.0, 600.0)
"""Seconds after the first, second, third and fourth transient refusal of a message (C15.4)."""
REPEAT_WITHIN: Final = 5 * 3600.0
"""Seconds after a call of unknown outcome in which its repeat must begin (C29.2).

So the fifth call comes less than a day after the first: for so long an idempotent adapter knows the message's key.
"""


def retry_delay(attempts: int) -> float | None:
    """Seconds until a message that was refused for now is tried again, after `attempts` (≥ 1) of them.

    None after the last one: it fails.
    """
    return RETRY_DELAYS[attempts - 1] if attempts < MAX_ATTEMPTS else None


def backoff(n: int, first: float, ceiling: float) -> float:
    """Seconds to wait after the n-th failure in a row (n ≥ 1): `first`, doubling, never above `ceiling`."""
    return min(ceiling, first * 2.0 ** min(n - 1, 64))
