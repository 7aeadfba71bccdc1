"""What follows from moves of messages in the same commit: events, the wallet, totals.

Each kind is a `Consequence`. Before a batch runs, they are asked whether they want to hear of its moves: when none
does, the batch is one statement of its own, without an explicit transaction.
"""

from collections.abc import Collection, Sequence
from typing import Protocol

from recado.storage.core.statements.moves import AfterCommit, Moved
from recado.storage.core.statements.rows import Executor


class Consequence(Protocol):
    """One kind of consequence."""

    async def wanted(self, environments: Collection[tuple[str, str]], to_status: str) -> bool:
        """Whether moves to this status in these (organization, environment) may concern it; cheap."""
        ...

    async def write(self, connection: Executor, moved: Sequence[Moved]) -> AfterCommit | None:
        """Write what follows, in the transaction of the moves; answers what to do after the commit."""
        ...


class Consequences:
    """All of them, in the order in which every transaction locks their rows: wallets, totals.

    Events come first: nobody waits for their rows, which are new, while all the traffic of an environment waits for its
    wallet from there to the commit.
    """

    def __init__(self, *each: Consequence) -> None:
        self._each = each

    async def wanted(self, environments: Collection[tuple[str, str]], to_status: str) -> bool:
        """Whether any wants to hear of it."""
        for consequence in self._each:
            if await consequence.wanted(environments, to_status):
                return True
        return False

    async def write(self, connection: Executor, moved: Sequence[Moved]) -> AfterCommit:
        """Write everything that follows; answers what to do after the commit."""
        if not moved:
            return _nothing
        rest = [after for each in self._each if (after := await each.write(connection, moved)) is not None]

        def committed() -> None:
            for after in rest:
                after()

        return committed if rest else _nothing


def _nothing() -> None:
    """Nothing is left to do."""
