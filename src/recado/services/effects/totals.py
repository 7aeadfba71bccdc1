"""Keeps the totals of batches and campaigns in the commits that move their messages (C15.6): a consequence."""

from collections.abc import Callable, Collection, Sequence
from functools import partial

from recado.domain.core.clock import Clock
from recado.storage.batches import totals
from recado.storage.batches.totals import TotalsKey
from recado.storage.core.connections.postgres import Database
from recado.storage.core.statements.moves import AfterCommit, Moved
from recado.storage.core.statements.rows import Executor

Emptied = Callable[[Sequence[TotalsKey]], None]
"""Told after the commit: nothing of these is queued or sending any more."""


class MessageTotals:
    """`emptied` hears of batches and campaigns alike."""

    def __init__(self, db: Database, *, clock: Clock, emptied: Emptied) -> None:
        self._db = db
        self._clock = clock
        self._emptied = emptied
        self._counted: dict[tuple[str, str], bool] = {}

    def noted(self, organization_id: str, env: str) -> None:
        """The environment is about to have a batch or a campaign; told before the commit that makes it."""
        self._counted[organization_id, env] = True

    async def wanted(self, environments: Collection[tuple[str, str]], to_status: str) -> bool:
        """Whether one of these environments has ever had a batch or a campaign."""
        for environment in environments:
            known = self._counted.get(environment)
            if known is None:
                exist = await totals.exist(self._db, *environment)
                known = self._counted.setdefault(environment, exist)
            if known:
                return True
        return False

    async def write(self, connection: Executor, moved: Sequence[Moved]) -> AfterCommit | None:
        """Add what the moves change."""
        changes = totals.deltas(moved)
        if not changes:
            return None
        for organization_id, env, _, _ in changes:
            self.noted(organization_id, env)
        changed = await totals.add(connection, changes, self._clock.now())
        empty = [each.key for each in changed if not each.queued]
        return partial(self._emptied, empty) if empty else None

    def emptied(self, keys: Sequence[TotalsKey]) -> None:
        """A commit left nothing of these queued or sending."""
        if keys:
            self._emptied(keys)
