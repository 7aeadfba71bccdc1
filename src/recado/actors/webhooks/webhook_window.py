"""A subscription's window of due deliveries: those named by hints, ready, in flight, or being written.

At most `WINDOW` wait here; the rest of a backlog waits in the table, and is read on in pieces when few are left.
"""

from collections import deque
from collections.abc import Iterable

from recado.storage.webhooks.deliveries import Due

WINDOW, LOW = 500, 200  # deliveries in memory: named at most, and read on below
PIECE = 300  # deliveries read at a time: what they tell is made into values in one step of the loop


class DeliveryWindow:
    """`look`: the table holds more than is named here."""

    __slots__ = ("_named", "_reading", "in_hand", "look", "ready")

    def __init__(self) -> None:
        self.ready: deque[Due] = deque()
        self.in_hand: set[str] = set()  # ready, in flight, or being written
        self.look = True
        self._named: list[str] = []
        self._reading = False

    @property
    def reading(self) -> bool:
        """Whether rows are being read."""
        return self._reading

    def named(self, delivery_ids: Iterable[str]) -> None:
        """These were committed. Beyond the window they are forgotten, and found again by a look."""
        self._named += delivery_ids
        if self.look or len(self._named) + len(self.ready) > WINDOW:
            self._named.clear()
            self.look = True

    def next_named(self) -> list[str]:
        """What to read by its ids, if anything; it is being read from then on."""
        if self._reading or not self._named:
            return []
        # Read already by a look, and perhaps settled before this reading ends: then it must not come once more.
        named, self._named = self._named[:PIECE], self._named[PIECE:]
        wanted = [delivery_id for delivery_id in named if delivery_id not in self.in_hand]
        self._reading = bool(wanted)
        return wanted

    def next_look(self) -> int:
        """How many to look for, 0: none; they are being read from then on."""
        if self._reading or not self.look or len(self.ready) >= LOW:
            return 0
        self.begin_look()
        self.look = False
        return PIECE

    def begin_look(self) -> None:
        """Something is read."""
        self._reading = True

    def was_read(self, rows: Iterable[Due]) -> list[Due]:
        """The reading has ended; answers what is not in hand."""
        self._reading = False
        return [due for due in rows if due.id not in self.in_hand]

    def add(self, rows: list[Due]) -> None:
        """These may be delivered."""
        self.in_hand.update([due.id for due in rows])
        self.ready.extend(rows)

    def forget_ready(self) -> None:
        """What is ready stays in the table; it is looked for again."""
        if self.ready or self._named:
            self.in_hand.difference_update([due.id for due in self.ready])
            self.ready.clear()
            self._named.clear()
            self.look = True
