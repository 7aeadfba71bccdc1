"""Refusals of the last minutes: of devices and people whose notifications were claimed already (C12.5.3, C22.3).

Bounded in all and by organization. What is forgotten before its time is told as a moment: who looked at a device before
that looks again.
"""

import math
from collections import OrderedDict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

Refuser = Hashable
"""A device's id, or a recipient: organization, environment, `recipient_hash`."""


@dataclass(slots=True)
class _OfOrganization:
    """Refusals in two halves: `later` since `began`, `earlier` until then. `forgotten`: none before is known."""

    began: float
    later: dict[Refuser, float] = field(default_factory=dict)
    earlier: dict[Refuser, float] = field(default_factory=dict)
    forgotten: float = -math.inf

    def __len__(self) -> int:
        return len(self.later) + len(self.earlier)

    def turn(self, now: float) -> int:
        """Forget the earlier half, and begin a new one; answers how many are forgotten."""
        gone = len(self.earlier)
        if gone:
            self.forgotten = self.began
        self.earlier, self.later, self.began = self.later, {}, now
        return gone


class RecentRefusals:
    """Remembers who refused, at least `seconds` where there is room. Moments are those of a monotonic clock."""

    def __init__(self, *, seconds: float, most: int, most_of_organization: int) -> None:
        self._seconds = seconds
        self._most = most
        self._half = most_of_organization // 2
        self._count = 0
        self._known: OrderedDict[str, _OfOrganization] = OrderedDict()  # who was told of last comes last

    def __len__(self) -> int:
        return self._count

    def add(self, organization_id: str, refusers: Iterable[Refuser], now: float) -> None:
        """They refused, and it is committed."""
        self.tidy(now)
        known = self._known.setdefault(organization_id, _OfOrganization(now))
        self._known.move_to_end(organization_id)
        for each in refusers:
            if len(known.later) >= self._half or now - known.began >= self._seconds:
                self._count -= known.turn(now)
            while self._count >= self._most:  # who has most forgets
                self._count -= max(self._known.values(), key=len).turn(now)
            self._count += each not in known.later
            known.later[each] = now

    def tidy(self, now: float) -> None:
        """Let an organization go that had none for long: one at a time, however many there are."""
        idle = next(iter(self._known), None)
        if idle is not None and now - self._known[idle].began >= 2 * self._seconds:
            self._count -= len(self._known.pop(idle))

    def since(self, organization_id: str, refusers: Iterable[Refuser | None], moment: float) -> bool:
        """Whether one of them refused then or later."""
        known = self._known.get(organization_id)
        if known is None:
            return False
        halves = (known.later, known.earlier)
        return any(half.get(each, -math.inf) >= moment for each in refusers for half in halves)

    def forgotten(self, organization_id: str) -> float:
        """The moment before which its refusals are not known any more: what was looked at before that is outdated."""
        known = self._known.get(organization_id)
        return -math.inf if known is None else known.forgotten
