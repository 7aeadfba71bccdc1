"""Turns of entries that no caller waits for: some that wait are locked, enter, and are done with in the same commit."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

import structlog

from recado.domain.core.clock import Clock
from recado.domain.core.ids import IdSource
from recado.services.journeys.running import RunningJourneys
from recado.storage.core.failures import worth_repeating
from recado.storage.core.postgres import Connection, Database

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


@dataclass(frozen=True, slots=True)
class EntryTurn:
    """What a turn did. `count`: with how many it went on; `after`: the organization after which the next one begins.

    `after` empty: it begins with the first.
    """

    count: int
    after: str = ""


class EntryTurns(ABC, Generic[C]):
    """One kind of them. Whoever asks for a turn looks for executions that are due, too.

    What lets nobody in for a cause of our own is left out by itself, so that the others come to their turn.
    """

    kind: str  # in the log
    most: int  # in a turn

    def __init__(self, db: Database, *, clock: Clock, ids: IdSource) -> None:
        self._db: Final = db
        self._clock: Final = clock
        self._ids: Final = ids
        self._journeys: Final = RunningJourneys()

    async def take(self, after: str = "") -> EntryTurn:
        """One turn, of the organizations after `after`. Raises `Unavailable`."""
        claimed: list[C] = []
        done = 0
        try:
            async with self._db.hot.transaction() as connection:
                claimed = await self.claim(connection, after)
                if claimed:
                    done = await self.enter(connection, claimed)
        except Exception as error:
            if worth_repeating(error):
                raise
            log.warning("entries_taken_one_by_one", kind=self.kind, count=len(claimed), error=type(error).__name__)
            for each in claimed:
                await self._take_one(each)
            done = len(claimed)
        return EntryTurn(done, claimed[-1].organization_id if len(claimed) == self.most else "")

    async def _take_one(self, wanted: C) -> None:
        try:
            async with self._db.hot.transaction() as connection:
                claimed = await self.claim_one(connection, wanted.id)
                if claimed:
                    await self.enter(connection, claimed)
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
    async def enter(self, connection: Connection, claimed: Sequence[C]) -> int:
        """Let in those that may enter, and be done with them; answers with how many it went on.

        Those stay whose journey somebody is about to move: nobody waits here for what a caller has locked.
        """

    @abstractmethod
    async def drop(self, connection: Connection, entry_id: int) -> None:
        """Be done with one."""
