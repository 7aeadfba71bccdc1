"""Requests that ask for no credential: what they may have is counted by where they come from."""

import asyncio
from collections import Counter

import pytest
from tests.abuse.attacker import Attacker
from tests.abuse.neighbour import Neighbour

from recado.config.limits import DEFAULT_LIMITS

pytestmark = [pytest.mark.alone, pytest.mark.usefixtures("memory_returns")]

AT_ONCE = 50
MISSPELLED = "/contactz/abc/docoment"  # of all unknown paths the dearest: what was meant is searched for


async def test_a_strangers_flood_of_unknown_paths_keeps_nobody_waiting(
    attacker: Attacker, neighbour: Neighbour, seconds: float
) -> None:
    stranger = attacker.without_credential("127.0.0.3")
    loop = asyncio.get_running_loop()
    answers: Counter[int] = Counter()

    async def ask_on(end: float) -> None:
        """One request after the other on one connection."""
        reader, writer = await stranger.connect()
        try:
            while loop.time() < end:
                writer.write(stranger.head("GET", MISSPELLED, None))
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                answers[int(head.split()[1])] += 1
                length = head.lower().partition("content-length:")[2].splitlines()[0]
                await reader.readexactly(int(length))
        finally:
            writer.transport.abort()

    async with neighbour.held():
        began = loop.time()
        await asyncio.gather(*(ask_on(began + seconds) for _ in range(AT_ONCE)))
        lasted = loop.time() - began
    refill, capacity = DEFAULT_LIMITS["anonymous"]
    assert set(answers) == {404, 429}
    assert answers[404] <= capacity + refill * (lasted + 1)
