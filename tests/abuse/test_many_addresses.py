"""Callers from very many addresses at once: their requests are one party's, or each waits for its turn (C31)."""

import asyncio
from collections import Counter
from typing import Any

import pytest
from tests.abuse.attacker import Attacker
from tests.abuse.neighbour import Neighbour

pytestmark = [pytest.mark.alone, pytest.mark.usefixtures("memory_returns")]

ADDRESSES = [f"127.0.2.{1 + number}" for number in range(200)]
UNKNOWN = {f"templateIdd{number}": 1 for number in range(60)}
WRONG = {"numberId": "num_0", "type": "template", "templateVars": ["x"] * 30, "to": "+5511", **UNKNOWN}


async def flood(callers: list[Attacker], method: str, path: str, body: Any, seconds: float) -> Counter[int]:
    """Ask as each of them, one request after the other; the statuses."""
    loop = asyncio.get_running_loop()
    end, answers = loop.time() + seconds, Counter[int]()

    async def ask_on(caller: Attacker) -> None:
        async with caller.line() as line:
            while loop.time() < end:
                status, _ = await line.ask(method, path, body)
                answers[status] += 1

    await asyncio.gather(*map(ask_on, callers))
    return answers


@pytest.mark.long
async def test_an_organization_on_many_addresses_keeps_nobody_waiting(
    attacker: Attacker, neighbour: Neighbour, seconds: float
) -> None:
    callers = [attacker.called_from(address) for address in ADDRESSES]
    async with neighbour.held():
        answers = await flood(callers, "POST", "/messages", WRONG, seconds)
    assert set(answers) == {422}


async def test_strangers_on_many_addresses_keep_nobody_waiting(
    attacker: Attacker, neighbour: Neighbour, seconds: float
) -> None:
    callers = [attacker.without_credential(address) for address in ADDRESSES]
    async with neighbour.held():
        answers = await flood(callers, "GET", "/contactz/abc/docoment", None, seconds)
    assert set(answers) <= {404, 429}
    assert answers[404]
