"""Callers who make up `X-Forwarded-For`: no share is dodged with it, and none is used up that is another's."""

import asyncio
import itertools
from collections import Counter
from collections.abc import Callable, Mapping

import pytest
from tests.abuse.attacker import Attacker
from tests.abuse.conftest import PROXY, cases
from tests.abuse.neighbour import Neighbour
from tests.program import Service

from recado.config.limits import DEFAULT_LIMITS
from recado.domain.core.tokens import mint_token

pytestmark = [pytest.mark.alone, pytest.mark.usefixtures("memory_returns")]

AT_ONCE = 32
VICTIM = "198.51.100.7"  # whom the attacker pretends to be
CALLERS = itertools.count(10)  # the last number of an address from which nobody has asked yet
VICTIMS_PACE = 0.1  # seconds: far below what an address may ask for
FORGED = (f"203.0.{n // 250 % 250}.{n % 250 + 1}" for n in itertools.count())

# What comes to the service: from which address, with which header. Of the headers a proxy makes the end.
WAYS: dict[str, Callable[[int], tuple[str, Callable[[], str]]]] = {
    "past the proxy": lambda own: (f"127.0.8.{own}", lambda: VICTIM),
    "past the proxy, from everywhere": lambda own: (f"127.0.8.{own}", lambda: next(FORGED)),
    "through the proxy": lambda own: (PROXY, lambda: f"{VICTIM}, 192.0.2.{own}"),
    "through the proxy, from everywhere": lambda own: (PROXY, lambda: f"{next(FORGED)}, 192.0.2.{own}"),
    "as the proxy itself": lambda own: (PROXY, lambda: f"{VICTIM}, {PROXY}, 192.0.2.{own}"),
    "with another spelling": lambda own: (PROXY, lambda: f"{VICTIM}, ::ffff:192.0.2.{own}"),
    "from a network of IPv6": lambda own: (PROXY, lambda: f"{VICTIM}, [2001:db8:{own}::{len(next(FORGED)):x}]:443"),
    "in a long line": lambda own: (PROXY, lambda: f"{', '.join([VICTIM] * 400)}, 192.0.2.{own}"),
}
GUESS = {"Authorization": f"Bearer {mint_token('svc_test_', bytes)}"}
ASKED: dict[str, tuple[Mapping[str, str], str, int]] = {
    "anonymous": ({}, "/contactz/abc", 404),
    "failed": (GUESS, "/messages", 401),
}


@pytest.mark.parametrize("way", cases(WAYS, "through the proxy"))
async def test_a_forged_address_dodges_no_share_and_uses_up_no_others(
    service: Service, way: Callable[[int], tuple[str, Callable[[], str]]], neighbour: Neighbour, seconds: float
) -> None:
    source, forwarded = way(next(CALLERS))
    attacker = Attacker("127.0.0.1", service.port, source=source)
    victim = Attacker("127.0.0.1", service.port, source=PROXY)
    loop = asyncio.get_running_loop()
    answers: Counter[tuple[str, int]] = Counter()
    of_victim: Counter[int] = Counter()
    turns = itertools.cycle(ASKED)

    async def flood(end: float) -> None:
        async with attacker.line() as line:
            while loop.time() < end:
                name = next(turns)
                headers, path, _ = ASKED[name]
                status, _ = await line.ask("GET", path, headers={**headers, "X-Forwarded-For": forwarded()})
                answers[name, status] += 1

    async def live(attack: "asyncio.Future[object]") -> None:
        async with victim.line() as line:
            while not attack.done():
                for headers, path, _ in ASKED.values():
                    status, _ = await line.ask("GET", path, headers={**headers, "X-Forwarded-For": VICTIM})
                    of_victim[status] += 1
                await asyncio.wait({attack}, timeout=VICTIMS_PACE)

    async with neighbour.held():
        began = loop.time()
        attack = asyncio.gather(*(flood(began + seconds) for _ in range(AT_ONCE)))
        await live(attack)
        lasted = loop.time() - began
    print(f"{dict(answers)}, the victim: {dict(of_victim)}")
    assert set(of_victim) == {404, 401}
    for name, (_, _, status) in ASKED.items():
        refill, capacity = DEFAULT_LIMITS[name]
        assert 0 < answers[name, status] <= capacity + refill * (lasted + 1)
        assert answers[name, 429] > 0
