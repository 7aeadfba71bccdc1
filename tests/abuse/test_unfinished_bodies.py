"""Bodies that never come whole, and bodies that would grow: broken off, dripping, and packed with gzip."""

import gzip
from contextlib import AsyncExitStack

import pytest
from tests.abuse.attacker import Attacker, keep_on
from tests.abuse.conftest import Resident
from tests.abuse.neighbour import Neighbour
from tests.program import Api

pytestmark = [pytest.mark.alone, pytest.mark.usefixtures("memory_returns")]

CALLBACK = 3_000_000
UPLOAD = 50_000_000
BROKEN_OFF_AT = 16_000_000
DRIPPING = 32
TABLE = {"Content-Type": "text/csv"}


@pytest.mark.long
async def test_bodies_that_would_grow_are_refused_packed(
    attacker: Attacker, neighbour: Neighbour, seconds: float
) -> None:
    stranger, packed = attacker.without_credential(), gzip.compress(bytes(200_000_000), 1)
    async with neighbour.held():
        answers = await keep_on(
            seconds, 4, lambda: stranger.ask("POST", "/v2/sessions", packed, {"Content-Encoding": "gzip"})
        )
    assert set(answers) <= {415, 429}
    assert answers[415]


@pytest.mark.long
async def test_callbacks_that_break_off_keep_nobody_waiting(
    attacker: Attacker, neighbour: Neighbour, seconds: float
) -> None:
    stranger, most = attacker.without_credential(), bytes(CALLBACK - 1)
    async with neighbour.held():
        sent = await keep_on(
            seconds, 4, lambda: stranger.break_off("POST", "/v2/callbacks/chatapp/bridge", CALLBACK, most)
        )
    assert sent[True]


async def test_uploads_that_break_off_keep_nobody_waiting(
    attacker: Attacker, neighbour: Neighbour, seconds: float
) -> None:
    most = b"phone\n" + bytes(BROKEN_OFF_AT)
    async with neighbour.held():
        sent = await keep_on(seconds, 4, lambda: attacker.break_off("POST", "/contacts/import", UPLOAD, most, TABLE))
    assert sent[True]


async def test_imports_that_drip_leave_places_to_another_organization(
    attacker: Attacker, resident: Resident, neighbour: Neighbour
) -> None:
    async with AsyncExitStack() as streams:
        for _ in range(DRIPPING):
            _, writer = await attacker.connect()
            streams.push_async_callback(writer.wait_closed)
            streams.callback(writer.transport.abort)
            writer.write(attacker.head("POST", "/contacts/import", UPLOAD, TABLE) + b"phone\n")
            await writer.drain()
        async with neighbour.held(), Api(resident.url, resident.token) as other:
            for last in range(5):
                contacts = [{"phone": f"+551198765000{last}"}]
                done = await other.call(
                    "POST", "/contacts/import", {"contacts": contacts, "options": {"matchBy": "phone"}}
                )
                assert done["failed"] == 0
