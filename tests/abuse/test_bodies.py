"""Bodies that are far too much: arrays of a million faults, of forbidden characters, many that are just not large by
their size, and a table of one endless row.

They cost the caller who sends them, and whoever else would send large bodies a turn of waiting; nobody else anything.
"""

from itertools import cycle

import pytest
from tests.abuse.attacker import Attacker, keep_on
from tests.abuse.neighbour import Neighbour
from tests.program import Api

from recado.http.bodies.body_reading import LARGE

pytestmark = [pytest.mark.alone, pytest.mark.usefixtures("memory_returns")]

REFUSED = {400, 422, 429, 503}
NUL = rb'"\u0000",'
LONG_NUL = rb'"\u0000' + b"x" * 32 + b'",'  # of which a body of 1 MB holds no more values than it may
ADDRESSES = (f"127.0.7.{number}" for number in range(1, 255))


def array(name: str, item: bytes, size: int) -> bytes:
    """An object of one array, of about `size` bytes."""
    return b'{"' + name.encode() + b'":[' + item * (size // len(item)) + b"1]}"


async def test_millions_of_numbers_as_phones_keep_nobody_waiting(
    attacker: Attacker, api: Api, neighbour: Neighbour, seconds: float
) -> None:
    list_id = (await api.call("POST", "/v2/lists", {"name": f"Numbers {seconds}"}))["id"]
    body = array("phones", b"1,", 7_000_000)
    async with neighbour.held():
        answers = await keep_on(seconds, 2, lambda: attacker.ask("POST", f"/v2/lists/{list_id}/members", body))
    assert set(answers) <= REFUSED
    assert answers[422]


@pytest.mark.long
async def test_a_batch_of_wrong_variables_keeps_nobody_waiting(
    attacker: Attacker, neighbour: Neighbour, seconds: float
) -> None:
    recipient = b'{"to":"+5511999990000","templateVars":[' + b"1," * 59 + b"1]},"
    body = array("recipients", recipient, 1_500_000)
    async with neighbour.held():
        answers = await keep_on(seconds, 4, lambda: attacker.ask("POST", "/messages/bulk", body))
    assert set(answers) <= REFUSED
    assert answers[422]


@pytest.mark.long
async def test_arrays_of_nul_keep_nobody_waiting(attacker: Attacker, neighbour: Neighbour, seconds: float) -> None:
    bodies = [
        ("/messages/bulk", array("recipients", NUL, 16_000_000), 422),
        ("/v2/lists", array("name", NUL, 1_000_000), 400),  # more values than a small body may hold
        ("/v2/lists", array("name", LONG_NUL, 1_000_000), 422),
    ]

    async def ask() -> tuple[int, ...]:
        return tuple([await attacker.ask("POST", path, body) for path, body, _ in bodies])

    async with neighbour.held():
        answers = await keep_on(seconds, 2, ask)
    for (*_, expected), statuses in zip(bodies, map(set, zip(*answers, strict=True)), strict=True):
        assert expected in statuses <= {expected, 429, 503}


@pytest.mark.long
async def test_a_stranger_with_arrays_of_nul_keeps_nobody_waiting(
    attacker: Attacker, neighbour: Neighbour, seconds: float
) -> None:
    stranger = attacker.without_credential(next(ADDRESSES))  # from which nobody has tried to sign in
    bodies = cycle([array("email", NUL, 1_000_000), array("email", LONG_NUL, 1_000_000)])
    async with neighbour.held():
        answers = await keep_on(seconds, 4, lambda: stranger.ask("POST", "/v2/sessions", next(bodies)))
    assert {400, 422, 429} <= set(answers) <= REFUSED


@pytest.mark.long
async def test_many_bodies_just_below_the_large_ones_keep_nobody_waiting(
    attacker: Attacker, neighbour: Neighbour, seconds: float
) -> None:
    deep, leaf = b"[" * 60 + b"]" * 60 + b",", b'{"kind":"not","child":{"kind":"leaf","filter":{}}},'
    nul = b'{"name":[' + b"{}," * 21_000 + b'"\\u0000"]}'
    bodies = cycle(
        [
            ("/messages/bulk", array("priority", deep, LARGE - 100)),
            ("/messages", array("templateVars", b"{},", LARGE - 100)),
            ("/v2/templates", array("components", b"[0],", LARGE - 100)),
            ("/v2/segments", array("filters", leaf, LARGE - 100)),
            ("/v2/lists", nul),
        ]
    )

    async def ask() -> int:
        path, body = next(bodies)
        assert len(body) <= LARGE
        return await attacker.ask("POST", path, body)

    async with neighbour.held():
        answers = await keep_on(seconds, 8, ask)
    assert set(answers) <= REFUSED
    assert answers[422]


@pytest.mark.long
async def test_a_table_of_one_endless_row_keeps_nobody_waiting(
    attacker: Attacker, neighbour: Neighbour, seconds: float
) -> None:
    body, table = b"phone\n" + b"," * 49_000_000, {"Content-Type": "text/csv"}
    async with neighbour.held():
        answers = await keep_on(seconds, 1, lambda: attacker.ask("POST", "/contacts/import", body, table))
    assert answers[200] or answers[202]
    assert set(answers) <= REFUSED | {200, 202}
