"""Executions go two years after their end, with their trails; what is under way stays (C32)."""

from datetime import timedelta

from tests.plans import indexes, plan_for_any, whole_tables
from tests.storage.journeys.rows import ENV, NOW, ORGANIZATION, begun, entered, insert_journey, new_entry, save_locked
from tests.storage.journeys.test_executions import passed

from recado.domain.core.ids import EXECUTION, lowest_id
from recado.domain.journeys.entries import EntryRefusal
from recado.domain.journeys.execution import EndReason
from recado.storage.core.connections.postgres import Database
from recado.storage.journeys import execution_counts, execution_retention
from recado.storage.journeys.executions import Execution

LONG_AGO = NOW - timedelta(days=800)


async def aged(database: Database, execution: Execution, number: int) -> None:
    """As if it had begun long ago."""
    old = f"{lowest_id(EXECUTION, LONG_AGO)[:-3]}{number:03}"
    await database.execute("update execution_steps set execution_id = $2 where execution_id = $1", execution.id, old)
    await database.execute("update executions set id = $2 where id = $1", execution.id, old)


async def test_executions_that_ended_long_ago_go_with_their_trails(database: Database) -> None:
    journey, other = await insert_journey(database), await insert_journey(database)
    ways = [*await begun(database, journey, 5), *await begun(database, other, 2)]
    for number, execution in enumerate(ways):
        ended_at = NOW if number == 3 else LONG_AGO
        over = execution if number == 4 else execution.ended(EndReason.FINISHED, ended_at)
        await save_locked(database, over, steps=[passed(execution)])
        if number != 5:
            await aged(database, execution, number)
    counts = await execution_counts.of_journeys(database, ORGANIZATION, ENV, [journey.id, other.id])
    await execution_retention.purge(database, "org_" + "1" * 21, ENV, NOW)
    assert await database.fetchval("select count(*) from executions") == 7
    await execution_retention.purge(database, ORGANIZATION, ENV, NOW, block=2)
    left = [row["contact_id"] for row in await database.fetch("select contact_id from executions")]
    stays = (3, 4, 5)  # of late end, under way, of late begin
    assert sorted(left) == sorted(ways[place].contact_id for place in stays)
    assert await database.fetchval("select count(*) from execution_steps") == 3
    assert await execution_counts.of_journeys(database, ORGANIZATION, ENV, [journey.id, other.id]) == counts
    assert await entered(database, new_entry(ways[0].contact_id, journey)) is EntryRefusal.ENTERED_BEFORE


async def test_what_is_past_its_time_is_found_by_the_key(database: Database) -> None:
    journeys = await plan_for_any(database.hot, execution_retention.SQL.journeys)
    assert (whole_tables(journeys), indexes(journeys)) == (set(), {"executions_pkey"})
    purge = await plan_for_any(database.hot, execution_retention.SQL.purge)
    assert (whole_tables(purge), indexes(purge)) == (set(), {"executions_pkey", "execution_steps_pkey"})
