"""Entries by lists and segments (C9.7): who is in it at the activation, and who joins the list or comes to match."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from recado.domain.core.ids import EXECUTION
from recado.services.journeys.entry_turns import EntryTurns
from recado.storage.core.postgres import Connection
from recado.storage.journeys import arrivals, doors, entries
from recado.storage.journeys.arrivals import Arrival

EACH: Final = 250  # contacts of a journey in a turn


class Arrivals(EntryTurns[Arrival]):
    """Takes in who arrives."""

    kind = "arrivals"
    most = 1_000

    async def arm(self) -> None:
        """Let the members of their lists arrive at journeys that were activated."""
        left = True
        while left:
            async with self._db.transaction() as connection:
                left = await arrivals.arm_next(connection)

    async def claim(self, connection: Connection, after: str) -> list[Arrival]:
        return await arrivals.claim(connection, each=EACH, most=self.most, after=after)

    async def claim_one(self, connection: Connection, entry_id: int) -> list[Arrival]:
        return await arrivals.claim_one(connection, entry_id)

    async def enter(self, connection: Connection, claimed: Sequence[Arrival]) -> None:
        now, staying = self._clock.now(), set[int]()
        where: defaultdict[tuple[str, str], list[Arrival]] = defaultdict(list)
        for each in claimed:
            where[each.organization_id, each.env].append(each)
        for (organization_id, env), arriving in sorted(where.items()):
            journey_ids = {each.journey_id for each in arriving}
            known = await doors.hold(connection, organization_id, env, journey_ids)
            opened = {journey_id for journey_id, door in known.items() if door.open}
            # Of a journey that a person has paused since they were chosen, they stay.
            staying |= {each.id for each in arriving if each.journey_id in known and known[each.journey_id].kept_shut}
            running = await self._journeys.read(connection, [(organization_id, env, each) for each in opened])
            made = [
                running[organization_id, env, each.journey_id][1].entry(
                    each.journey_id, each.contact_id, self._ids.new(EXECUTION), known[each.journey_id].trigger, now, {}
                )
                for each in arriving
                if each.journey_id in opened
            ]
            if made:
                await entries.enter(connection, organization_id, env, made)
        await arrivals.settle(connection, [each.id for each in claimed if each.id not in staying])

    async def drop(self, connection: Connection, entry_id: int) -> None:
        await arrivals.settle(connection, [entry_id])
