"""The ready messages of one class of one sender that are held in memory, owner by owner (C14.5.2).

The rows in the table are the queue; this is a bounded window on its head. `more` says that the table may hold ready
rows that the window does not.
"""

from collections import deque
from collections.abc import Iterator

from recado.services.dispatch.row import OWNERS, ROWS_PER_OWNER, WINDOW, Row


class ClassWindow:
    """Up to 16 owners in rotation, 320 rows in all; inside an owner, by due time and id."""

    __slots__ = ("_arrived", "_owners", "after_owner", "missed", "more", "reach", "refilling", "size")

    def __init__(self) -> None:
        self._owners: dict[str, deque[Row]] | None = None  # in rotation; none while the window is empty, as most are
        self.size = 0
        self.reach = WINDOW  # how many rows it holds
        self.more = True  # nobody has looked yet
        self.refilling = False
        self.missed = False  # the table may have a row that the refill under way does not read
        self._arrived: list[Row] | None = None  # while a refill was reading: it may have read them, or not
        self.after_owner = ""  # where the next refill goes on among many owners

    def arrive(self, row: Row) -> bool:
        """Take a row that was just accepted; False when it must wait in the table.

        One that comes while a refill reads is kept until its end: were it turned away, another refill would have to
        follow, and in dense traffic there would be no end of them.
        """
        if self.more or self.size >= self.reach:
            self.more = True
            if not self.refilling:
                return False
            if self._arrived is None:
                self._arrived = []
            if len(self._arrived) >= self.reach:
                self.missed = True
                return False
            self._arrived.append(row)
            return True
        self._append(row)
        return True

    def fill(self, rows: list[Row], limit: int, known: dict[str, None]) -> None:
        """Take what a refill read with `limit` rows for each owner; not what is `known` (added to).

        When that is all that there is, what arrived meanwhile follows; else it is in the table, and forgotten here.
        """
        arrived, self._arrived = self._arrived or (), None
        for row in arrived:
            known.pop(row.id, None)
        counts: dict[str, int] = {}
        for row in rows:
            counts[row.owner] = counts.get(row.owner, 0) + 1
            if row.id in known:
                continue
            if self.size >= self.reach:
                self.missed = True
                break
            known[row.id] = None
            self._append(row)
        started_over = self.after_owner == ""
        several = len(counts) >= OWNERS
        self.after_owner = max(counts) if several else ""
        whole = started_over and not several and all(count < limit for count in counts.values())
        self.more = self.missed or not whole
        self.missed = False
        self.refilling = False
        for row in arrived:
            if row.id not in known and self.arrive(row):
                known[row.id] = None

    def refill_failed(self, known: dict[str, None]) -> None:
        """Nothing was read: what arrived meanwhile waits in the table."""
        for row in self._arrived or ():
            known.pop(row.id, None)
        self._arrived = None
        self.refilling = False

    def take(self) -> Row | None:
        """The next row; its owner goes to the end of the rotation."""
        owners = self._owners
        if owners is None:
            return None
        owner, rows = next(iter(owners.items()))
        row = rows.popleft()
        self.size -= 1
        if not self.size:
            self._owners = None
        elif not rows:
            del owners[owner]
        elif len(owners) > 1:
            del owners[owner]
            owners[owner] = rows
        return row

    def limit_per_owner(self) -> int:
        """How many rows of each owner a refill may bring: few owners have more each."""
        return max(ROWS_PER_OWNER, self.reach // (len(self._owners) if self._owners else 1))

    @property
    def low(self) -> bool:
        """Time to read on, before the window is empty."""
        return self.more and not self.refilling and self.size < self.reach // 4

    def has(self, owner: str) -> bool:
        """Whether it holds rows of the owner."""
        return self._owners is not None and owner in self._owners

    def ids(self) -> Iterator[str]:
        """Of every row that it holds, or keeps until a refill has ended."""
        for rows in (*(self._owners or {}).values(), self._arrived or ()):
            for row in rows:
                yield row.id

    def clear(self) -> None:
        """Forget every row; the table still has them."""
        self._owners = None
        self._arrived = None
        self.size = 0
        self.more = True
        self.after_owner = ""

    def _append(self, row: Row) -> None:
        owners = self._owners
        if owners is None:
            owners = self._owners = {}
        rows = owners.get(row.owner)
        if rows is None:
            rows = owners[row.owner] = deque()
        rows.append(row)
        self.size += 1
