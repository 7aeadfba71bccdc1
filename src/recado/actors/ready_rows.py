"""The ready messages of one number that are held in memory: a lane for each class, and the forced ones ahead of them.

A bounded window on the table. Whatever is forgotten here is read again, so forgetting is always safe.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from recado.actors.lane import Lane
from recado.actors.row import Row
from recado.domain.fairness import SmoothRoundRobin
from recado.domain.gates import FOREVER, Hold, Standing, class_hold
from recado.domain.message import CLASSES

WEIGHTS = (16, 4, 1)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to read next: `limit` rows of each owner of the class after `after_owner`."""

    klass: int
    after_owner: str
    limit: int


class ReadyRows:
    """Whose turn it is among what has arrived or was read."""

    __slots__ = ("_forced", "_known", "_lanes", "_turns", "look_for_forced")

    def __init__(self) -> None:
        self._lanes = tuple(Lane() for _ in CLASSES)
        self._forced: tuple[Row, ...] = ()  # few
        self._turns: SmoothRoundRobin | None = None  # from the first time that two classes have something to send
        # In memory, or claimed and not yet gone: a refill may read their rows once more. Only the keys matter: empty,
        # which it mostly is, a dict weighs a quarter of a set.
        self._known: dict[str, None] = {}
        self.look_for_forced = True

    def __len__(self) -> int:
        critical, normal, bulk = self._lanes  # asked before each turn
        return len(self._forced) + critical.size + normal.size + bulk.size

    @property
    def idle(self) -> bool:
        """Nothing in memory, and nothing more in the table as far as is known."""
        return not self._known and not any(lane.more or lane.refilling for lane in self._lanes)

    @property
    def has_forced(self) -> bool:
        return bool(self._forced)

    def arrive(self, rows: tuple[Row, ...]) -> None:
        """Take messages that were just accepted, as far as the window reaches."""
        known = self._known
        for row in rows:
            if row.id in known:
                continue
            if row.force:
                known[row.id] = None
                self._forced += (row,)
            elif self._lanes[row.klass].arrive(row):
                known[row.id] = None

    def arrive_forced(self, rows: Sequence[Row]) -> None:
        """Take the forced rows that were read."""
        new = [row for row in rows if row.id not in self._known]
        self._known.update(dict.fromkeys(row.id for row in new))
        self._forced += tuple(new)

    def fill(self, klass: int, rows: list[Row], limit: int) -> None:
        """Take what a refill read."""
        self.arrive_forced([row for row in rows if row.force])
        self._lanes[klass].fill(rows, limit, self._known)

    def refill_failed(self, klass: int) -> None:
        self._lanes[klass].refilling = False

    def wanted(self, standing: Standing, now: datetime) -> tuple[list[Wanted], datetime]:
        """What to read of the lanes that run low and may send, each of which is then being read; and when to ask again
        because of those that may not."""
        wanted, ask_at = [], FOREVER
        for klass, lane in enumerate(self._lanes):
            if not lane.low:
                continue
            hold = class_hold(standing, klass, now)
            if hold is not None:
                ask_at = min(ask_at, hold.until)
                continue
            lane.refilling = True
            lane.missed = False
            wanted.append(Wanted(klass, lane.after_owner, lane.limit_per_owner()))
        return wanted, ask_at

    def take(self, standing: Standing, now: datetime) -> Row | Hold | None:
        """The next row: forced ones first, then 16:4:1 by class, in a class owner by owner.

        None: there is none in memory. A hold: there are some, but their class must wait.
        """
        if self._forced:
            first, *others = self._forced
            self._forced = tuple(others)
            return first
        held: Hold | None = None
        open_lanes = []
        for klass, lane in enumerate(self._lanes):
            if lane.size == 0:
                continue
            hold = class_hold(standing, klass, now)
            if hold is None:
                open_lanes.append(klass)
            else:
                held = hold
        if not open_lanes:
            return held
        if self._turns is None:
            if len(open_lanes) == 1:
                return self._lanes[open_lanes[0]].take()
            self._turns = SmoothRoundRobin(WEIGHTS)
        return self._lanes[self._turns.pick(open_lanes)].take()

    def gone(self, message_id: str) -> None:
        """The row left the queue: claimed and on its way, held, or ended."""
        self._known.pop(message_id, None)

    def rest(self) -> None:
        """Nothing of the number is under way: give back what grew while it was busy."""
        if not self._known:
            self._known.clear()  # an emptied dict keeps its size
            self._turns = None

    def forget(self, row: Row) -> None:
        """The row is in the queue still: it is read again."""
        self._known.pop(row.id, None)
        if row.force:
            self.look_for_forced = True
        else:
            self.look(row.klass)

    def look(self, klass: int | None = None) -> None:
        """There may be more in the table than is known here."""
        for lane in self._lanes if klass is None else (self._lanes[klass],):
            lane.more = True
            lane.missed = lane.refilling

    def start_over(self, under_way: set[str]) -> None:
        """Forget everything that is not under way, and read it again: rows may have become forced ones."""
        self._forced = ()
        for lane in self._lanes:
            lane.clear()
            lane.missed = lane.refilling
        self._known = dict.fromkeys(under_way)
        self.look_for_forced = True
