"""Which batches stand still, and since when (C14.5, held and TTL)."""

from datetime import UTC, datetime, timedelta

from recado.domain.batches.batch import BatchStatus
from recado.services.dispatch.owners import Owners
from recado.storage.batches.batches import OpenBatch

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def open_batch(batch_id: str, status: BatchStatus, held_ms: int = 0, paused_at: datetime | None = None) -> OpenBatch:
    return OpenBatch("org_1", "test", batch_id, "chatapp", "num_1", status, held_ms, paused_at, 0, None)


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


def test_a_pause_before_the_batch_is_due_counts_for_none_but_those_that_were_due_earlier() -> None:
    owners, due_at = Owners(), NOW + 10 * MINUTE
    owners.resumed("b", 300_000, early_ms=240_000, scheduled_at=due_at)
    assert owners.held_ms("b", due_at, due_at + 30 * MINUTE) == 60_000
    assert owners.held_ms("b", NOW, due_at + 30 * MINUTE) == 300_000  # forced
    owners.paused("b", due_at + 30 * MINUTE)
    assert owners.held_ms("b", due_at, due_at + 31 * MINUTE) == 120_000


def test_a_pause_that_lasts_counts_from_when_the_message_was_due() -> None:
    owners = Owners()
    owners.resumed("b", 60_000)
    owners.paused("b", NOW + 4 * MINUTE)
    assert owners.held_ms("b", NOW + 5 * MINUTE, NOW + 8 * MINUTE) == 180_000  # bounded by its age
    assert owners.held_ms("b", NOW + 2 * MINUTE, NOW + 8 * MINUTE) == 300_000
    owners.resumed("c", 60_000, early_ms=60_000, scheduled_at=NOW + 5 * MINUTE)
    owners.paused("c", NOW + 4 * MINUTE)
    assert owners.held_ms("c", NOW + 5 * MINUTE, NOW + 8 * MINUTE) == 180_000


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
