"""A flow's states, what a provider's report of one means, and the rules of its screens (C19)."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final

from recado.domain.core.machine import Machine


class FlowStatus(StrEnum):
    """Only `active` is sendable."""

    DRAFT = "draft"  # the customer publishes it
    ACTIVE = "active"
    PAUSED = "paused"  # by the customer, or by the provider until it clears it
    DEPRECATED = "deprecated"
    ARCHIVED = "archived"  # terminal


class FlowProviderStatus(StrEnum):
    """What the provider says of it."""

    DRAFT = "DRAFT"
    PUBLISHED = "PUBLISHED"
    DEPRECATED = "DEPRECATED"
    BLOCKED = "BLOCKED"
    THROTTLED = "THROTTLED"


class FlowCategory(StrEnum):
    """What the flow is for."""

    SIGN_UP = "SIGN_UP"
    SIGN_IN = "SIGN_IN"
    APPOINTMENT_BOOKING = "APPOINTMENT_BOOKING"
    LEAD_GENERATION = "LEAD_GENERATION"
    CONTACT_US = "CONTACT_US"
    CUSTOMER_SUPPORT = "CUSTOMER_SUPPORT"
    SURVEY = "SURVEY"
    OTHER = "OTHER"


class FlowEvent(StrEnum):
    """What happens to a flow. The comments name who says so."""

    EDIT = "edit"  # customer
    PUBLISH = "publish"  # customer; the provider accepted it
    PAUSE = "pause"  # customer
    HOLD = "hold"  # provider throttles or blocks it
    RESUME = "resume"  # customer
    CLEAR = "clear"  # provider
    DEPRECATE = "deprecate"  # customer, or somebody at the provider
    ARCHIVE = "archive"  # customer


_S = FlowStatus
_E = FlowEvent

FLOW_MACHINE: Final = Machine(
    "flow",
    {
        (_S.DRAFT, _E.EDIT): _S.DRAFT,
        (_S.DRAFT, _E.PUBLISH): _S.ACTIVE,
        (_S.DRAFT, _E.ARCHIVE): _S.ARCHIVED,
        (_S.ACTIVE, _E.PAUSE): _S.PAUSED,
        (_S.ACTIVE, _E.HOLD): _S.PAUSED,
        (_S.ACTIVE, _E.DEPRECATE): _S.DEPRECATED,
        (_S.ACTIVE, _E.EDIT): _S.DRAFT,
        (_S.PAUSED, _E.HOLD): _S.PAUSED,
        (_S.PAUSED, _E.RESUME): _S.ACTIVE,
        (_S.PAUSED, _E.CLEAR): _S.ACTIVE,
        (_S.PAUSED, _E.DEPRECATE): _S.DEPRECATED,
        (_S.PAUSED, _E.EDIT): _S.DRAFT,
        (_S.DEPRECATED, _E.ARCHIVE): _S.ARCHIVED,
    },
    initial={"created": _S.DRAFT},
)


_REPORTED: Final = {
    (_S.ACTIVE, FlowProviderStatus.THROTTLED): _E.HOLD,
    (_S.ACTIVE, FlowProviderStatus.BLOCKED): _E.HOLD,
    (_S.ACTIVE, FlowProviderStatus.DEPRECATED): _E.DEPRECATE,
    (_S.PAUSED, FlowProviderStatus.THROTTLED): _E.HOLD,
    (_S.PAUSED, FlowProviderStatus.BLOCKED): _E.HOLD,
    (_S.PAUSED, FlowProviderStatus.PUBLISHED): _E.CLEAR,
    (_S.PAUSED, FlowProviderStatus.DEPRECATED): _E.DEPRECATE,
}


def reported_event(status: FlowStatus, reported: FlowProviderStatus) -> FlowEvent | None:
    """What a provider's report of a state means now; None: nothing."""
    return _REPORTED.get((status, reported))


def entry_screen(screens: Sequence[str], routes: Mapping[str, Sequence[str]]) -> str:
    """Where the flow begins: the first screen that no other one leads to."""
    entered = {target for targets in routes.values() for target in targets}
    return next((screen for screen in screens if screen not in entered), screens[0])


def has_cycle(routes: Mapping[str, Sequence[str]]) -> bool:
    """Whether some screen leads back to itself. Work: screens and routes, each once."""
    entering = dict.fromkeys(routes, 0)
    for targets in routes.values():
        for target in targets:
            entering[target] = entering.get(target, 0) + 1
    free = [screen for screen, count in entering.items() if count == 0]
    left = len(entering)
    while free:
        left -= 1
        for target in routes.get(free.pop(), ()):
            entering[target] -= 1
            if entering[target] == 0:
                free.append(target)
    return left > 0
