"""Lets go what is held for a reason that is gone, though nobody released it: so much a look, and the rest later."""

from recado.storage.core.connections.postgres import Database
from recado.storage.dispatch import overtaken
from recado.storage.dispatch.overtaken import FIRST, WaitingGroup

PAGE = 1_000  # rows in a statement
ROWS = 50_000  # in a look


class OvertakenHolds:
    """Each look goes on where the one before stopped; at the end of what is held it begins again."""

    def __init__(self, db: Database, *, page: int = PAGE, rows: int = ROWS) -> None:
        self._db = db
        self._page = page
        self._rows = rows
        self._group, self._after = FIRST, ""

    async def look(self) -> int:
        """Make ready what is overtaken among the next rows; answers how many. The poller finds them."""
        released, left = 0, self._rows
        since, after = self._group, self._after
        for group in await overtaken.groups(self._db, since):
            last: str | None = after if group == since else ""
            while last is not None:
                if left <= 0:
                    self._stop_at(group, last)
                    return released
                page = await overtaken.release(self._db, group, last, limit=self._page)
                released += page.released
                left -= max(1, page.rows)
                last = page.last if page.rows == self._page else None
        self._stop_at(FIRST, "")
        return released

    def _stop_at(self, group: WaitingGroup, after: str) -> None:
        self._group, self._after = group, after
