"""A chat-app number: its states, its quality, its tier, and the rate that follows from them (C14.2, C14.5)."""

from enum import StrEnum
from typing import Final

from recado.domain.core.machine import Machine


class NumberStatus(StrEnum):
    """Only `connected` sends everything; `flagged` sends critical messages and replies."""

    PENDING = "pending"  # waits for the provider to verify it; asked again on a timer
    AVAILABLE = "available"  # verified; the customer connects it
    CONNECTED = "connected"  # in service; the customer or the provider moves it
    FLAGGED = "flagged"  # low quality; the provider clears or restricts it
    DISCONNECTED = "disconnected"  # out of service; the customer connects it again


IN_SERVICE: Final = frozenset({NumberStatus.CONNECTED, NumberStatus.FLAGGED})
"""The states in which a number sends at all."""


class QualityRating(StrEnum):
    """The provider's judgement of what recipients think of the number."""

    GREEN = "green"
    YELLOW = "yellow"
    RED = "red"
    UNKNOWN = "unknown"


class MessagingTier(StrEnum):
    """How many distinct recipients the number may address in a rolling day."""

    TIER_250 = "tier_250"
    TIER_1K = "tier_1k"
    TIER_2K = "tier_2k"
    TIER_10K = "tier_10k"
    TIER_100K = "tier_100k"
    UNLIMITED = "unlimited"


class NumberEvent(StrEnum):
    """What happens to a number. The comments name who says so."""

    VERIFIED = "verified"  # provider
    REFUSED = "refused"  # provider
    CONNECT = "connect"  # customer, once the provider has registered it
    DISCONNECT = "disconnect"  # customer
    LOST = "lost"  # provider
    FLAG = "flag"  # provider
    CLEAR = "clear"  # provider
    RESTRICT = "restrict"  # provider, after 7 days at low quality


_S = NumberStatus
_E = NumberEvent

NUMBER_MACHINE: Final = Machine(
    "number",
    {
        (_S.PENDING, _E.VERIFIED): _S.AVAILABLE,
        (_S.PENDING, _E.REFUSED): _S.DISCONNECTED,
        (_S.AVAILABLE, _E.CONNECT): _S.CONNECTED,
        (_S.DISCONNECTED, _E.CONNECT): _S.CONNECTED,
        (_S.CONNECTED, _E.FLAG): _S.FLAGGED,
        (_S.CONNECTED, _E.DISCONNECT): _S.DISCONNECTED,
        (_S.CONNECTED, _E.LOST): _S.DISCONNECTED,
        (_S.FLAGGED, _E.CLEAR): _S.CONNECTED,
        (_S.FLAGGED, _E.RESTRICT): _S.DISCONNECTED,
        (_S.FLAGGED, _E.DISCONNECT): _S.DISCONNECTED,
        (_S.FLAGGED, _E.LOST): _S.DISCONNECTED,
    },
    initial={"registered": _S.PENDING, "sandbox": _S.CONNECTED},
)

_REPORTED: dict[tuple[NumberStatus, NumberStatus], NumberEvent] = {
    (_S.PENDING, _S.AVAILABLE): _E.VERIFIED,
    (_S.PENDING, _S.DISCONNECTED): _E.REFUSED,
    (_S.CONNECTED, _S.FLAGGED): _E.FLAG,
    (_S.CONNECTED, _S.DISCONNECTED): _E.LOST,
    (_S.FLAGGED, _S.CONNECTED): _E.CLEAR,
    (_S.FLAGGED, _S.DISCONNECTED): _E.RESTRICT,
}


def what_to_do(status: NumberStatus, env: str, number_id: str) -> str:
    """What a number in this state waits for, and how it sends everything again: the rest of a sentence (C4.1)."""
    connect = f"POST /numbers/{number_id}/connect"
    match status:
        case NumberStatus.PENDING:
            return f"the provider has not verified it yet; wait until it is available, then {connect}"
        case NumberStatus.AVAILABLE | NumberStatus.DISCONNECTED:
            return f"connect it with {connect}"
        case NumberStatus.FLAGGED:
            how = "send less, and to people who asked for it"
            if env == "test":
                how = f"in test, POST /v2/sandbox/numbers/{number_id} with status connected does"
            return f"only critical messages and replies leave until the provider clears it; {how}"
        case NumberStatus.CONNECTED:
            return "it is in service already"


def reported_event(status: NumberStatus, reported: NumberStatus) -> NumberEvent | None:
    """What a provider's report of a status means now; None when it changes nothing: only the customer connects."""
    return _REPORTED.get((status, reported))


TIER_LIMITS: Final[dict[MessagingTier, int | None]] = {
    MessagingTier.TIER_250: 250,
    MessagingTier.TIER_1K: 1_000,
    MessagingTier.TIER_2K: 2_000,
    MessagingTier.TIER_10K: 10_000,
    MessagingTier.TIER_100K: 100_000,
    MessagingTier.UNLIMITED: None,
}

DEFAULT_PER_SECOND: Final = 80
DEFAULT_PER_DAY: Final = 100_000
PER_SECOND_BOUNDS: Final = (1, 1_000)
PER_DAY_BOUNDS: Final = (1, 10_000_000)

_QUALITY_FACTOR: dict[QualityRating, float] = {
    QualityRating.GREEN: 1.0,
    QualityRating.UNKNOWN: 1.0,
    QualityRating.YELLOW: 0.5,
    QualityRating.RED: 0.25,
}


def effective_per_second(per_second: int, quality: QualityRating) -> float:
    """The messages a second that the number may send at this quality (C14.5); below 1 for slow numbers gone bad."""
    return per_second * _QUALITY_FACTOR[quality]
