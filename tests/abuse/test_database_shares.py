"""Long work and slow endpoints of one organization: its own share of the database and of webhook tests is used up."""

import asyncio
import itertools
import json
import secrets
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from tests.abuse.attacker import Attacker, Line, keep_on
from tests.abuse.conftest import Resident
from tests.abuse.neighbour import Neighbour
from tests.program import Api, Service
from tests.waiting import until

pytestmark = [pytest.mark.alone, pytest.mark.usefixtures("memory_returns")]

AT_ONCE = 60
MEMBERS = 50_000
SEARCHED = 3_000  # contacts, of which each search looks at all
CONDITIONS = 48  # of a preview, each of which looks into the attributes of all
TESTS, WAITING = 1_500, 6  # of webhooks: asked for, and those that may be under way or wait
TESTS_AT_ONCE = 200  # connections: fewer than one address may have


@pytest.mark.long
async def test_replaced_memberships_keep_nobody_waiting(
    attacker: Attacker, api: Api, neighbour: Neighbour, seconds: float
) -> None:
    made = await api.call("POST", "/v2/lists", {"name": secrets.token_hex(8)})
    member = secrets.token_hex(8)
    await api.call("POST", "/contacts", {"phone": f"+5511{secrets.randbelow(10**8) + 9 * 10**8}", "externalId": member})
    members = json.dumps({"externalIds": [member, *(f"nobody-{n}" for n in range(MEMBERS - 1))]}).encode()

    async def replace() -> int:
        return await attacker.ask("PUT", f"/v2/lists/{made['id']}/members", members)

    async with neighbour.held():
        answers = await keep_on(seconds, AT_ONCE, replace)
    assert answers[200] > 0
    assert set(answers) <= {200, 429, 503}


async def test_searches_far_behind_keep_nobody_waiting(
    attacker: Attacker, api: Api, neighbour: Neighbour, seconds: float
) -> None:
    phones = itertools.count(secrets.randbelow(10**7))
    contacts = [{"phone": f"+55119{next(phones):08}", "name": "Ana Souza"} for _ in range(SEARCHED)]
    await api.call("POST", "/contacts/import", {"contacts": contacts, "options": {"matchBy": "phone"}})

    async with neighbour.held():
        answers = await keep_on(seconds, AT_ONCE, lambda: attacker.ask("GET", "/contacts?q=ana&skip=100000"))
    assert answers[200] > 0
    assert set(answers) <= {200, 429, 503}


@pytest.mark.long
async def test_previews_of_many_conditions_keep_nobody_waiting(
    attacker: Attacker, api: Api, neighbour: Neighbour, seconds: float
) -> None:
    phones = itertools.count(secrets.randbelow(10**7))
    attributes = {f"note{n}": f"a text that ends with a needle {n}" for n in range(10)}
    for _ in range(3):
        contacts = [{"phone": f"+55118{next(phones):08}", "attributes": attributes} for _ in range(SEARCHED // 3)]
        await api.call("POST", "/contacts/import", {"contacts": contacts, "options": {"matchBy": "phone"}})
    conditions = [
        {"field": "attribute", "operator": "contains", "key": f"note{n % 10}", "value": f"needle {n % 10}"}
        for n in range(CONDITIONS)
    ]

    async with neighbour.held():
        answers = await keep_on(
            seconds, AT_ONCE, lambda: attacker.ask("POST", "/v2/segments/preview", {"filters": conditions})
        )
    assert answers[200] > 0
    assert set(answers) <= {200, 429, 503}


@pytest.mark.long
async def test_tests_of_webhooks_that_hang_keep_nobody_waiting(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        service = Service(tmp_path, SSRF_ALLOW_CIDRS="127.0.0.0/8")
        stack.push_async_callback(service.wipe)
        await service.start()
        neighbour = await stack.enter_async_context((await Resident.settle(service)).measured())
        token = (await asyncio.to_thread(service.command, "keys", "create", "--scopes", "all", "--json"))["token"]
        api = await stack.enter_async_context(Api(service.url, token))
        await webhooks_hang(Attacker("127.0.0.1", service.port, token), api, neighbour)


async def webhooks_hang(attacker: Attacker, api: Api, neighbour: Neighbour) -> None:
    """Ask for tests of an endpoint that never answers, and see that few of them wait."""
    gate = asyncio.Event()
    left, answers = iter(range(TESTS)), set[int]()

    async def ask(line: Line) -> None:
        for _ in left:
            status, _ = await line.ask("POST", f"{path}/test", {})
            answers.add(status)

    async def hang(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await gate.wait()
        writer.transport.abort()

    endpoint = await asyncio.start_server(hang, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{endpoint.sockets[0].getsockname()[1]}/"
    path = f"/webhooks/{(await api.call('POST', '/webhooks', {'url': url, 'events': ['*']}))['id']}"
    async with AsyncExitStack() as lines:
        open_lines = [await lines.enter_async_context(attacker.line()) for _ in range(TESTS_AT_ONCE)]
        asked: list[asyncio.Task[None]] = []
        try:
            async with neighbour.held():
                asked = [asyncio.create_task(ask(line)) for line in open_lines]
                await until(lambda: sum(not each.done() for each in asked) <= WAITING, "the others are refused")
            assert answers <= {429, 503}
            assert next(left, None) is None
            assert sum(not each.done() for each in asked) > 0
        finally:
            gate.set()
            await asyncio.gather(*asked)
            endpoint.close()
            await api.call("DELETE", path)
