"""What the making of batches asks of prices and wallets (C25.2), and its answer where nothing is billed."""

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

from recado.domain.core.errors import Problem
from recado.storage.batches.audiences import Audience
from recado.storage.batches.batch_making import NewBatch, PendingBlock
from recado.storage.batches.batch_rows import Block
from recado.storage.core.statements.rows import Executor


class Tariff(Protocol):
    """What messages cost, and the wallet that pays (C25.2)."""

    @property
    def charges(self) -> bool:
        """Whether there are wallets here."""
        ...

    async def price(self, batch: NewBatch | PendingBlock, block: Block, at: datetime) -> None:
        """Give each message of the block its price."""
        ...

    async def estimate(
        self, batch: NewBatch, price_kind: str, audience: Audience, regions: Mapping[str, int], at: datetime
    ) -> int:
        """What a message to each of so many contacts of each region would cost."""
        ...

    async def covers(self, connection: Executor, organization_id: str, env: str, coins: int) -> Problem | None:
        """The refusal when so many coins are not there; nothing is held."""
        ...

    async def hold(
        self, connection: Executor, organization_id: str, env: str, coins: int, estimate: int
    ) -> Problem | None:
        """Hold `coins`, in the transaction that makes the messages; the refusal when the `estimate` is not covered."""
        ...


class Free:
    """Nothing is billed here (C25.2.4)."""

    charges = False

    async def price(self, batch: NewBatch | PendingBlock, block: Block, at: datetime) -> None:
        """Everything is free."""

    async def estimate(
        self, batch: NewBatch, price_kind: str, audience: Audience, regions: Mapping[str, int], at: datetime
    ) -> int:
        """Nothing, however many there are."""
        return 0

    async def covers(self, connection: Executor, organization_id: str, env: str, coins: int) -> Problem | None:
        """There is nothing to cover."""
        return None

    async def hold(
        self, connection: Executor, organization_id: str, env: str, coins: int, estimate: int
    ) -> Problem | None:
        """There is nothing to hold."""
        return None


FREE = Free()


class NotCovered(Exception):
    """The wallet does not cover a block: nothing of it is made."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.code)
        self.problem = problem
