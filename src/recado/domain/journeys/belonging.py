"""Whether a message that had left still goes on another way, and whose row of the queue it is then (C14.5, C17.2)."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from recado.domain.batches.batch import BatchStatus
from recado.domain.core.ids import created_at
from recado.domain.journeys.execution import WITHDRAWS


class QueueOwner(NamedTuple):
    """Whose turns and pauses a queued message has (C14.5.2). `source`: what kind of owner that is."""

    id: str
    source: str


SINGLE: Final = QueueOwner("single", "single")
"""It belongs to nothing."""


@dataclass(frozen=True, slots=True)
class Belonging:
    """Whom a message belongs to, as they are now: its recipient, its batch, its journey and execution.

    `batch_over_at`: since when the batch has been canceled or completed. `journey_withdrawn`: a customer archived the
    journey. `test_id`: of the execution when it is a test. `end_reason`: what ended the execution.
    """

    has_recipient: bool
    batch_id: str | None
    batch_status: str | None
    batch_over_at: datetime | None
    journey_id: str | None
    journey_withdrawn: bool
    test_id: str | None
    end_reason: str | None

    def owner(self, message_id: str) -> QueueOwner | None:
        """Whose it is when it is queued once more; None: it is not, for what its owner had queued was withdrawn."""
        if not self.has_recipient:
            return None
        if self.journey_id is not None:
            # A version that is over because another took its place lets go what it has made (C9.11.3).
            if self.journey_withdrawn or self.end_reason in WITHDRAWS:
                return None
            return QueueOwner(self.test_id or self.journey_id, "journey")
        if self.batch_id is None:
            return SINGLE
        if self.batch_status != BatchStatus.CANCELED:
            return QueueOwner(self.batch_id, "batch")
        # What was sent again after the cancel is counted there, and belongs to itself (C15.5).
        made_later = self.batch_over_at is not None and created_at(message_id) > self.batch_over_at
        return SINGLE if made_later else None
