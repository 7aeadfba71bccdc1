"""Entries by customer events (C9.7): each new one brings its contact into the journeys that its name triggers.

An event is taken in the commit of the entries that it makes, so that it makes them once.
"""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from recado.domain.core.ids import EXECUTION
from recado.domain.events.customer_event import CustomerEvent
from recado.domain.journeys.entries import TOOK_OVER, entry_of, event_enters, told_before
from recado.domain.journeys.execution import ExecutionOrigin
from recado.services.journeys.entry_turns import EntryTurns
from recado.storage.core.connections.postgres import Connection
from recado.storage.events import customer_events
from recado.storage.journeys import doors, entries, event_entries
from recado.storage.journeys.doors import Door
from recado.storage.journeys.entries import Begin
from recado.storage.journeys.event_entries import EventEntry

EACH: Final = 50  # events of an organization in a turn, and more where few of them have any


class EventEntries(EntryTurns[EventEntry]):
    """Takes events."""

    kind = "events"
    most = 500  # and as many entries, of which each organization has its share

    async def claim(self, connection: Connection, after: str) -> list[EventEntry]:
        return await event_entries.claim(connection, each=EACH, most=self.most, after=after)

    async def claim_one(self, connection: Connection, entry_id: int) -> list[EventEntry]:
        return await event_entries.claim_one(connection, entry_id)

    async def drop(self, connection: Connection, entry_id: int) -> None:
        await event_entries.settle(connection, [entry_id], [])

    async def enter(self, connection: Connection, claimed: Sequence[EventEntry], begin: Begin) -> int:
        keys = [(each.organization_id, each.env, each.event_id) for each in claimed]
        known = await customer_events.known(connection, keys)
        asking = [(each, known[key].name) for each, key in zip(claimed, keys, strict=True) if key in known]
        share = max(1, self.most // len({each.organization_id for each in claimed}))
        found = await event_entries.journeys_of(connection, asking, share)
        now = self._clock.now()
        wanted: defaultdict[tuple[str, str], list[tuple[EventEntry, CustomerEvent, str]]] = defaultdict(list)
        pairs: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)  # of an organization
        for place, journey_id in found:
            each = asking[place][0]
            event = known[each.organization_id, each.env, each.event_id]
            wanted[each.organization_id, each.env].append((each, event, journey_id))
            pairs[each.organization_id].append((place, journey_id))
        left: set[int] = set()
        for where in sorted(wanted):
            left |= await self._let_in(connection, where, wanted[where], now, begin)
        # Of the last event of an organization that has had its share there may be more journeys.
        asked = []
        for organization_id, of_it in pairs.items():
            if len(of_it) == share:
                last_place, journey_id = of_it[-1]
                last = asking[last_place][0]
                if last.id not in left:
                    asked.append((last.id, journey_id))
                left |= {each.id for each, _ in asking[last_place:] if each.organization_id == organization_id}
        done = [each.id for each in claimed if each.id not in left]
        await event_entries.settle(connection, done, asked)
        return len(done) + len(asked)

    async def _let_in(
        self,
        connection: Connection,
        where: tuple[str, str],
        wanted: Sequence[tuple[EventEntry, CustomerEvent, str]],
        now: datetime,
        begin: Begin,
    ) -> set[int]:
        """Whom the events bring, into journeys that stay as they are until the commit; answers what has to wait.

        An event that waits for one journey may have brought its contact into others: there it is refused then. It waits
        also where a version has come into the place of the journey since that was looked up: it is looked up anew.
        """
        journey_ids = {journey_id for _, _, journey_id in wanted}
        open_to = await doors.hold(connection, *where, journey_ids)
        running = await self._journeys.read(connection, [(*where, journey_id) for journey_id in journey_ids])
        early = [journey_id for _, event, journey_id in wanted if _is_early(event, open_to.get(journey_id))]
        since = await doors.taken_over(connection, *where, early) if early else {}
        made = []
        for _, event, journey_id in wanted:
            door, found = open_to.get(journey_id), running.get((*where, journey_id))
            if door is None or not door.open or found is None:
                continue
            began = door.ativada_em
            if journey_id in since and told_before(event, began + TOOK_OVER):
                began = min(began, since[journey_id])
            # The look-up was by the name, and what a trigger notes is new and of `live`.
            if event_enters(event, event.name, began, now, live=True, duplicate=False):
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
        if made:
            await entries.enter(connection, *where, made, begin)
        closed = {journey_id for journey_id, door in open_to.items() if door.shut_for_good}
        return {each.id for each, _, journey_id in wanted if journey_id not in open_to or journey_id in closed}


def _is_early(event: CustomerEvent, door: Door | None) -> bool:
    """Whether it occurred before the journey was activated, whose place may have been another version's then."""
    return door is not None and door.open and event.occurred_at <= door.ativada_em
