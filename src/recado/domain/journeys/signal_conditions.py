"""What a signal condition decides about an earlier send: its branch, a wait, or that nobody knows (C9.6)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum, auto
from typing import Final

from recado.domain.journeys.execution import Awaited, EndReason, TrailResult
from recado.domain.journeys.graph import StepChannel, StepSignal
from recado.domain.journeys.outcomes import Advance, Await, EndExecution
from recado.domain.journeys.steps import SignalCondition

UNDETERMINED_FOR: Final = timedelta(hours=24)
"""How long after its window a condition waits for the outcome of a send that may have left."""
HURRIED_WINDOW: Final = timedelta(seconds=60)
"""How long a window lasts in a test that leaves waits out: no step has a shorter one."""

ANSWERED_ON: Final[Mapping[str, tuple[str, ...]]] = {
    StepChannel.CHATAPP: (StepChannel.CHATAPP.value,),
    StepChannel.SMS: (StepChannel.SMS.value,),
    StepChannel.RCS: (StepChannel.RCS.value, StepChannel.SMS.value),
}
"""By the channel of a send, where an answer to it may come (C9.6)."""


class SendState(Enum):
    """How an earlier send stands."""

    QUEUED = auto()
    SENDING = auto()  # dispatched; no answer yet
    UNKNOWN = auto()  # dispatched; it may have left, also when its message failed by an unknown outcome
    ACCEPTED = auto()  # the provider has it
    FAILED = auto()  # for certain, before or after its dispatch; its message was withdrawn or expired, too
    SKIPPED = auto()  # there is no message


_MAY_HAVE_LEFT: Final = (SendState.SENDING, SendState.UNKNOWN)
_NEVER_ARRIVES: Final = (SendState.FAILED, SendState.SKIPPED)


@dataclass(frozen=True, slots=True)
class EarlierSend:
    """What is known of it. `since`: its dispatch; of one that was never dispatched, when it failed or was skipped.

    `since` is None while the message is queued, for the first time or again, and only then. `seen`: when each signal
    came first, from `since` on; what counts as one on the send's channel is the table of C9.6. A conversion counts by
    its `occurredAt`.
    """

    state: SendState
    since: datetime | None
    seen: Mapping[StepSignal, datetime] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if (self.since is None) is not (self.state is SendState.QUEUED):
            raise ValueError("only a queued send has no moment from which its window counts")


def decide_signal(
    step: SignalCondition, earlier: EarlierSend | None, now: datetime, *, hurried: bool
) -> Advance | Await | EndExecution:
    """Which way to go on, or until when to wait. `earlier` None: the execution never passed that send."""
    yes, no = Advance(step.yes, TrailResult.YES), Advance(step.no, TrailResult.NO)
    if earlier is None:
        return no
    if earlier.since is None:
        return Await(Awaited.SIGNAL, None)
    end = earlier.since + (HURRIED_WINDOW if hurried else timedelta(minutes=step.window_minutes))
    seen_at = earlier.seen.get(step.signal)
    if seen_at is not None and seen_at <= end:
        return yes
    if earlier.state in _NEVER_ARRIVES and step.signal is not StepSignal.CONVERTEU:
        return no
    if now < end:
        return Await(Awaited.SIGNAL, end)
    if earlier.state in _MAY_HAVE_LEFT:
        latest = end + UNDETERMINED_FOR
        return Await(Awaited.SIGNAL, latest) if now < latest else EndExecution(EndReason.SEND_UNDETERMINED)
    return no
