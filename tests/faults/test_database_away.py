"""A service whose database is away: callers hear in time, it is told once, and a stop ends in time (C2.7, C31, C32)."""

import asyncio
import json
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.acceptance.sandbox.customer import Customer, phone
from tests.faults.proxy import FaultProxy, before_postgres
from tests.faults.stage import behind
from tests.program import Api, Service
from tests.waiting import until

from recado.storage.core.connections.postgres import Database

SLACK = 6.0  # seconds that a busy machine may add: less than lies between two of the limits
STOP_LIMIT = 20.0
SENDS = 40

Answer = tuple[int, str | None]
"""The status, and `Retry-After`."""

FAULTS: dict[str, Callable[[FaultProxy], None]] = {"stalled": FaultProxy.stall, "swallowed": FaultProxy.black_hole}


@pytest.fixture
async def proxy(database: Database) -> AsyncIterator[FaultProxy]:
    async with before_postgres(dict(database.server)) as (made, _):
        yield made


@pytest.fixture
async def service(database: Database, proxy: FaultProxy, tmp_path: Path) -> AsyncIterator[Service]:
    """A running service whose way to its database is the proxy; it has one organization."""

    running = Service(tmp_path, LOG_LEVEL="info", **behind(proxy, database.server))
    await asyncio.to_thread(running.command, "org", "create", "--name", "Padaria Central", "--json")
    await running.start()
    try:
        yield running
    finally:
        proxy.restore()
        await asyncio.to_thread(running.end, signal.SIGKILL)


async def asked(service: Service, method: str, path: str, token: str | None = None, body: Any = None) -> Answer:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.request(method, service.url + path, json=body) as answer,
    ):
        return answer.status, answer.headers.get("Retry-After")


class Sends:
    """Sends messages of the organization; a call answers the status, and what says when to come again."""

    def __init__(self, service: Service, token: str, body: dict[str, Any]) -> None:
        self.token = token
        self._service = service
        self._body = body

    async def __call__(self) -> Answer:
        return await asked(self._service, "POST", "/messages", self.token, {**self._body, "to": phone("1234")})


@pytest.fixture
async def sends(service: Service) -> Sends:
    token = await asyncio.to_thread(service.key, "test")
    async with Api(service.url, token) as api:
        customer = await Customer.arrive(api)
    body = {"numberId": customer.number_id, "type": "template", "templateId": customer.template_id}
    return Sends(service, token, {**body, "templateVars": ["hello"]})


def told(service: Service) -> Counter[str]:
    """What the service has logged, counted."""
    lines = [json.loads(line) for line in service.log.read_text().splitlines()]
    return Counter(line["message"].partition(" failed (")[0] for line in lines)


@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS)
async def test_callers_hear_in_time_and_the_outage_is_told_once(
    service: Service, proxy: FaultProxy, sends: Sends, fault: str
) -> None:
    assert (await sends())[0] == 201
    FAULTS[fault](proxy)

    async def within(seconds: float, asking: Any) -> None:
        async with asyncio.timeout(seconds + SLACK):
            status, retry_after = await asking
        assert status == 503
        assert retry_after is not None

    ready = [within(2, asked(service, "GET", "/readyz")) for _ in range(3)]
    reads = [
        within(10, asked(service, "GET", path, sends.token)) for path in ("/messages", "/contacts?q=a", "/numbers")
    ]
    lists = [within(30, asked(service, "POST", "/v2/lists", sends.token, {"name": "a"}))]
    await asyncio.gather(*ready, *reads, *lists, *(within(30, sends()) for _ in range(SENDS)))
    proxy.restore()

    async def ready_again() -> bool:
        return (await asked(service, "GET", "/readyz"))[0] == 200

    await until(ready_again, "the service is ready again")
    await until(lambda: told(service)["database_back"] == 1, "the end of the outage is told")
    assert (await sends())[0] == 201
    events = told(service)
    assert events["database_away"] == 1
    assert not [event for event in events if event.startswith(("periodic", "batch_refused", "settlement_waits"))]


@pytest.mark.long
@pytest.mark.parametrize("fault", [*FAULTS, "stopped"])
async def test_a_stop_ends_in_time_and_its_status_says_whether_everything_is_written(
    service: Service, proxy: FaultProxy, sends: Sends, fault: str
) -> None:
    under_way = [asyncio.create_task(sends()) for _ in range(SENDS)]
    await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
    if fault == "stopped":
        await proxy.stop()
    else:
        FAULTS[fault](proxy)

    status = await asyncio.to_thread(service.end, signal.SIGTERM, STOP_LIMIT + SLACK)

    lines = [json.loads(line) for line in service.log.read_text().splitlines()]
    (ended,) = [line for line in lines if line["message"] == "stopped_before_the_end"]
    assert "last uses of credentials" in ended["not_flushed"]  # the sends' key was used, and nothing could be written
    assert status == 3
    await asyncio.gather(*under_way, return_exceptions=True)


@pytest.mark.long
async def test_a_stop_ends_in_time_and_takes_its_paused_postgres_with_it(tmp_path: Path) -> None:
    running = Service(tmp_path)
    await running.start()
    try:
        pid = running.cluster().pid()
        assert pid is not None
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for each in (pid, *map(int, children)):
            os.kill(each, signal.SIGSTOP)

        assert await asyncio.to_thread(running.end, signal.SIGTERM, STOP_LIMIT + SLACK) in (0, 3)

        await until(lambda: running.cluster().pid() is None, "its PostgreSQL is gone")
    finally:
        await running.wipe()


async def test_a_stop_writes_everything_when_the_database_answers(service: Service, sends: Sends) -> None:
    assert {status for status, _ in await asyncio.gather(*(sends() for _ in range(SENDS)))} == {201}
    assert await asyncio.to_thread(service.end, signal.SIGTERM) == 0
    assert "stopped_before_the_end" not in told(service)
