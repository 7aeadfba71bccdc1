"""Entries by lists and segments (C9.7): who is in it at the activation, and who joins the list or comes to match."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Final

from recado.domain.core.ids import EXECUTION
from recado.services.journeys.entry_turns import EntryTurns
from recado.storage.core.connections.postgres import Connection
from recado.storage.journeys import arrivals, doors, entries
from recado.storage.journeys.arrivals import JourneyArrival
from recado.storage.journeys.entries import Begin

EACH: Final = 50  # contacts of a journey in a turn, and more where few of them have any
MEMBERS: Final = 20_000  # of a list that is shorter, in the order of joining; of a longer one so many in a turn
JOINED_EACH: Final = 200  # contacts that joined lists of an organization in a turn, each for up to 200 journeys
JOINED_MOST: Final = 800  # in all


class JourneyArrivals(EntryTurns[JourneyArrival]):
    """Takes in who arrives."""

    kind = "arrivals"
    most = 500

    async def spread(self, arrived: Callable[[], None] = lambda: None) -> None:
        """Let who joined lists, and the members of lists whose journeys were activated, arrive at those journeys.

        `arrived` is told of each block of them.
        """
        while True:
            joined = await arrivals.spread(self._db, each=JOINED_EACH, most=JOINED_MOST)
            if not await self._arm() and not joined:
                return
            arrived()

    async def _arm(self) -> bool:
        """One turn of a journey that was activated; False when there is none."""
        arming = await arrivals.next_arming(self._db, self._clock.now())
        if arming is None:
            return False
        async with self._db.transaction() as connection:
            found = await doors.read(connection, arming.organization_id, arming.env, [arming.journey_id])
            if found[arming.journey_id].shut_for_good:
                await arrivals.disarm(connection, arming)
            else:
                await arrivals.members_arrive(connection, arming, MEMBERS)
        return True

    async def claim(self, connection: Connection, after: str) -> list[JourneyArrival]:
        return await arrivals.claim(connection, each=EACH, most=self.most, after=after)

    async def claim_one(self, connection: Connection, entry_id: int) -> list[JourneyArrival]:
        return await arrivals.claim_one(connection, entry_id)

    async def enter(self, connection: Connection, claimed: Sequence[JourneyArrival], begin: Begin) -> int:
        now, staying = self._clock.now(), set[int]()
        where: defaultdict[tuple[str, str], list[JourneyArrival]] = defaultdict(list)
        for each in claimed:
            where[each.organization_id, each.env].append(each)
        for (organization_id, env), arriving in sorted(where.items()):
            journey_ids = {each.journey_id for each in arriving}
            known = await doors.hold(connection, organization_id, env, journey_ids)
            opened = {journey_id for journey_id, door in known.items() if door.open}
            # They stay where a person has paused the journey since they were chosen, or somebody is about to move it.
            moving = journey_ids - known.keys()
            staying |= {each.id for each in arriving if each.journey_id in moving or known[each.journey_id].kept_shut}
            running = await self._journeys.read(connection, [(organization_id, env, each) for each in opened])
            made = [
                running[organization_id, env, each.journey_id][1].entry(
                    each.journey_id, each.contact_id, self._ids.new(EXECUTION), known[each.journey_id].trigger, now, {}
                )
                for each in arriving
                if each.journey_id in opened
            ]
            if made:
                await entries.enter(connection, organization_id, env, made, begin)
        done = [each.id for each in claimed if each.id not in staying]
        await arrivals.settle(connection, done)
        return len(done)

    async def drop(self, connection: Connection, entry_id: int) -> None:
        await arrivals.settle(connection, [entry_id])
