"""How troubled a number is, for the order in which operators see them (C34.1): pure values."""

from enum import IntEnum
from typing import Final

from recado.domain.dispatch.breaker import BreakerState
from recado.domain.messages.message import WaitReason
from recado.domain.senders.number import NumberStatus, QualityRating

ERRORS_DOUBTED: Final = 0.1
"""The part of failures among the messages of five minutes from which on a number is in doubt."""


class Trouble(IntEnum):
    """The most troubled first."""

    NONE = 0
    DOUBTED = 1
    """It sends, but messages fail, outcomes are unknown, or its quality is low."""
    HELD = 2
    """Its messages wait for something that ends by itself, or that somebody decided."""
    DOWN = 3
    """Its messages wait, and somebody should look: its actor or the connection fails, or it is not in service."""


_BY_REASON: Final = {
    WaitReason.NO_CONNECTION: Trouble.DOWN,
    WaitReason.NUMBER_STATE: Trouble.DOWN,
    WaitReason.ORGANIZATION_SUSPENDED: Trouble.HELD,
    WaitReason.OPERATOR_PAUSED: Trouble.HELD,
    WaitReason.NUMBER_PAUSED: Trouble.HELD,
    WaitReason.DAILY_LIMIT: Trouble.HELD,
    WaitReason.TIER_LIMIT: Trouble.HELD,
    WaitReason.QUALITY: Trouble.HELD,
    WaitReason.TEMPLATE_STATE: Trouble.HELD,
}
_LOW: Final = frozenset({QualityRating.YELLOW, QualityRating.RED})


def trouble_of(
    *,
    waiting: int,
    reason: WaitReason | None,
    breaker: BreakerState,
    failing: bool,
    status: NumberStatus,
    quality: QualityRating,
    error_rate: float,
    uncertain: int,
) -> Trouble:
    """`waiting`: messages that are due; `reason`: what holds the first of them; `failing`: the actor backs off."""
    if failing or breaker is not BreakerState.CLOSED:
        return Trouble.DOWN
    held = _BY_REASON.get(reason, Trouble.NONE) if reason is not None and waiting else Trouble.NONE
    doubted = error_rate >= ERRORS_DOUBTED or uncertain or status is NumberStatus.FLAGGED or quality in _LOW
    return max(held, Trouble.DOUBTED if doubted else Trouble.NONE)
