"""Contacts brought into journeys without end, executions that are listed, journeys that change all the time.

Files run in the order of their names: this one behind the attacks on searches, which would search its contacts too.
"""

import asyncio
import itertools
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.abuse.attacker import Attacker
from tests.abuse.conftest import cases
from tests.abuse.neighbour import Neighbour
from tests.acceptance.sandbox.customer import phone
from tests.program import Api

pytestmark = [pytest.mark.alone, pytest.mark.long, pytest.mark.usefixtures("memory_returns")]

LINES = 50
PEOPLE = 300
JOURNEYS = 40
STEPS = 48  # that an execution passes in one turn

END = {"id": "end", "tipo": "fim"}
WAIT = [{"id": "wait", "tipo": "esperar", "minutos": 10_000, "proximo": "end"}, END]
SEND = [{"id": "sms", "tipo": "enviar", "canal": "sms", "texto": "Oi", "proximo": "end"}, END]
LONG = [
    *(
        {
            "id": f"s{n}", "tipo": "condicao", "campo": "attributes.city", "operador": "contem", "valor": "x" * 200,
            "sim": "end", "nao": f"s{n + 1}" if n + 1 < STEPS else "end",
        }
        for n in range(STEPS)
    ),
    END,
]  # fmt: skip

Asked = tuple[str, str, Any]
"""Method, path and body."""


def entering(journeys: list[str], people: list[str]) -> Callable[[int], Asked]:
    pairs = list(itertools.product(journeys, people))

    def ask(n: int) -> Asked:
        journey_id, external_id = pairs[n % len(pairs)]
        return "POST", f"/v2/journeys/{journey_id}/entries", {"contato": {"externalId": external_id}}

    return ask


def listing(journeys: list[str], _: list[str]) -> Callable[[int], Asked]:
    filters = ("passo=end", "status=erro", "teste=true", "contactId=cnt_" + "0" * 21)
    return lambda n: ("GET", f"/v2/journeys/{journeys[0]}/executions?{filters[n % 4]}&limit=200", None)


def moving(journeys: list[str], _: list[str]) -> Callable[[int], Asked]:
    return lambda n: ("POST", f"/v2/journeys/{journeys[0]}/{('pause', 'activate')[n % 2]}", None)


FLOODS: dict[str, tuple[list[dict[str, Any]], int, bool, Any]] = {
    "entries that wait": (WAIT, JOURNEYS, False, entering),
    "entries that send": (SEND, JOURNEYS, False, entering),
    "entries that go a long way": (LONG, JOURNEYS, False, entering),
    "lists that find nobody": (WAIT, 1, True, listing),
    "pauses": (WAIT, 1, True, moving),
}
"""The steps, how many journeys have them, whether everybody is in them before, and what is asked."""


@asynccontextmanager
async def running(api: Api, steps: list[dict[str, Any]], count: int) -> AsyncIterator[list[str]]:
    """Active journeys, which are archived at the end."""
    ids = []
    for _ in range(count):
        body = {"name": "flood", "gatilho": {"tipo": "api"}, "inicio": steps[0]["id"], "passos": steps}
        ids.append(str((await api.call("POST", "/v2/journeys", body))["id"]))
        await api.call("POST", f"/v2/journeys/{ids[-1]}/activate")
    try:
        yield ids
    finally:
        for journey_id in ids:
            await api.call("POST", f"/v2/journeys/{journey_id}/archive")


@pytest.mark.parametrize("flood", cases(FLOODS))
async def test_floods_of_executions_keep_nobody_waiting(
    attacker: Attacker,
    api: Api,
    flood: tuple[list[dict[str, Any]], int, bool, Any],
    neighbour: Neighbour,
    seconds: float,
) -> None:
    steps, count, entered, asking = flood
    tag = secrets.token_hex(4)
    contacts = [{"phone": phone(""), "externalId": f"{tag}-{n}"} for n in range(PEOPLE)]
    await api.call("POST", "/contacts/import", {"contacts": contacts})
    answers: Counter[int] = Counter()
    numbers = itertools.count()
    loop = asyncio.get_running_loop()
    async with running(api, steps, count) as journeys:
        people = [f"{tag}-{n}" for n in range(PEOPLE)]
        if entered:
            ask = entering(journeys, people)
            await asyncio.gather(*(api.call(*ask(n)) for n in range(PEOPLE)))
        ask = asking(journeys, people)

        async def one(end: float) -> None:
            async with attacker.line() as line:
                while loop.time() < end:
                    status, _ = await line.ask(*ask(next(numbers)))
                    answers[status] += 1

        async with neighbour.held():
            end = loop.time() + seconds
            await asyncio.gather(*(one(end) for _ in range(LINES)))
    print(f"{sum(answers.values()) / seconds:.0f} a second: {dict(answers)}")
    assert answers[200] + answers[201] > 0
    assert set(answers) <= {200, 201, 429, 503}
