"""Requests that ask for no credential: what they may have is counted by where they come from."""

import asyncio
from collections import Counter

import pytest
from tests.abuse.attacker import Attacker
from tests.abuse.neighbour import Neighbour

from recado.config.limits import DEFAULT_LIMITS

pytestmark = [pytest.mark.alone, pytest.mark.usefixtures("memory_returns")]

AT_ONCE = 50
MANY = 400
MISSPELLED = "/contactz/abc/docoment"  # of all unknown paths the dearest: what was meant is searched for


async def flood(stranger: Attacker, path: str, connections: int, seconds: float) -> tuple[Counter[int], float]:
    """Ask on so many connections, one request after the other on each; the statuses, and the seconds that it took."""
    loop = asyncio.get_running_loop()
    began, answers = loop.time(), Counter[int]()

    async def ask_on() -> None:
        async with stranger.line() as line:
            while loop.time() < began + seconds:
                status, _ = await line.ask("GET", path)
                answers[status] += 1

    await asyncio.gather(*(ask_on() for _ in range(connections)))
    return answers, loop.time() - began


async def test_a_strangers_flood_of_unknown_paths_keeps_nobody_waiting(
    attacker: Attacker, neighbour: Neighbour, seconds: float
) -> None:
    async with neighbour.held():
        answers, lasted = await flood(attacker.without_credential("127.0.0.3"), MISSPELLED, AT_ONCE, seconds)
    refill, capacity = DEFAULT_LIMITS["anonymous"]
    assert set(answers) == {404, 429}
    assert answers[404] <= capacity + refill * (lasted + 1)


@pytest.mark.long
async def test_a_strangers_flood_on_very_many_connections_keeps_nobody_waiting(
    attacker: Attacker, neighbour: Neighbour, seconds: float
) -> None:
    async with neighbour.held():
        answers, _ = await flood(attacker.without_credential("127.0.0.3"), "/healthz", MANY, seconds)
    assert set(answers) == {200}
