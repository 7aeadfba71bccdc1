"""Entries by customer events (C9.7): each new one brings its contact into the journeys that its name triggers.

An event is taken in the commit of the entries that it makes, so that it makes them once.
"""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from recado.domain.core.ids import EXECUTION
from recado.domain.events.customer_event import CustomerEvent
from recado.domain.journeys.entries import entry_of, event_enters
from recado.domain.journeys.execution import ExecutionOrigin
from recado.services.journeys.entry_turns import EntryTurns
from recado.storage.core.postgres import Connection
from recado.storage.events import customer_events
from recado.storage.journeys import doors, entries, event_entries
from recado.storage.journeys.entries import NewEntry
from recado.storage.journeys.event_entries import EventEntry

EACH: Final = 50  # events of an organization in a turn


class EventEntries(EntryTurns[EventEntry]):
    """Takes events."""

    kind = "events"
    most = 200  # and as many entries

    async def claim(self, connection: Connection, after: str) -> list[EventEntry]:
        return await event_entries.claim(connection, each=EACH, most=self.most, after=after)

    async def claim_one(self, connection: Connection, entry_id: int) -> list[EventEntry]:
        return await event_entries.claim_one(connection, entry_id)

    async def drop(self, connection: Connection, entry_id: int) -> None:
        await event_entries.settle(connection, [entry_id], None)

    async def enter(self, connection: Connection, claimed: Sequence[EventEntry]) -> None:
        keys = [(each.organization_id, each.env, each.event_id) for each in claimed]
        known = await customer_events.known(connection, keys)
        asking = [(each, known[key].name) for each, key in zip(claimed, keys, strict=True) if key in known]
        found = await event_entries.journeys_of(connection, asking, self.most)
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
        last = found[-1] if len(found) == self.most else None
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
        open_to = await doors.hold(connection, *where, journey_ids)
        running = await self._journeys.read(connection, [(*where, journey_id) for journey_id in journey_ids])
        made = []
        for event, journey_id in wanted:
            door, found = open_to.get(journey_id), running.get((*where, journey_id))
            if door is None or not door.open or found is None:
                continue
            # The look-up was by the name, and what a trigger notes is new and of `live`.
            if event_enters(event, event.name, door.ativada_em, now, live=True, duplicate=False):
                assert event.contact_id is not None  # noqa: S101 - only events of somebody enter
                made.append(
                    found[1].entry(
                        journey_id,
                        event.contact_id,
                        self._ids.new(EXECUTION),
                        ExecutionOrigin.EVENT,
                        now,
                        entry_of(event),
                    )
                )
        return made
