"""The tables of the queue are vacuumed without pauses: as much would die meanwhile as a vacuum removes."""

import pytest

from recado.storage.core.connections.postgres import Database


@pytest.mark.parametrize("table", ["dispatch", "claims", "delivery_queue"])
async def test_the_vacuum_of_a_queue_makes_no_pauses(database: Database, table: str) -> None:
    options = await database.fetchval("select reloptions from pg_class where relname = $1", table)
    assert "autovacuum_vacuum_cost_delay=0" in options
