"""Journeys as executions go by them: the steps, read once for each revision, and the state as it is at each look."""

from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

from recado.domain.journeys.execution import ExecutionOrigin
from recado.domain.journeys.field_values import Entry
from recado.domain.journeys.journey import JourneyStatus
from recado.domain.journeys.runnable import RunnableJourney, runnable
from recado.storage.core.statements.rows import Executor, columns
from recado.storage.journeys.entries import NewEntry
from recado.storage.journeys.journeys import JOURNEYS, SQL

JourneyKey = tuple[str, str, str]
"""Organization, environment, journey."""

CAPACITY: Final = 2_000  # journeys in memory, of fifty steps at most


@dataclass(frozen=True, slots=True)
class RunningJourney:
    """What executions go by. `zone`: of its clock (`fusoHorario`)."""

    revision: int
    chain_id: str
    versao: int
    zone: ZoneInfo
    plan: RunnableJourney

    def entry(
        self, journey_id: str, contact_id: str, execution_id: str, origin: ExecutionOrigin, at: datetime, data: Entry
    ) -> NewEntry:
        """Of a contact into this journey, at its first step."""
        return NewEntry(
            journey_id=journey_id,
            chain_id=self.chain_id,
            versao=self.versao,
            first_step=self.plan.first,
            interval=self.plan.interval,
            contact_id=contact_id,
            execution_id=execution_id,
            origin=origin,
            at=at,
            data=data,
        )


class RunningJourneys:
    """Reads journeys; those that were used last stay in memory, by their revision. One of a process serves all."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._known: OrderedDict[JourneyKey, tuple[int, RunningJourney]] = OrderedDict()

    async def read(
        self, executor: Executor, keys: Collection[JourneyKey]
    ) -> dict[JourneyKey, tuple[JourneyStatus, RunningJourney]]:
        """How these journeys stand, and what they do; those that are gone are missing.

        So are those whose definition has problems, which nothing runs: a draft may be changed while it is tested.
        """
        rows = await executor.fetch(SQL.states, *columns(sorted(keys), 3))
        found = {}
        for row in rows:
            key = (row["organization_id"], row["env"], row["id"])
            running = await self._running(executor, key, row["revision"])
            if running is not None:
                found[key] = (JourneyStatus(row["status"]), running)
        return found

    async def _running(self, executor: Executor, key: JourneyKey, revision: int) -> RunningJourney | None:
        known = self._known.get(key)
        if known is not None and known[0] == revision:
            self._known.move_to_end(key)
            return known[1]
        journey = await JOURNEYS.get(executor, *key)
        if journey is None:
            return None
        try:
            zone, plan = ZoneInfo(journey.fuso_horario), runnable(journey.definition())
        except ValueError:
            return None
        running = RunningJourney(journey.revision, journey.chain_id, journey.versao, zone, plan)
        self._known[key] = (journey.revision, running)
        if len(self._known) > self._capacity:
            self._known.popitem(last=False)
        return running
