"""Batches to audiences that are slow to read: who makes many of them waits for them, and nobody else's batch does."""

import asyncio
import itertools
import secrets
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.abuse.attacker import Attacker, keep_on
from tests.abuse.conftest import Resident
from tests.abuse.neighbour import IDLE_FACTOR, WAITED, Neighbour
from tests.acceptance.sandbox.customer import Customer
from tests.program import Api
from tests.waiting import until

pytestmark = [pytest.mark.alone, pytest.mark.usefixtures("memory_returns")]

SEARCHED = 4_500  # contacts, of which each filter looks at all
CONDITIONS = 48  # of a filter, each of which looks into the attributes of all
FOUND = 5  # contacts
PREVIEWS, BATCHES = 15, 3  # at a time: as many as an organization may let wait
RECIPIENTS = 5_000  # of a neighbour's batch: five blocks
BUILT_WITHIN = 1.5  # seconds
MOVED_BATCHES, MOVED, MOVERS = 20, 500, 16  # batches, messages of each, and who moves them at once
LATE = 2.0  # seconds that a message of the neighbour may wait to be claimed
LATEST = """
select coalesce(extract(epoch from max(clock_timestamp() - due_at)), 0) from dispatch
where sender_id = $1 and claimed_epoch is null and reason is null and due_at < clock_timestamp()
"""
TOMORROW = (datetime.now(UTC) + timedelta(days=1)).isoformat()


class Sender:
    """Makes batches of one organization, whose messages would leave tomorrow, and withdraws them at the end."""

    def __init__(self, api: Api, number_id: str, template_id: str) -> None:
        self._api = api
        self._shared = {
            "numberId": number_id, "type": "template", "templateId": template_id, "templateVars": ["hello"],
            "scheduledAt": TOMORROW,
        }  # fmt: skip
        self._phones = itertools.count(secrets.randbelow(10**7))

    def body(self, **audience: Any) -> dict[str, Any]:
        return {**self._shared, **audience}

    async def built(self) -> float:
        """The seconds until all messages of a batch are made."""
        people = [{"to": f"+55118{next(self._phones):08}"} for _ in range(RECIPIENTS)]
        loop = asyncio.get_running_loop()
        began = loop.time()
        made = await self._api.call("POST", "/messages/bulk", self.body(recipients=people))

        async def through() -> bool:
            return bool((await self._api.call("GET", f"/v2/batches/{made['id']}"))["status"] != "building")

        await until(through, "the batch is made")
        return loop.time() - began

    async def withdraw(self) -> None:
        """Cancel all of its batches."""
        for status in ("building", "running"):
            while batches := (await self._api.call("GET", f"/v2/batches?status={status}&limit=100"))["items"]:
                for batch in batches:
                    await self._api.call("POST", f"/v2/batches/{batch['id']}/cancel")


@pytest.fixture
async def sender(resident: Resident) -> AsyncIterator[Sender]:
    """The neighbour's organization."""
    async with Api(resident.url, resident.token) as caller:
        found = Sender(caller, resident.number_id, resident.template_id)
        yield found
        await found.withdraw()


@pytest.mark.long
async def test_batches_of_slow_audiences_keep_no_other_batch_waiting(
    attacker: Attacker, api: Api, sender: Sender, seconds: float
) -> None:
    phones = itertools.count(secrets.randbelow(10**7))
    attributes = {f"note{n}": f"a text that ends with a needle {n}" for n in range(10)}
    for _ in range(3):
        contacts = [
            {"phone": f"+55117{next(phones):08}", "attributes": {**attributes, "last": "gold" if n < FOUND else "tin"}}
            for n in range(SEARCHED // 3)
        ]
        await api.call("POST", "/contacts/import", {"contacts": contacts, "options": {"matchBy": "phone"}})
    conditions: list[dict[str, Any]] = [
        {"field": "attribute", "operator": "contains", "key": f"note{n % 10}", "value": f"needle {n % 10}"}
        for n in range(CONDITIONS)
    ]
    slow = {"filters": [*conditions, {"field": "attribute", "operator": "contains", "key": "last", "value": "gold"}]}
    segment = await api.call("POST", "/v2/segments", {"name": secrets.token_hex(8), **slow})
    customer = await Customer.arrive(api)
    hostile = Sender(api, customer.number_id, customer.template_id)
    body = hostile.body(segmentId=segment["id"])
    idle = min([await sender.built() for _ in range(3)])

    accepted = asyncio.Event()

    async def make() -> int:
        status = await attacker.ask("POST", "/messages/bulk", body)
        if status == 202:
            accepted.set()
        return status

    async def look() -> int:
        return await attacker.ask("POST", "/v2/segments/preview", slow)

    attack = [
        asyncio.create_task(keep_on(seconds, parallel, act)) for parallel, act in ((PREVIEWS, look), (BATCHES, make))
    ]
    async with asyncio.timeout(60):
        await accepted.wait()
    took = [await sender.built()]
    while not all(each.done() for each in attack):
        took.append(await sender.built())
    previews, batches = [await each for each in attack]
    print(f"alone {idle:.2f} s, beside the attack {[round(each, 2) for each in took]}; {previews}, {batches}")
    assert batches[202] > 0
    assert set(previews) | set(batches) <= {200, 202, 429, 503}
    await hostile.withdraw()
    limit = max(BUILT_WITHIN, IDLE_FACTOR * idle)
    assert max(took) <= limit, f"{WAITED}: a batch took {max(took):.1f} s; alone: {idle:.1f} s"


async def test_moves_of_many_batches_keep_nobody_waiting_and_hold_nobody_s_messages(
    attacker: Attacker, api: Api, database: Any, resident: Resident, neighbour: Neighbour, seconds: float
) -> None:
    customer = await Customer.arrive(api)
    hostile = Sender(api, customer.number_id, customer.template_id)
    people = [{"to": f"+55116{number:08}"} for number in range(MOVED)]
    made = [await api.call("POST", "/messages/bulk", hostile.body(recipients=people)) for _ in range(MOVED_BATCHES)]
    moves = itertools.cycle([(batch["id"], move) for move in ("pause", "resume") for batch in made])
    ends = iter([(batch["id"], "cancel") for batch in made])
    late: list[float] = [0.0]

    async def move() -> int:
        batch_id, what = next(moves) if secrets.randbelow(20) else next(ends, next(moves))
        return await attacker.ask("POST", f"/v2/batches/{batch_id}/{what}", b"")

    async def watch() -> None:
        while True:
            late.append(float(await database.fetchval(LATEST, resident.number_id)))
            await asyncio.sleep(0.1)

    async with neighbour.held():
        watching = asyncio.create_task(watch())
        answers = await keep_on(seconds, MOVERS, move)
        watching.cancel()
    print(f"{answers}, the neighbour's messages were up to {max(late):.2f} s late")
    assert answers[200]
    assert set(answers) <= {200, 404, 409, 429, 503}
    assert max(late) <= LATE, f"{WAITED}: a message of its left {max(late):.1f} s late"
    await hostile.withdraw()
