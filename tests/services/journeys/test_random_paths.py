"""The service with its database leads random journeys where the contract leads them: same steps, same times."""

from tests.domain.journeys.interpreter import interpret
from tests.domain.journeys.random_scenarios import Draw
from tests.examples import examples
from tests.services.journeys.conftest import open_way
from tests.services.journeys.world import World, in_database

from recado.storage.core.partitions import ensure_partitions
from recado.storage.core.postgres import Database

GRAPHS = 60
FIRST_SEED = 1_000_000  # not those that the rules walk without a database


async def test_executions_go_where_the_contract_leads_at_the_same_times(database: Database) -> None:
    # Some begin before there were prices; months have a table each.
    await database.execute("update prices set valid_from = '2010-01-01' where valid_from = '2020-01-01'")
    found = set()
    for seed in range(FIRST_SEED, FIRST_SEED + examples(GRAPHS)):
        scenario = in_database(Draw(seed).scenario())
        await ensure_partitions(database, scenario.starts, months_ahead=6)
        async with open_way(database, at=scenario.starts) as way:
            scenario, walked = await World(way, scenario).walk()
        assert walked == interpret(scenario), f"seed {seed}: {scenario}"
        found |= {told.result for told in walked.trail} | {walked.reason}
    assert {"enviado", "esperou", "sim", "nao", "webhook_ok", "webhook_falhou", "fim"} <= found
