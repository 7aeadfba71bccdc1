"""Entries by customer events (C9.7): each new one brings its contact into the journeys that its name triggers.

An event is taken in the commit of the entries that it makes, so that it makes them once.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import structlog

from recado.domain.core.clock import Clock
from recado.domain.core.ids import EXECUTION, IdSource
from recado.domain.events.customer_event import CustomerEvent
from recado.domain.journeys.entries import entry_of, event_enters
from recado.domain.journeys.execution import ExecutionOrigin
from recado.services.journeys.running import RunningJourney, RunningJourneys
from recado.storage.core.failures import worth_repeating
from recado.storage.core.postgres import Connection, Database
from recado.storage.events import customer_events
from recado.storage.journeys import entries, event_entries
from recado.storage.journeys.entries import NewEntry
from recado.storage.journeys.event_entries import EventEntry

log = structlog.get_logger()

EACH: Final = 50  # events of an organization in a turn
MOST: Final = 200  # in all, and as many entries


@dataclass(frozen=True, slots=True)
class EventTurn:
    """What a turn did. `after`: the organization after which the next one begins; empty: with the first."""

    count: int
    after: str = ""


class EventEntries:
    """Takes events. Whoever asks for a turn looks for executions that are due, too."""

    def __init__(self, db: Database, *, clock: Clock, ids: IdSource) -> None:
        self._db = db
        self._clock = clock
        self._ids = ids
        self._journeys = RunningJourneys()

    async def take(self, after: str = "") -> EventTurn:
        """One turn of the oldest. Raises `Unavailable`."""
        claimed: list[EventEntry] = []
        try:
            async with self._db.hot.transaction() as connection:
                claimed = await event_entries.claim(connection, each=EACH, most=MOST, after=after)
                if claimed:
                    await self._enter(connection, claimed)
        except Exception as error:
            if worth_repeating(error):
                raise
            log.warning("events_taken_one_by_one", events=len(claimed), error=type(error).__name__)
            for each in claimed:
                await self._take_one(each)
        return EventTurn(len(claimed), claimed[-1].organization_id if len(claimed) == MOST else "")

    async def _take_one(self, wanted: EventEntry) -> None:
        """An event that brings nobody in for a cause of our own is left, so that the others come to their turn."""
        try:
            async with self._db.hot.transaction() as connection:
                claimed = await event_entries.claim_one(connection, wanted.id)
                if claimed:
                    await self._enter(connection, claimed)
        except Exception as error:
            if worth_repeating(error):
                raise
            log.error(
                "event_brought_nobody_in", organization_id=wanted.organization_id, env=wanted.env,
                error=type(error).__name__,
            )  # fmt: skip
            async with self._db.hot.transaction() as connection:
                await event_entries.settle(connection, [wanted.id], None)

    async def _enter(self, connection: Connection, claimed: Sequence[EventEntry]) -> None:
        """Let in whom they bring."""
        keys = [(each.organization_id, each.env, each.event_id) for each in claimed]
        known = await customer_events.known(connection, keys)
        asking = [(each, known[key].name) for each, key in zip(claimed, keys, strict=True) if key in known]
        found = await event_entries.journeys_of(connection, asking, MOST)
        now = self._clock.now()
        wanted: defaultdict[tuple[str, str], list[tuple[CustomerEvent, str]]] = defaultdict(list)
        for place, journey_id in found:
            each = asking[place][0]
            event = known[each.organization_id, each.env, each.event_id]
            wanted[each.organization_id, each.env].append((event, journey_id))
        for where in sorted(wanted):
            made = await self._entries(connection, where, wanted[where], now)
            if made:
                await entries.enter(connection, *where, made)
        # Of the last event that was asked for there may be more journeys; those after it were not asked for yet.
        last = found[-1] if len(found) == MOST else None
        left = set() if last is None else {each.id for each, _ in asking[last[0] :]}
        asked = None if last is None else (asking[last[0]][0].id, last[1])
        await event_entries.settle(connection, [each.id for each in claimed if each.id not in left], asked)

    async def _entries(
        self,
        connection: Connection,
        where: tuple[str, str],
        wanted: Sequence[tuple[CustomerEvent, str]],
        now: datetime,
    ) -> list[NewEntry]:
        """The entries that the events make, of journeys that stay as they are until the commit."""
        journey_ids = {journey_id for _, journey_id in wanted}
        doors = await event_entries.hold(connection, *where, journey_ids)
        running = await self._journeys.read(connection, [(*where, journey_id) for journey_id in journey_ids])
        made = []
        for event, journey_id in wanted:
            door, found = doors.get(journey_id), running.get((*where, journey_id))
            if door is None or not door.open or found is None:
                continue
            # The look-up was by the name, and what a trigger notes is new and of `live`.
            if event_enters(event, event.name, door.ativada_em, now, live=True, duplicate=False):
                made.append(self._entry(event, journey_id, found[1], now))
        return made

    def _entry(self, event: CustomerEvent, journey_id: str, journey: RunningJourney, now: datetime) -> NewEntry:
        assert event.contact_id is not None  # noqa: S101 - only events of somebody enter
        return NewEntry(
            journey_id=journey_id,
            chain_id=journey.chain_id,
            versao=journey.versao,
            first_step=journey.plan.first,
            interval=journey.plan.interval,
            contact_id=event.contact_id,
            execution_id=self._ids.new(EXECUTION),
            origin=ExecutionOrigin.EVENT,
            at=now,
            data=entry_of(event),
        )
