"""Keeps the totals of batches and campaigns in the commits that move their messages (C15.6): a consequence."""

from collections.abc import Callable, Collection, Sequence
from functools import partial

from recado.domain.core.clock import Clock
from recado.domain.messages.message import MessageStatus
from recado.storage.batches import totals
from recado.storage.batches.totals import TotalsKey
from recado.storage.core.statements.moves import AfterCommit, Moved
from recado.storage.core.statements.rows import Executor

Emptied = Callable[[Sequence[TotalsKey]], None]
"""Told after the commit: nothing of these is queued or sending any more."""


class MessageTotals:
    """`emptied` hears of batches and campaigns alike.

    Nothing is remembered of environments: another process may give one its first campaign at any moment.
    """

    def __init__(self, *, clock: Clock, emptied: Emptied) -> None:
        self._clock = clock
        self._emptied = emptied

    async def wanted(self, environments: Collection[tuple[str, str]], to_status: str) -> bool:
        """All but departures, of which each row tells whether it is counted (`recording.py`)."""
        return to_status != MessageStatus.SENT

    async def write(self, connection: Executor, moved: Sequence[Moved]) -> AfterCommit | None:
        """Add what the moves change."""
        changes = totals.deltas(moved)
        if not changes:
            return None
        changed = await totals.add(connection, changes, self._clock.now())
        empty = [each.key for each in changed if not each.queued]
        return partial(self._emptied, empty) if empty else None

    def emptied(self, keys: Sequence[TotalsKey]) -> None:
        """A commit left nothing of these queued or sending."""
        if keys:
            self._emptied(keys)
