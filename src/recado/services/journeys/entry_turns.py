"""Turns of entries that no caller waits for: some that wait are locked, enter, and are done with in the same commit."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Final, Generic, Protocol, TypeVar

import structlog

from recado.domain.core.clock import Clock
from recado.domain.core.ids import IdSource
from recado.services.journeys.execution_turns import ExecutionTurns, Turn
from recado.storage.core.connections.failures import timed_out, worth_repeating
from recado.storage.core.connections.postgres import Connection, Database
from recado.storage.core.statements.rows import Executor
from recado.storage.journeys import executions
from recado.storage.journeys.entries import Begin
from recado.storage.journeys.executions import Execution

log = structlog.get_logger()


class WaitingEntry(Protocol):
    """What waits, as its row."""

    @property
    def id(self) -> int: ...
    @property
    def organization_id(self) -> str: ...
    @property
    def env(self) -> str: ...


C = TypeVar("C", bound=WaitingEntry)


class EntryTurns(ABC, Generic[C]):
    """One kind of them. Who enters has its first turn in the same commit; what is due after it is looked for by others.

    What lets nobody in for a cause of our own is left out by itself, so that the others come to their turn.
    """

    kind: str  # in the log
    most: int  # in a turn

    def __init__(self, db: Database, *, clock: Clock, ids: IdSource, taking: ExecutionTurns) -> None:
        self._db: Final = db
        self._clock: Final = clock
        self._ids: Final = ids
        self._taking: Final = taking
        self._journeys: Final = taking.journeys

    async def take(self, after: str = "") -> Turn:
        """One turn, of the organizations after `after`, or of all when those have nothing. Raises `Unavailable`."""
        claimed: list[C] = []
        new: list[Execution] = []
        done = 0

        async def begin(_: Executor, begun: Sequence[Execution]) -> None:
            new.extend(begun)

        try:
            with self._taking.counting() as counted:
                async with self._db.hot.transaction() as connection:
                    claimed = await self.claim(connection, after)
                    if after and not claimed:
                        claimed = await self.claim(connection, "")
                    if claimed:
                        done = await self.enter(connection, claimed, begin)
                    work = await self._taking.first(connection, new, counted)
        except Exception as error:
            if worth_repeating(error) and not (claimed and timed_out(error)):
                raise
            log.warning("entries_taken_one_by_one", kind=self.kind, count=len(claimed), error=type(error).__name__)
            await self._take_each(claimed)
            done = len(claimed)
        else:
            await self._taking.finish(work)
        return Turn(done, claimed[-1].organization_id if len(claimed) == self.most else "")

    async def _take_each(self, claimed: Sequence[C]) -> None:
        """One by one; what takes too long by itself keeps those behind it from nothing."""
        late: Exception | None = None
        for each in claimed:
            try:
                await self._take_one(each)
            except Exception as error:
                if not timed_out(error):
                    raise
                late = error
        if late is not None:
            raise late

    async def _take_one(self, wanted: C) -> None:
        """It enters, and its execution is due: that fails by itself, if it was the cause."""
        try:
            async with self._db.hot.transaction() as connection:
                claimed = await self.claim_one(connection, wanted.id)
                if claimed:
                    await self.enter(connection, claimed, executions.begin)
        except Exception as error:
            if worth_repeating(error):
                raise
            log.error(
                "entry_failed", kind=self.kind, organization_id=wanted.organization_id, env=wanted.env,
                error=type(error).__name__,
            )  # fmt: skip
            async with self._db.hot.transaction() as connection:
                await self.drop(connection, wanted.id)

    @abstractmethod
    async def claim(self, connection: Connection, after: str) -> list[C]:
        """Those whose turn it is, up to `most`: locked."""

    @abstractmethod
    async def claim_one(self, connection: Connection, entry_id: int) -> list[C]:
        """This one, locked; none if it is done with, or another has it in hand."""

    @abstractmethod
    async def enter(self, connection: Connection, claimed: Sequence[C], begin: Begin) -> int:
        """Let in those that may enter, and be done with them; answers with how many it went on.

        `begin`: stores their executions, at once or at the end of the transaction. Those stay whose journey somebody is
        about to move: nobody waits here for what a caller has locked.
        """

    @abstractmethod
    async def drop(self, connection: Connection, entry_id: int) -> None:
        """Be done with one."""
