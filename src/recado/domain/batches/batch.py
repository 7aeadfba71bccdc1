"""A batch: many messages by one request, and what it can be (C15.5)."""

from enum import StrEnum
from typing import Final

from recado.domain.core.machine import Machine

BLOCK: Final = 1_000  # rows made in one commit
MAX_RECIPIENTS: Final = 10_000  # in a body (C31)
MAX_ERRORS: Final = 100  # recipients whose refusal the record tells
NO_BALANCE: Final = "no_balance"  # why a batch paused itself (C25.2.3)
DUPLICATE: Final = "DUPLICATE_RECIPIENT"  # the one reason to skip that is no code of a problem


class BatchStatus(StrEnum):
    """The states; a batch that is none of the first three has no message waiting, or soon none."""

    BUILDING = "building"  # its rows are being made, a block a commit; those made leave at once
    RUNNING = "running"  # all rows are made; the last one to leave or to end completes it
    PAUSED = "paused"  # by a caller, or by a block that was not covered; only a caller resumes it
    COMPLETED = "completed"
    CANCELED = "canceled"  # by a caller
    FAILED = "failed"  # no recipient was accepted


class BatchEvent(StrEnum):
    """What happens to a batch. The comments name who says so."""

    BUILT = "built"  # the builder: all rows are made
    NOTHING_BUILT = "nothing_built"  # the builder: none was accepted
    PAUSE = "pause"  # a caller
    NOT_COVERED = "not_covered"  # the builder: the wallet does not cover the next block
    RESUME_BUILDING = "resume_building"  # a caller, while rows are left to be made
    RESUME = "resume"  # a caller
    CANCEL = "cancel"  # a caller
    EMPTIED = "emptied"  # the settlement of its last queued or sending message


_S = BatchStatus
_E = BatchEvent

BATCH_MACHINE: Final = Machine(
    "batch",
    {
        (_S.BUILDING, _E.BUILT): _S.RUNNING,
        (_S.BUILDING, _E.NOTHING_BUILT): _S.FAILED,
        (_S.BUILDING, _E.PAUSE): _S.PAUSED,
        (_S.BUILDING, _E.NOT_COVERED): _S.PAUSED,
        (_S.RUNNING, _E.PAUSE): _S.PAUSED,
        (_S.PAUSED, _E.RESUME_BUILDING): _S.BUILDING,
        (_S.PAUSED, _E.RESUME): _S.RUNNING,
        (_S.BUILDING, _E.CANCEL): _S.CANCELED,
        (_S.RUNNING, _E.CANCEL): _S.CANCELED,
        (_S.PAUSED, _E.CANCEL): _S.CANCELED,
        (_S.RUNNING, _E.EMPTIED): _S.COMPLETED,
    },
    initial={"accepted": _S.BUILDING},
)
