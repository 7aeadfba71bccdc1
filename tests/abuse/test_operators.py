"""Operators of one organization who look at thousands of numbers again and again: nobody else waits for that."""

import itertools

import asyncpg
import pytest
from tests.abuse.attacker import Attacker, keep_on
from tests.abuse.neighbour import Neighbour
from tests.http.test_ops_many import MADE
from tests.program import Api, Service

pytestmark = [pytest.mark.alone, pytest.mark.long, pytest.mark.usefixtures("memory_returns")]

AT_ONCE = 20
NUMBERS = 3_000


async def test_who_looks_at_all_numbers_without_a_pause_keeps_nobody_waiting(
    attacker: Attacker, api: Api, neighbour: Neighbour, service: Service, seconds: float
) -> None:
    number = (await api.call("GET", "/numbers"))["items"][0]["id"]
    connection = await asyncpg.connect(**service.cluster().connect_arguments)
    try:
        await connection.execute(MADE, number, NUMBERS)
        paths = itertools.cycle(("/v2/ops/numbers", "/v2/ops/actors", "/v2/ops/providers", f"/v2/ops/numbers/{number}"))
        async with neighbour.held():
            answers = await keep_on(seconds, AT_ONCE, lambda: attacker.ask("GET", next(paths)))
    finally:
        await connection.execute("delete from numbers where id like 'num_00000000%'")
        await connection.close()
    assert answers[200] >= AT_ONCE
    assert set(answers) <= {200, 429, 503}
