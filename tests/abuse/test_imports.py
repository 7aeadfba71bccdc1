"""Imports of thousands of rows: one organization's file is read and written while others are served as ever."""

import itertools
import secrets

import pytest
from tests.abuse.attacker import keep_on
from tests.abuse.neighbour import WAITED, Neighbour
from tests.program import Api
from tests.waiting import until

pytestmark = [pytest.mark.alone, pytest.mark.long, pytest.mark.usefixtures("memory_returns")]

ROWS = 4_000  # more than are written in the call: the service works on them by itself
HALF_FACTOR = 6.0
"""Times its own p50 beside nothing, in which a neighbour has half of its answers: work that only lets others have a
turn of the event loop after each step makes it twenty to thirty times.
"""


async def test_imports_keep_nobody_waiting(api: Api, neighbour: Neighbour, seconds: float) -> None:
    phones = itertools.count(secrets.randbelow(10**7))
    consent = {"status": "granted", "source": "site", "at": "2026-01-02T03:04:05Z"}

    async def hand_in() -> str:
        contacts = [
            {
                "phone": f"+55119{next(phones):08}", "name": "Ana Souza", "cpf": "52998224725", "optIn": consent,
                "birthDate": "1980-01-02", "attributes": {"city": "São Paulo", "plan": n % 7},
            }
            for n in range(ROWS)
        ]  # fmt: skip
        made = await api.call("POST", "/contacts/import", {"contacts": contacts})
        path = f"/contacts/imports/{made['id']}"

        async def through() -> bool:
            return bool((await api.call("GET", path))["status"] == "completed")

        await until(through, "the import is through", every=0.1)
        return str((await api.call("GET", path))["created"])

    async with neighbour.held() as served:
        imported = await keep_on(seconds, 1, hand_in)
    assert set(imported) == {str(ROWS)}
    assert served.p50 <= HALF_FACTOR * neighbour.idle.p50, f"{WAITED}: {served}; alone: {neighbour.idle}"
