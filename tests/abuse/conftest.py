"""One real service for the attacks: an attacker, a stranger, and the neighbour whose wait is measured."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from tests.abuse.attacker import Attacker
from tests.abuse.neighbour import WAITED, Neighbour, Served, end_the_spare
from tests.acceptance.provider_sides import BridgeSide
from tests.acceptance.sandbox.customer import Customer, phone
from tests.deadlines import within
from tests.program import Api, Service, free_port
from tests.waiting import until

IDLE_SECONDS = 2.0
IDLE_HOLDS = 30.0  # seconds: a busy machine is another one later
MEMORY_SLACK = 150 * 2**20  # bytes that a process keeps for the next time
ROUNDS = 3
ADMIN_TOKEN = "the administrator of the abused service"
NEIGHBOUR = "Neighbour"  # the organization that is measured
PROXY = "127.0.0.9"  # the address of a trusted proxy


def cases(table: Mapping[str, object], *usual: str) -> Any:
    """The cases of a table of attacks: the `usual` ones, and the others marked `long`."""
    return [
        pytest.param(case, id=name, marks=() if name in usual else pytest.mark.long) for name, case in table.items()
    ]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Measure again when a neighbour waited: what the service does happens in each round, what the machine does not.

    Nothing else is tried again: a refused neighbour, memory that does not come back or a wrong answer fails at once.
    """
    for item in items:
        if within(item.path, Path(__file__).parent):
            item.add_marker(pytest.mark.flaky(reruns=ROUNDS - 1, only_rerun=WAITED))


@pytest.fixture(params=[2.0, pytest.param(20.0, marks=pytest.mark.long)], ids=["short", "whole"])
def seconds(request: pytest.FixtureRequest) -> float:
    """How long an attack lasts."""
    return float(request.param)


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """The running service with the limits that it comes with; webhooks may lead to this machine, and it has a proxy."""
    settings = {"ADMIN_TOKEN": ADMIN_TOKEN, "SSRF_ALLOW_CIDRS": "127.0.0.0/8", "TRUSTED_PROXIES": PROXY}
    side = BridgeSide(free_port())  # of e-mail in live: nobody is there, and what it reports is believed
    settings |= {name.replace("CHATAPP", "EMAIL"): value for name, value in side.settings.items()}
    running = Service(tmp_path_factory.mktemp("abuse"), **settings)
    try:
        asyncio.run(running.start())
        yield running
    finally:
        asyncio.run(running.wipe())


@pytest.fixture(scope="session")
def attacker_token(service: Service) -> str:
    """A key of the first organization, with the limits of every key."""
    made = service.command("keys", "create", "--env", "test", "--scopes", "all", "--json")
    return str(made["token"])


@pytest.fixture
def attacker(service: Service, attacker_token: str) -> Attacker:
    return Attacker("127.0.0.1", service.port, attacker_token)


@pytest.fixture
async def api(service: Service, attacker_token: str) -> AsyncIterator[Api]:
    """The attacker's organization, for what an attack has to prepare."""
    async with Api(service.url, attacker_token) as caller:
        yield caller


@dataclass(slots=True)
class Resident:
    """A second organization of a service: its key, its number, its template, and what it gets beside nothing."""

    url: str
    token: str = field(repr=False)
    number_id: str
    template_id: str
    idle: Served | None = None
    idle_at: float = 0.0

    @classmethod
    async def settle(cls, service: Service) -> "Resident":
        """Make it, as an operator does."""
        made = await asyncio.to_thread(service.command, "org", "create", "--name", NEIGHBOUR, "--json")
        token = made["keys"]["test"]["token"]
        async with Api(service.url, token) as caller:
            customer = await Customer.arrive(caller)
        return cls(service.url, token, customer.number_id, customer.template_id)

    @asynccontextmanager
    async def measured(self) -> AsyncIterator[Neighbour]:
        """The measured caller, who knows already how fast the service is beside nothing."""
        body = {
            "numberId": self.number_id, "type": "template", "templateId": self.template_id, "templateVars": ["hello"]
        }  # fmt: skip
        sends = [{**body, "to": phone("1234")} for _ in range(50)]
        async with Neighbour(self.url, self.token, sends) as caller:
            now = asyncio.get_running_loop().time()
            if self.idle is None or now - self.idle_at > IDLE_HOLDS:
                self.idle, self.idle_at = await caller.rest(IDLE_SECONDS), now
            caller.idle = self.idle
            yield caller


@pytest.fixture(scope="session", autouse=True)
async def _askers() -> AsyncIterator[None]:
    yield
    await end_the_spare()


@pytest.fixture(scope="session")
def resident(service: Service) -> Resident:
    return asyncio.run(Resident.settle(service))


@pytest.fixture
async def database(service: Service) -> AsyncIterator[Any]:
    """The service's own, to look at."""
    connection = await asyncpg.connect(**service.cluster().connect_arguments)
    yield connection
    await connection.close()


@pytest.fixture
async def neighbour(resident: Resident) -> AsyncIterator[Neighbour]:
    async with resident.measured() as caller:
        yield caller


@pytest.fixture
async def memory_returns(service: Service) -> AsyncIterator[None]:
    """After the test, the service gives back what the attack took."""
    before = memory_of(service)
    yield
    await until(
        lambda: memory_of(service) <= before + MEMORY_SLACK,
        f"the memory is back: {before / 2**20:.0f} MiB before, {memory_of(service) / 2**20:.0f} now",
        every=0.2,
    )


def memory_of(service: Service) -> int:
    """Bytes of memory that the process holds."""
    pages = int(Path(f"/proc/{service.pid}/statm").read_text().split()[1])
    return pages * 4096
