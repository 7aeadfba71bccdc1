"""Lists of records as large as they may be: whoever asks for all of them waits for them, and nobody else does."""

import itertools
import secrets

import pytest
from tests.abuse.attacker import Attacker, keep_on
from tests.abuse.neighbour import Neighbour
from tests.program import Api

pytestmark = [pytest.mark.alone, pytest.mark.long, pytest.mark.usefixtures("memory_returns")]

AT_ONCE = 20
CONTACTS, SEGMENTS = 80, 4
FULL = {f"a{n}": "x" * 1_000 for n in range(100)}
VALUES = [f"{n:03}" + "x" * 180 for n in range(100)]


async def test_pages_of_large_records_keep_nobody_waiting(
    attacker: Attacker, api: Api, neighbour: Neighbour, seconds: float
) -> None:
    phones = itertools.count(secrets.randbelow(10**7))
    contacts = [{"phone": f"+55119{next(phones):08}", "attributes": FULL} for _ in range(CONTACTS)]
    imported = {"contacts": contacts, "options": {"matchBy": "phone"}}
    assert await attacker.ask("POST", "/contacts/import", imported) == 200
    condition = {"field": "attribute", "key": "a", "operator": "in", "value": VALUES}
    for _ in range(SEGMENTS):
        body = {"name": secrets.token_hex(8), "filters": [condition] * 48}
        await api.call("POST", "/v2/segments", body)
    paths = itertools.cycle(("/contacts?limit=200", "/v2/segments?limit=200"))

    async with neighbour.held():
        answers = await keep_on(seconds, AT_ONCE, lambda: attacker.ask("GET", next(paths)))
    assert answers[200] >= AT_ONCE
    assert set(answers) <= {200, 429, 503}
