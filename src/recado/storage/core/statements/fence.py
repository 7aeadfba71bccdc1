"""The fence of an epoch, as a part of the statements that claim: none commits once another has the place (C14.5.6)."""

from typing import Final

from recado.storage.core.statements.rows import Executor
from recado.storage.core.statements.sql import load

FENCE: Final = 0x7266
"""Of the lock, with the epoch, that claims share until they are committed."""
SQL = load("fence", fence=str(FENCE))


def owner(epoch: str) -> str:
    """The query `{owner}`: its row, for the owner of this epoch alone, which it stays until the commit.

    `epoch`: how a statement names that.
    """
    return SQL.owner.replace("{epoch}", epoch)


async def owns(executor: Executor, epoch: int) -> bool:
    """Whether the process of this epoch is the owner, which it stays until the transaction ends."""
    return await executor.fetchval(owner("$1"), epoch) is not None


async def shut(executor: Executor, epoch: int) -> None:
    """Let no claim of the epoch commit from now on, and wait for those that are under way."""
    await executor.execute(SQL.shut, FENCE, epoch)
