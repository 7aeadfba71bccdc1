"""Tens of thousands of messages wait for one person, who opts out, writes "sair" or is deleted: nobody else waits."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any

import asyncpg
import pytest
from tests.abuse.conftest import Resident, cases
from tests.abuse.neighbour import Neighbour
from tests.acceptance.sandbox.customer import Customer, ahead, phone
from tests.program import Api, Service
from tests.waiting import until

pytestmark = pytest.mark.alone

QUEUED = 30_000
LATER = 3_600.0  # seconds until they would leave
# By SQL: nobody may send so many to one person in less than minutes.
COPIES = """
insert into {table}
select copy.*
from {table} as origin
cross join generate_series(2, $2::integer) as n
cross join jsonb_populate_record(
    null::{table}, to_jsonb(origin) || jsonb_build_object('id', left(origin.id, 12) || lpad(n::text, 13, '0'))
) as copy
where origin.id = $1
"""
HELD = """
with queued as (
    select organization_id, env, sum(coins)::bigint as coins from dispatch where sender_id = $1 group by 1, 2
)
update wallets w set held_coins = q.coins, balance_coins = w.balance_coins + q.coins
from queued q where w.organization_id = q.organization_id and w.env = q.env
"""
WAITING = "select count(*) from dispatch where sender_id = $1"
ENDED = """
select status, last_error, count(*) as n from messages where sender_id = $1 and direction = 'outbound' group by 1, 2
"""
STILL_HELD = """
select held_coins from wallets w join numbers n on n.organization_id = w.organization_id and n.env = w.env
where n.id = $1
"""


@dataclass(frozen=True, slots=True)
class Scene:
    """A service with a measured neighbour, a customer, and the service's own database.

    An endpoint that never answers is to be told of each message that fails: the deliveries wait.
    """

    api: Api
    neighbour: Neighbour
    database: asyncpg.Connection

    async def queued(self) -> tuple[Customer, Any]:
        """A customer, and the contact for whom the messages wait."""
        customer = await Customer.arrive(self.api, category="marketing")
        contact = await self.api.call("POST", "/contacts", {"phone": phone()})
        first = await customer.send(contact["phone"], contactId=contact["id"], scheduledAt=ahead(LATER))
        for table in ("messages", "dispatch"):
            await self.database.execute(COPIES.format(table=table), first["id"], QUEUED)
        await self.database.execute(HELD, customer.number_id)
        return customer, contact


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One that may call endpoints of this machine."""
    running = Service(tmp_path_factory.mktemp("refusals"), SSRF_ALLOW_CIDRS="127.0.0.0/8")
    try:
        asyncio.run(running.start())
        yield running
    finally:
        asyncio.run(running.wipe())


@pytest.fixture(scope="module")
def resident(service: Service) -> Resident:
    return asyncio.run(Resident.settle(service))


@pytest.fixture(scope="module")
def attacker_token(service: Service) -> str:
    return service.key("test")


@pytest.fixture
async def scene(service: Service, api: Api, neighbour: Neighbour) -> AsyncIterator[Scene]:
    gate = asyncio.Event()

    async def hang(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await gate.wait()
        writer.transport.abort()

    endpoint = await asyncio.start_server(hang, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{endpoint.sockets[0].getsockname()[1]}/"
    webhook = await api.call("POST", "/webhooks", {"url": url, "events": ["message.failed"]})
    database = await asyncpg.connect(**service.cluster().connect_arguments)
    yield Scene(api, neighbour, database)
    await database.close()
    gate.set()
    await api.call("DELETE", f"/webhooks/{webhook['id']}")
    endpoint.close()


async def opt_out(customer: Customer, contact: Any) -> None:
    answer = await customer.api.call("POST", "/contacts/opt-out", {"contactId": contact["id"]})
    assert answer["messagesWithdrawn"] == QUEUED


async def write_sair(customer: Customer, contact: Any) -> None:
    said = {"numberId": customer.number_id, "from": contact["phone"], "text": "Sair!"}
    await customer.api.call("POST", "/v2/sandbox/inbound", said)


async def delete(customer: Customer, contact: Any) -> None:
    await customer.api.call("DELETE", f"/contacts/{contact['id']}")


@pytest.mark.long
@pytest.mark.parametrize("refuse", cases({"opt-out": opt_out, "sair": write_sair, "deletion": delete}, "opt-out"))
async def test_the_end_of_all_that_waits_for_one_person_keeps_nobody_waiting(
    scene: Scene, refuse: Callable[[Customer, Any], Awaitable[None]]
) -> None:
    customer, contact = await scene.queued()

    async def none_waits() -> bool:
        return await scene.database.fetchval(WAITING, customer.number_id) == 0

    async with scene.neighbour.held():
        await refuse(customer, contact)
        await until(none_waits, "all of them are withdrawn", every=0.1)
    (ended,) = await scene.database.fetch(ENDED, customer.number_id)
    refused = ("failed", "opted_out: the contact opted out")
    deleted = ("archived", "withdrawn: the contact was deleted")
    assert tuple(ended) == (*(deleted if refuse is delete else refused), QUEUED)
    assert await scene.database.fetchval(STILL_HELD, customer.number_id) == 0
