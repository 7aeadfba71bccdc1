"""The ready messages of one sender that are held in memory: a window for each class, and the forced ones ahead of them.

A bounded window on the table. Whatever is forgotten here is read again, so forgetting is always safe.
"""

from collections import deque
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from datetime import datetime

from recado.actors.dispatch.class_window import ClassWindow
from recado.actors.dispatch.sender_view import SenderView
from recado.actors.dispatch.shared_gateway import WEIGHTS
from recado.domain.core.fairness import SmoothRoundRobin
from recado.domain.dispatch.gates import FOREVER, Hold
from recado.domain.messages.message import CLASSES
from recado.services.dispatch.row import WINDOW, Row
from recado.storage.dispatch.dispatch import Head

LAST_LEFT = 32  # rows: as many as leave between a look at the table and its answer


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to read next: `limit` rows of each owner of the class after `after_owner`."""

    klass: int
    after_owner: str
    limit: int


class ReadyRows:
    """Whose turn it is among what has arrived or was read."""

    __slots__ = ("_classes", "_forced", "_known", "_left", "_turns", "look_for_forced")

    def __init__(self) -> None:
        self._classes = tuple(ClassWindow() for _ in CLASSES)
        self._forced: deque[Row] | None = None  # by due time and id; none while there are no forced ones, as mostly
        self._turns: SmoothRoundRobin | None = None  # from the first time that two classes have something to send
        # In memory, or claimed and not yet gone: a refill may read their rows once more. Only the keys matter: empty,
        # which it mostly is, a dict weighs a quarter of a set.
        self._known: dict[str, None] = {}
        # The last ones that left, while there are some: whoever looked a moment ago saw them in the table.
        self._left: deque[str] | None = None
        self.look_for_forced = True  # the table may hold forced rows that memory does not

    def __len__(self) -> int:
        critical, normal, bulk = self._classes  # asked before each turn
        forced = self._forced
        return (len(forced) if forced else 0) + critical.size + normal.size + bulk.size

    def reach(self, rows: int) -> None:
        """Hold so many rows of each class from now on; what is beyond them stays until it has left."""
        for window in self._classes:
            window.reach = rows

    @property
    def idle(self) -> bool:
        """Nothing in memory, and nothing more in the table as far as is known."""
        if self._known or self.look_for_forced:
            return False
        return not any(window.more or window.refilling for window in self._classes)

    @property
    def has_forced(self) -> bool:
        return bool(self._forced)

    @property
    def wants_forced(self) -> bool:
        """Time to read forced rows: the table may hold more, and few are left in memory."""
        return self.look_for_forced and (self._forced is None or len(self._forced) < WINDOW // 4)

    def may_have(self, klass: int) -> bool:
        """Whether there is something of the class to send, in memory or, as far as is known, in the table."""
        window = self._classes[klass]
        return window.size > 0 or window.more

    def arrive(self, rows: tuple[Row, ...]) -> None:
        """Take messages that were just accepted, as far as the window reaches."""
        known = self._known
        for row in rows:
            if row.id in known:
                continue
            if row.force:
                self._arrive_forced(row)
            elif self._classes[row.klass].arrive(row):
                known[row.id] = None

    def _arrive_forced(self, row: Row) -> None:
        if self.look_for_forced or (self._forced is not None and len(self._forced) >= WINDOW):
            self.look_for_forced = True
            return
        self._known[row.id] = None
        if self._forced is None:
            self._forced = deque()
        self._forced.append(row)

    def forced_to_read(self) -> tuple[Set[str], int]:
        """What is known now, and how many forced rows to read: those that are being claimed come back too, first."""
        return frozenset(self._known), WINDOW + len(self._known)

    def fill_forced(self, rows: Sequence[Row], known: Set[str], limit: int) -> None:
        """Take the first `limit` forced rows of the table, as far as the window reaches; both as `forced_to_read` said.

        A row that was known before they were read is in memory, or being claimed, or has left meanwhile. The limit is a
        window beyond all of those: so the window is full now, unless the table has no more.
        """
        kept = list(self._forced or ())
        new = [row for row in rows if row.id not in known]
        taken = new[: WINDOW - len(kept)]
        self._known.update(dict.fromkeys(row.id for row in taken))
        self._forced = deque(sorted(kept + taken, key=lambda row: (row.due_at, row.id))) or None
        self.look_for_forced = len(rows) >= limit or len(taken) < len(new)

    def fill(self, klass: int, rows: list[Row], limit: int) -> None:
        """Take what a refill read; forced rows are read by themselves."""
        self._classes[klass].fill(rows, limit, self._known)

    def refill_failed(self, klass: int) -> None:
        self._classes[klass].refill_failed(self._known)

    def wanted(self, view: SenderView, now: datetime) -> tuple[list[Wanted], datetime]:
        """What to read of the classes that run low and may send, each of which is then being read.

        And when to ask again because of those that may not.
        """
        wanted, ask_at = [], FOREVER
        for klass, window in enumerate(self._classes):
            if not window.low:
                continue
            hold = view.gates.class_hold(view.state, klass, now)
            if hold is not None:
                ask_at = min(ask_at, hold.until)
                continue
            window.refilling = True
            window.missed = False
            wanted.append(Wanted(klass, window.after_owner, window.limit_per_owner()))
        return wanted, ask_at

    def open_classes(self, view: SenderView, now: datetime) -> dict[int, int]:
        """How many rows that are not forced are in memory, by class, of the classes that nothing holds."""
        return {
            klass: window.size
            for klass, window in enumerate(self._classes)
            if window.size and view.gates.class_hold(view.state, klass, now) is None
        }

    def take_of(self, klass: int) -> Row | None:
        """The next row of a class whose turn was decided elsewhere."""
        return self._classes[klass].take()

    def take(self, view: SenderView, now: datetime) -> Row | Hold | None:
        """The next row: forced ones first, then 16:4:1 by class, in a class owner by owner.

        None: there is none in memory. A hold: there are some, but their class must wait.
        """
        if self._forced:
            first = self._forced.popleft()
            self._forced = self._forced or None
            return first
        held: Hold | None = None
        open_classes = []
        for klass, window in enumerate(self._classes):
            if window.size == 0:
                continue
            hold = view.gates.class_hold(view.state, klass, now)
            if hold is None:
                open_classes.append(klass)
            else:
                held = hold
        if not open_classes:
            return held
        if self._turns is None:
            if len(open_classes) == 1:
                return self._classes[open_classes[0]].take()
            self._turns = SmoothRoundRobin(WEIGHTS)
        return self._classes[self._turns.pick(open_classes)].take()

    def gone(self, message_id: str) -> None:
        """The row left the queue: claimed and on its way, held, or ended."""
        self._known.pop(message_id, None)
        if self._left is None:
            self._left = deque(maxlen=LAST_LEFT)
        self._left.append(message_id)

    def rest(self) -> None:
        """Nothing of the number is under way: give back what grew while it was busy."""
        if not self._known:
            self._known.clear()  # an emptied dict keeps its size
            self._turns = None
            self._left = None

    def forget(self, row: Row) -> None:
        """The row is in the queue still: it is read again."""
        self._known.pop(row.id, None)
        if row.force:
            self.look_for_forced = True
        else:
            self.look(row.klass)

    def look(self, klass: int | None = None) -> None:
        """There may be more in the table than is known here."""
        for window in self._classes if klass is None else (self._classes[klass],):
            window.more = True
            window.missed = window.refilling

    def missed(self, heads: Iterable[Head]) -> bool:
        """Whether any of these, which stood first in the table a moment ago, is not known here; then it is looked for.

        A row that another process stored, and did not tell of, may be older than those of its owner in memory: then
        they are read again, in their order.
        """
        missed = False
        for head in heads:
            if head.id in self._known or (self._left is not None and head.id in self._left):
                continue
            missed = True
            window = self._classes[head.klass]
            if head.force:
                self.look_for_forced = True
            elif window.has(head.owner):
                for message_id in window.ids():
                    self._known.pop(message_id, None)
                window.clear()
                window.missed = window.refilling
            else:
                self.look(head.klass)
        return missed

    def start_over(self, under_way: set[str]) -> None:
        """Forget everything that is not under way, and read it again: rows may have become forced ones."""
        self._forced = None
        for window in self._classes:
            window.clear()
            window.missed = window.refilling
        self._known = dict.fromkeys(under_way)
        self.look_for_forced = True
