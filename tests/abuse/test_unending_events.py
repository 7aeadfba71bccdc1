"""Customer events without end: large ones, of very many contacts and of one address that very many have (C21).

Files run in the order of their names: this one behind the attacks on searches, which would search its contacts too.
"""

import asyncio
import itertools
import secrets
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from tests.abuse.attacker import Attacker
from tests.abuse.conftest import cases
from tests.abuse.neighbour import Neighbour
from tests.acceptance.sandbox.customer import phone
from tests.program import Api

pytestmark = [pytest.mark.alone, pytest.mark.long, pytest.mark.usefixtures("memory_returns")]

LINES = 200
SHARED = 300  # contacts with one address: more than are looked at
ADDRESS = "everybody@example.com"

serials = itertools.count()
PROPERTIES = {f"{'k' * 60}{number:02}": "é" * 256 for number in range(20)}
FLOODS: dict[str, Callable[[int], dict[str, Any]]] = {
    "large": lambda serial: {"contact": {"externalId": f"nobody-{serial}"}, "properties": PROPERTIES},
    "of an address": lambda _: {"contact": {"email": ADDRESS}},
    "the same": lambda _: {"contact": {"email": ADDRESS}, "eventId": "the same", "properties": PROPERTIES},
}


@pytest.mark.parametrize("flood", cases(FLOODS))
async def test_floods_of_events_keep_nobody_waiting(
    attacker: Attacker, api: Api, flood: Callable[[int], dict[str, Any]], neighbour: Neighbour, seconds: float
) -> None:
    if "email" in flood(0)["contact"]:
        contacts = [{"phone": phone(""), "email": ADDRESS} for _ in range(SHARED)]
        await api.call("POST", "/contacts/import", {"contacts": contacts})
    answers: Counter[int] = Counter()
    loop = asyncio.get_running_loop()
    run = secrets.token_hex(4)

    async def post(end: float) -> None:
        async with attacker.line() as line:
            while loop.time() < end:
                serial = next(serials)
                body = {"name": "flood", "eventId": f"{run}-{serial}", **flood(serial)}
                status, _ = await line.ask("POST", "/v2/events", body)
                answers[status] += 1

    async with neighbour.held():
        end = loop.time() + seconds
        await asyncio.gather(*(post(end) for _ in range(LINES)))
    print(f"{sum(answers.values()) / seconds:.0f} a second: {dict(answers)}")
    assert answers[201] > 0
    assert set(answers) <= {200, 201, 429, 503}
