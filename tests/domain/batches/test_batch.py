"""The states of a batch (C15.5)."""

import pytest

from recado.domain.batches.batch import BATCH_MACHINE, BatchEvent, BatchStatus
from recado.domain.core.machine import IllegalMove

OVER = (BatchStatus.COMPLETED, BatchStatus.CANCELED, BatchStatus.FAILED)


def test_a_batch_that_is_over_does_nothing_more() -> None:
    for status in OVER:
        for event in BatchEvent:
            with pytest.raises(IllegalMove):
                BATCH_MACHINE.move(status, event)


def test_every_batch_that_is_not_over_can_be_cancelled() -> None:
    assert BATCH_MACHINE.sources(BatchEvent.CANCEL) == set(BatchStatus) - set(OVER)


def test_a_pause_ends_where_it_began_or_in_a_cancel() -> None:
    after = {event: target for source, event, target in BATCH_MACHINE.transitions() if source is BatchStatus.PAUSED}
    assert after == {
        BatchEvent.RESUME_BUILDING: BatchStatus.BUILDING,
        BatchEvent.RESUME: BatchStatus.RUNNING,
        BatchEvent.CANCEL: BatchStatus.CANCELED,
    }


def test_only_a_batch_that_is_built_completes() -> None:
    assert BATCH_MACHINE.sources(BatchEvent.EMPTIED) == {BatchStatus.RUNNING}
