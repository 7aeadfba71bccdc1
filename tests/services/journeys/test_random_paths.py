"""The service with its database leads random journeys where the contract leads them: same steps, same times."""

from datetime import timedelta
from random import Random

from tests.domain.journeys.interpreter import interpret
from tests.domain.journeys.random_scenarios import Draw
from tests.examples import examples
from tests.services.journeys.conftest import END, Way, open_way, wait
from tests.services.journeys.world import World, in_database
from tests.storage.journeys.rows import entered, new_entry

from recado.storage.core.connections.postgres import Database
from recado.storage.core.upkeep.partitions import ensure_partitions
from recado.storage.journeys.entries import Entered

GRAPHS = 100
FIRST_SEED = 2_000_100  # not those that the rules walk without a database


async def test_executions_go_where_the_contract_leads_at_the_same_times(database: Database) -> None:
    # Some begin before there were prices; months have a table each.
    await database.execute("update prices set valid_from = '2010-01-01' where valid_from = '2020-01-01'")
    found = set()
    for seed in range(FIRST_SEED, FIRST_SEED + examples(GRAPHS)):
        scenario = in_database(Draw(seed).scenario())
        await ensure_partitions(database, scenario.starts, months_ahead=6)
        async with open_way(database, at=scenario.starts, seed=seed) as way:
            scenario, walked = await World(way, scenario).walk()
        assert walked == interpret(scenario), f"seed {seed}: {scenario}"
        found |= {told.result for told in walked.trail} | {walked.reason}
    assert {"enviado", "esperou", "sim", "nao", "webhook_ok", "webhook_falhou", "fim"} <= found


async def test_contacts_enter_again_when_the_contract_lets_them(way: Way) -> None:
    answers = set()
    for seed in range(examples(90)):
        random = Random(seed)
        minutes, hours = random.choice([10, 90, 400]), random.randint(1, 6)
        interval = timedelta(hours=hours) if random.random() < 0.8 else None  # None: never again
        first = await way.journey(wait("wait", "end", minutes), END)
        later = await way.journey(wait("wait", "end", minutes), END, chain_id=first.id, versao=2)
        contact_id = await way.person()
        last = None
        for _ in range(6):
            await way.work(timedelta(minutes=random.randint(0, 300), seconds=random.randint(1, 59)))
            now, refuses = way.clock.now(), random.random() < 0.1
            if refuses:
                await way.db.execute("update contacts set opt_in_status = 'denied' where id = $1", contact_id)
            entry = new_entry(contact_id, random.choice([first, later]), at=now, interval=interval)
            result = await entered(way.db, entry, way.organization.id)
            told = "entered" if result is Entered.ENTERED else str(result)
            if refuses:
                wanted = "opt_out"
            elif last is None:
                wanted = "entered"
            elif interval is None:
                wanted = "ja_entrou"
            elif now < last + timedelta(minutes=minutes):
                wanted = "em_andamento"
            elif now < last + interval:
                wanted = "intervalo"
            else:
                wanted = "entered"
            assert told == wanted, f"seed {seed}"
            answers.add(told)
            if refuses:
                break
            if told == "entered":
                last = now
    assert answers == {"opt_out", "entered", "ja_entrou", "em_andamento", "intervalo"}
