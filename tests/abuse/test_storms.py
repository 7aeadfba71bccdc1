"""Storms of an organization with many keys: records that come, change and go at full pace, and floods of sends.

Each send has a key of idempotency that is new, or that others use at the same moment.
"""

import asyncio
import itertools
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from tests.abuse.attacker import Attacker, Line
from tests.abuse.conftest import cases
from tests.abuse.neighbour import Neighbour
from tests.acceptance.sandbox.customer import Customer, phone
from tests.acceptance.tenants import SEEN, template, webhook
from tests.program import Api, Service

from recado.config.limits import DEFAULT_LIMITS, ceilings
from recado.domain.access.scopes import KEY_SCOPES

pytestmark = [pytest.mark.alone, pytest.mark.usefixtures("memory_returns")]

KEYS = 8  # so many limits, were there no ceiling
LINES = 64
LINES_OF_SENDS = 500
CEILINGS = ceilings(DEFAULT_LIMITS, {})

names = (f"storm-{secrets.token_hex(4)}-{serial}" for serial in itertools.count())


@dataclass(frozen=True, slots=True)
class Storm:
    """A kind of record. `new`: its body, of a name and a number's id. `change`: method, rest of the path, body."""

    path: str
    new: Callable[[str, str], dict[str, Any]]
    change: tuple[str, str, dict[str, Any]]


STORMS = {
    "keys": Storm(
        "/v2/api-keys",
        lambda name, _: {"name": name, "scopes": ["messages:read"]},
        ("POST", "/rotate", {"graceSeconds": 600}),
    ),
    "lists": Storm("/v2/lists", lambda name, _: {"name": name}, ("PATCH", "", {"description": "another"})),
    "segments": Storm(
        "/v2/segments", lambda name, _: {"name": name, "filters": [SEEN] * 20}, ("PATCH", "", {"filters": [SEEN] * 40})
    ),
    "companies": Storm("/v2/companies", lambda name, _: {"nome": name}, ("PATCH", "", {"atributos": {"lojas": 3}})),
    "templates": Storm(
        "/v2/templates",
        lambda name, number: template(number, name.replace("-", "_")),
        ("PATCH", "", {"category": "marketing"}),
    ),
    "webhooks": Storm("/webhooks", lambda name, _: webhook(name), ("PATCH", "", {"description": "another"})),
    "contacts": Storm("/contacts", lambda name, _: {"phone": phone("")}, ("PATCH", "", {"name": "Another"})),
}


@pytest.fixture(scope="session")
def keys(service: Service, attacker_token: str) -> list[str]:
    """Tokens of the attacker's organization, which made the keys itself."""

    async def make() -> list[str]:
        async with Api(service.url, attacker_token) as api:
            await api.call("POST", "/webhooks", webhook("storm") | {"events": ["*"]})  # of all that is done here
            body = {"name": "storm", "scopes": sorted(KEY_SCOPES)}
            return [(await api.call("POST", "/v2/api-keys", body))["token"] for _ in range(KEYS)]

    return asyncio.run(make())


@pytest.fixture
def lines(service: Service, keys: list[str]) -> "Lines":
    return Lines([Attacker("127.0.0.1", service.port, token, source="127.0.0.66") for token in keys])


class Lines:
    """Connections that are kept, with the keys in turn; what they are answered is counted by method."""

    def __init__(self, callers: list[Attacker]) -> None:
        self._callers = callers
        self.answers: Counter[tuple[str, int]] = Counter()

    async def keep_on(self, seconds: float, parallel: int, act: Callable[["Lines", Line], Awaitable[Any]]) -> float:
        """Do it again and again on each of them, for so long; how long that took."""
        loop = asyncio.get_running_loop()
        began = loop.time()

        async def one(caller: Attacker) -> None:
            async with caller.line() as line:
                while loop.time() < began + seconds:
                    await act(self, line)

        callers = itertools.islice(itertools.cycle(self._callers), parallel)
        await asyncio.gather(*(one(caller) for caller in callers))
        return loop.time() - began

    async def ask(self, line: Line, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """The document of a 2xx, None of everything else."""
        status, document = await self.answer(line, method, path, body, **headers)
        return document if status < 300 else None

    async def answer(self, line: Line, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """Status and document."""
        status, document = await line.ask(method, path, body, headers)
        self.answers[method, status] += 1
        return status, document

    def of(self, method: str) -> Counter[int]:
        return Counter({status: count for (asked, status), count in self.answers.items() if asked == method})


@pytest.mark.parametrize("storm", cases(STORMS, "webhooks"))
async def test_storms_of_records_keep_nobody_waiting(
    lines: Lines, api: Api, storm: Storm, neighbour: Neighbour, seconds: float
) -> None:
    number = (await api.call("GET", "/numbers"))["items"][0]["id"]
    method, rest, change = storm.change

    async def come_and_go(lines: Lines, line: Line) -> None:
        name = next(names)
        made = await lines.ask(line, "POST", storm.path, storm.new(name, number), **{"Idempotency-Key": name})
        if made is not None:
            await lines.ask(line, method, f"{storm.path}/{made['id']}{rest}", change)
            while (await lines.answer(line, "DELETE", f"{storm.path}/{made['id']}"))[0] == 429:
                await asyncio.sleep(0)  # it would be one record more for ever

    async with neighbour.held():
        lasted = await lines.keep_on(seconds, LINES, come_and_go)
    print(f"{sum(lines.answers.values()) / lasted:.0f} a second: {dict(lines.answers)}")
    statuses = {status for _, status in lines.answers}
    assert statuses <= {200, 201, 204, 409, 429, 503}
    assert statuses & {200, 201}
    refill, capacity = CEILINGS["write"]
    assert sum(count for (_, status), count in lines.answers.items() if status < 300) <= capacity + refill * (
        lasted + 1
    )


def few(name: str) -> Callable[[], str]:
    return lambda: f"{name}-{secrets.randbelow(1_000)}"


# Keys that no try before has used: its body was another one.
FLOODS: dict[str, Callable[[], Callable[[], str]]] = {
    "new": lambda: lambda: next(names),
    "of a few": lambda: few(next(names)),
    "the same": lambda: partial(str, next(names)),
}


@pytest.fixture(scope="session")
def sends(service: Service, attacker_token: str) -> dict[str, Any]:
    """The body of a send of the attacker."""

    async def arrive() -> dict[str, Any]:
        async with Api(service.url, attacker_token) as api:
            customer = await Customer.arrive(api)
        content = {"type": "template", "templateId": customer.template_id, "templateVars": ["hello"]}
        return {"numberId": customer.number_id, "to": phone("1234"), **content}

    return asyncio.run(arrive())


@pytest.mark.parametrize("flood", cases(FLOODS, "new"))
async def test_floods_of_sends_keep_nobody_waiting(
    lines: Lines, sends: dict[str, Any], flood: Callable[[], Callable[[], str]], neighbour: Neighbour, seconds: float
) -> None:
    key = flood()

    async def send(lines: Lines, line: Line) -> None:
        await lines.ask(line, "POST", "/messages", sends, **{"Idempotency-Key": key()})

    async with neighbour.held():
        lasted = await lines.keep_on(seconds, LINES_OF_SENDS, send)
    print(f"{sum(lines.answers.values()) / lasted:.0f} a second: {dict(lines.answers)}")
    statuses = {status for _, status in lines.answers}
    assert 201 in statuses <= {201, 402, 429, 503}
