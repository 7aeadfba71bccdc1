"""Which batches stand still, and since when (C14.5, held and TTL)."""

from datetime import UTC, datetime, timedelta

from recado.actors.owners import Owners
from recado.domain.batch import BatchStatus
from recado.storage.batches import OpenBatch

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def open_batch(batch_id: str, status: BatchStatus, held_ms: int = 0, paused_at: datetime | None = None) -> OpenBatch:
    return OpenBatch("org_1", "test", batch_id, "num_1", status, held_ms, paused_at)


def test_paused_and_cancelled_batches_hold_their_messages() -> None:
    owners = Owners()
    owners.load([open_batch(status, status) for status in BatchStatus])
    assert {status for status in BatchStatus if owners.holds(status)} == {BatchStatus.PAUSED, BatchStatus.CANCELED}
    assert not owners.holds("single")


def test_a_pause_counts_from_when_the_message_was_due() -> None:
    owners = Owners()
    owners.load([open_batch("b", BatchStatus.PAUSED, held_ms=120_000, paused_at=NOW - MINUTE)])
    assert owners.held_ms("b", NOW - 10 * MINUTE, NOW) == 180_000
    assert owners.held_ms("b", NOW - 2 * MINUTE, NOW) == 120_000
    assert owners.held_ms("b", NOW + MINUTE, NOW) == 0
    assert owners.held_ms("single", NOW - MINUTE, NOW) == 0


def test_what_is_over_is_forgotten() -> None:
    owners = Owners()
    owners.paused("b", NOW)
    owners.canceled("b", NOW)
    owners.gone("b")
    assert not owners.holds("b")
    assert owners.held_ms("b", NOW - MINUTE, NOW) == 0


def test_what_is_read_again_replaces_what_was_known() -> None:
    owners = Owners()
    owners.paused("resumed meanwhile", NOW)
    owners.load([open_batch("b", BatchStatus.PAUSED, paused_at=NOW)])
    assert owners.holds("b")
    assert not owners.holds("resumed meanwhile")
    assert owners.held_ms("resumed meanwhile", NOW - MINUTE, NOW + MINUTE) == 0


def test_what_is_cancelled_stands_still_since_its_pause_or_else_its_cancel() -> None:
    owners = Owners()
    owners.paused("paused before", NOW - MINUTE)
    for owner in ("paused before", "running before"):
        owners.canceled(owner, NOW)
    due_at, later = NOW - 5 * MINUTE, NOW + MINUTE
    assert [owners.held_ms(owner, due_at, later) for owner in ("paused before", "running before")] == [120_000, 60_000]
