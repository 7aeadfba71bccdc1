"""Which batches and journeys hold their messages back, known to every lane: the gate `owner_paused` of C14.5.

The rows of `batches` and `journeys` are the truth; this is read from them at the start and every minute, and changed
after each commit that moves one.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from recado.domain.batches.batch import BatchStatus
from recado.domain.messages.owner_pauses import OwnerPauses, with_pause
from recado.storage.batches.batches import OpenBatch

_HELD = frozenset({BatchStatus.PAUSED.value, BatchStatus.CANCELED.value})
_MILLISECOND = timedelta(milliseconds=1)


@dataclass(slots=True)
class _Pauses:
    """`held_ms`: past pauses; `early_ms`: the part of them before `scheduled_at`, when the batch's messages are due.

    `past`: begin and end of the last of them, of those that this process saw end.
    """

    held_ms: int
    paused_at: datetime | None
    early_ms: int = 0
    scheduled_at: datetime | None = None
    past: tuple[datetime, ...] = ()


class Owners:
    """Owners of rows: batches and journeys by their id. Those that never stood still are not in here."""

    __slots__ = ("_held", "_journeys", "_journeys_held", "_pauses")

    def __init__(self) -> None:
        self._held: set[str] = set()
        self._pauses: dict[str, _Pauses] = {}
        self._journeys_held: set[str] = set()
        self._journeys: dict[str, OwnerPauses] = {}

    def load(self, batches: list[OpenBatch], *, moved: Collection[str] = ()) -> None:
        """Know these batches, which are all that are not at rest, and no others.

        `moved`: ids of those that were moved while these were read; what is known of them is newer.
        """
        read = [batch for batch in batches if batch.id not in moved]
        held = {batch.id for batch in read if batch.status in _HELD}
        pauses = {
            batch.id: _Pauses(
                batch.held_ms, batch.paused_at, batch.early_ms, batch.scheduled_at, self._past(batch.id, batch.held_ms)
            )
            for batch in read
            if batch.held_ms or batch.paused_at is not None
        }
        self._held = held | self._held.intersection(moved)
        self._pauses = pauses | {owner: self._pauses[owner] for owner in moved if owner in self._pauses}

    def holds(self, owner: str) -> bool:
        """Whether no message of this owner may leave now."""
        return owner in self._held or owner in self._journeys_held

    def held_ms(self, owner: str, due_at: datetime, now: datetime) -> int:
        """Time that messages of the owner stood still since `due_at`: it does not count towards their TTL (C14.5)."""
        if (journey := self._journeys.get(owner)) is not None:
            return journey.held_ms(due_at, now)
        pauses = self._pauses.get(owner)
        if pauses is None or now <= due_at:
            return 0
        held = pauses.held_ms
        if pauses.scheduled_at is not None and due_at >= pauses.scheduled_at:  # a forced message was due earlier
            held = max(0, held - pauses.early_ms)
        if pauses.paused_at is not None and pauses.paused_at < now:
            held += (now - max(pauses.paused_at, due_at)) // _MILLISECOND
        return min(held, (now - due_at) // _MILLISECOND)

    def pauses(self, owner: str, now: datetime) -> Sequence[tuple[datetime, datetime]]:
        """Begin and end of the owner's pauses that are known, one after the other; of the present one, now (C34.4)."""
        if (journey := self._journeys.get(owner)) is not None:
            return list(journey.spans(now))
        pauses = self._pauses.get(owner)
        if pauses is None:
            return ()
        spans = list(zip(pauses.past[::2], pauses.past[1::2], strict=True))
        return spans if pauses.paused_at is None else [*spans, (pauses.paused_at, now)]

    def _past(self, owner: str, held_ms: int) -> tuple[datetime, ...]:
        """Its past pauses, with the one that ended just now, when it stood still for so long in all."""
        known = self._pauses.get(owner)
        if known is None:
            return ()
        if known.paused_at is None or held_ms <= known.held_ms:
            return known.past
        return with_pause(known.past, known.paused_at, known.paused_at + (held_ms - known.held_ms) * _MILLISECOND)

    # Journeys ---------------------------------------------------------------------------------------------------------

    def journey(self, stands: OwnerPauses) -> bool:
        """Know how a journey stands; False when that, or something newer, is known. It may be told in any order."""
        known = self._journeys.get(stands.owner)
        if known is None and stands.paused_at is None and not stands.past:
            return False
        if known is not None and known.revision >= stands.revision:
            return False
        self._journeys[stands.owner] = stands
        if stands.paused_at is None:
            self._journeys_held.discard(stands.owner)
        else:
            self._journeys_held.add(stands.owner)
        return True

    def keep_journeys(self, owners: Collection[str]) -> None:
        """All other journeys are over, or gone."""
        for owner in [each for each in self._journeys if each not in owners]:
            del self._journeys[owner]
            self._journeys_held.discard(owner)

    # Batches ----------------------------------------------------------------------------------------------------------

    def paused(self, owner: str, at: datetime) -> None:
        """The owner was paused."""
        self._held.add(owner)
        self._pauses.setdefault(owner, _Pauses(0, None)).paused_at = at

    def resumed(self, owner: str, held_ms: int, *, early_ms: int = 0, scheduled_at: datetime | None = None) -> None:
        """The owner goes on, after having stood still for so long in all, and so long before it was scheduled."""
        self._held.discard(owner)
        self._pauses[owner] = _Pauses(held_ms, None, early_ms, scheduled_at, self._past(owner, held_ms))

    def canceled(self, owner: str, at: datetime) -> None:
        """None of its messages leaves any more; nor does one outlive its time before it is archived."""
        self._held.add(owner)
        pauses = self._pauses.setdefault(owner, _Pauses(0, None))
        pauses.paused_at = pauses.paused_at or at

    def gone(self, owner: str) -> None:
        """Nothing of the owner waits any more."""
        self._held.discard(owner)
        self._pauses.pop(owner, None)
