"""Which batches and journeys hold their messages back, known to every lane: the gate `owner_paused` of C14.5.

The rows of `batches` and `journeys` are the truth; this is read from them at the start and every minute, and changed
after each commit that moves one.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from recado.domain.batches.batch import BatchStatus
from recado.domain.messages.owner_pauses import OwnerPauses, with_pause
from recado.storage.batches.batches import OpenBatch

Told = Callable[..., None]
"""The name of a method, and what it was given: whoever repeats it from the same state on knows the same."""

State = tuple[set[str], "dict[str, _Pauses]", set[str], dict[str, OwnerPauses]]
"""Batches that are held, and their pauses; journeys likewise."""

_HELD = frozenset({BatchStatus.PAUSED.value, BatchStatus.CANCELED.value})
_MILLISECOND = timedelta(milliseconds=1)


@dataclass(slots=True)
class _Pauses:
    """Is put in the place of the one before, and never changed: it may be on its way to another process.

    `held_ms`: past pauses; `early_ms`: the part of them before `scheduled_at`, when the batch's messages are due.

    `past`: begin and end of the last of them, of those that this process saw end.
    """

    held_ms: int
    paused_at: datetime | None
    early_ms: int = 0
    scheduled_at: datetime | None = None
    past: tuple[datetime, ...] = ()


_NONE = _Pauses(0, None)


class Owners:
    """Owners of rows: batches and journeys by their id. Those that never stood still are not in here."""

    __slots__ = ("_held", "_journeys", "_journeys_held", "_pauses", "told")

    def __init__(self) -> None:
        self.told: Told | None = None  # hears of each change: its method, and what that was given
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
        held |= self._held.intersection(moved)
        pauses |= {owner: self._pauses[owner] for owner in moved if owner in self._pauses}
        self.differ(
            tuple(held - self._held),
            tuple(self._held - held),
            {owner: each for owner, each in pauses.items() if self._pauses.get(owner) != each},
            tuple(owner for owner in self._pauses if owner not in pauses),
        )

    def differ(
        self,
        held: Collection[str],
        held_no_more: Collection[str],
        pauses: Mapping[str, _Pauses],
        known_no_more: Collection[str],
    ) -> None:
        """Know this of batches, otherwise than before."""
        if not (held or held_no_more or pauses or known_no_more):
            return
        self._tell("differ", held, held_no_more, pauses, known_no_more)
        self._held.update(held)
        self._held.difference_update(held_no_more)
        self._pauses.update(pauses)
        for owner in known_no_more:
            del self._pauses[owner]

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
        self._tell("journey", stands)
        self._journeys[stands.owner] = stands
        if stands.paused_at is None:
            self._journeys_held.discard(stands.owner)
        else:
            self._journeys_held.add(stands.owner)
        return True

    def keep_journeys(self, owners: Collection[str]) -> None:
        """All other journeys are over, or gone."""
        self.forget_journeys([each for each in self._journeys if each not in owners])

    def forget_journeys(self, owners: Collection[str]) -> None:
        """These are over, or gone."""
        if not owners:
            return
        self._tell("forget_journeys", owners)
        for owner in owners:
            del self._journeys[owner]
            self._journeys_held.discard(owner)

    # Batches ----------------------------------------------------------------------------------------------------------

    def paused(self, owner: str, at: datetime) -> None:
        """The owner was paused."""
        self._tell("paused", owner, at)
        self._held.add(owner)
        self._pauses[owner] = replace(self._pauses.get(owner, _NONE), paused_at=at)

    def resumed(self, owner: str, held_ms: int, *, early_ms: int = 0, scheduled_at: datetime | None = None) -> None:
        """The owner goes on, after having stood still for so long in all, and so long before it was scheduled."""
        self._tell("resumed", owner, held_ms, early_ms=early_ms, scheduled_at=scheduled_at)
        self._held.discard(owner)
        self._pauses[owner] = _Pauses(held_ms, None, early_ms, scheduled_at, self._past(owner, held_ms))

    def canceled(self, owner: str, at: datetime) -> None:
        """None of its messages leaves any more; nor does one outlive its time before it is archived."""
        self._tell("canceled", owner, at)
        self._held.add(owner)
        pauses = self._pauses.get(owner, _NONE)
        self._pauses[owner] = replace(pauses, paused_at=pauses.paused_at or at)

    def gone(self, owner: str) -> None:
        """Nothing of the owner waits any more."""
        self._tell("gone", owner)
        self._held.discard(owner)
        self._pauses.pop(owner, None)

    # Other processes --------------------------------------------------------------------------------------------------

    @property
    def state(self) -> "State":
        """All that is known now, for a process that begins to follow."""
        return set(self._held), dict(self._pauses), set(self._journeys_held), dict(self._journeys)

    def restore(self, state: "State") -> None:
        """Know this, and nothing else."""
        self._held, self._pauses, self._journeys_held, self._journeys = state

    def _tell(self, method: str, *given: Any, **named: Any) -> None:
        if self.told is not None:
            self.told(method, *given, **named)
