"""Whether journeys take somebody in (C9.7.5), held so until a commit."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from recado.domain.journeys.execution import ExecutionOrigin
from recado.domain.journeys.journey import JourneyStatus
from recado.storage.core.statements.rows import Executor, columns, reader
from recado.storage.core.statements.sql import load
from recado.storage.journeys.execution_counts import JourneyKey

SQL: Final = load("doors")


@dataclass(frozen=True, slots=True)
class Door:
    """Whether a journey takes somebody in, by what. `by_itself`: it is paused, and not by a person."""

    id: str
    trigger: ExecutionOrigin
    status: JourneyStatus
    by_itself: bool
    closed: bool
    ativada_em: datetime

    @property
    def shut_for_good(self) -> bool:
        """Nobody enters it any more."""
        return self.closed or self.status not in {JourneyStatus.ATIVA, JourneyStatus.PAUSADA}

    @property
    def kept_shut(self) -> bool:
        """A person paused it, and may activate it again: who is to enter by a list waits until then (C9.7)."""
        return self.status is JourneyStatus.PAUSADA and not self.by_itself and not self.closed

    @property
    def open(self) -> bool:
        """One that paused itself goes on taking entries, which wait (C9.7.5)."""
        return not self.closed and (
            self.status is JourneyStatus.ATIVA or (self.status is JourneyStatus.PAUSADA and self.by_itself)
        )


_read_door: Final = reader(Door, trigger=ExecutionOrigin, status=JourneyStatus)


async def read(executor: Executor, organization_id: str, env: str, journey_ids: Collection[str]) -> dict[str, Door]:
    """These journeys as they are; those that are gone are missing."""
    rows = await executor.fetch(SQL.states, organization_id, env, sorted(journey_ids))
    return {row["id"]: _read_door(row) for row in rows}


async def hold(connection: Executor, organization_id: str, env: str, journey_ids: Collection[str]) -> dict[str, Door]:
    """These journeys as they are, and stay until this transaction ends.

    Those are missing that somebody is about to move.
    """
    rows = await connection.fetch(SQL.hold, organization_id, env, sorted(journey_ids))
    return {row["id"]: _read_door(row) for row in rows}


async def taken_over(
    connection: Executor, organization_id: str, env: str, journey_ids: Collection[str]
) -> dict[str, datetime]:
    """Since when those versions have run whose place these took, while no person had paused them; of the first of them.

    Those are missing that took the place of none.
    """
    rows = await connection.fetch(SQL.taken_over, organization_id, env, sorted(set(journey_ids)))
    return {row["id"]: row["since"] for row in rows}


async def hold_keys(connection: Executor, keys: Collection[JourneyKey]) -> dict[JourneyKey, Door]:
    """As `hold`, of several environments; whoever is about to move one is waited for."""
    rows = await connection.fetch(SQL.hold_keys, *columns(sorted(keys), 3))
    return {(row["organization_id"], row["env"], row["id"]): _read_door(row) for row in rows}
