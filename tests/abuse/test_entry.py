"""Attacks on the entry of cells: whoever comes to his cell through it is served as beside nothing."""

import asyncio
import itertools
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import replace

import asyncpg
import pytest
from tests.abuse.attacker import Attacker, keep_on
from tests.abuse.conftest import Resident, cases
from tests.abuse.neighbour import Neighbour
from tests.abuse.test_framing import pour
from tests.cli.cells.test_serve import EntryProgram, serving
from tests.program import Service
from tests.two_cells import Cells

from recado.domain.core.tokens import mint_token

pytestmark = pytest.mark.alone

ADDRESSES = 60


@pytest.fixture(scope="session")
async def entry(service: Service, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EntryProgram]:
    """Before the service as its only cell."""
    found = service.cluster().connect_arguments
    place = f"?host={found['host']}" + (f"&port={found['port']}" if "port" in found else "")
    database = await asyncpg.connect(**found)
    await database.execute("create database recado_map")
    await database.close()
    urls = {
        "RECADO_CELLS_DATABASE_URL": f"postgresql://{found['user']}@/recado_map{place}",
        "CELL_A": f"postgresql://{found['user']}@/{found['database']}{place}",
    }
    cells = Cells(tmp_path_factory.mktemp("entry"), urls)
    arguments = ("add", "a", "--database-from", "CELL_A", "--url", f"http://127.0.0.1:{service.port}")
    await asyncio.to_thread(cells.said, *arguments)
    with pytest.MonkeyPatch.context() as environment:
        async with serving(cells, environment) as made:
            yield made


@pytest.fixture
async def neighbour(entry: EntryProgram, resident: Resident) -> AsyncIterator[Neighbour]:
    async with replace(resident, url=entry.url, idle=None).measured() as caller:
        yield caller


async def left_open(stranger: Attacker, begin: bytes, drip: bytes) -> int:
    """A request that does not end, until the entry ends it, or half a second has passed."""
    reader, writer = await stranger.connect()
    try:
        writer.write(begin)
        with suppress(OSError):
            async with asyncio.timeout(0.5):
                while not reader.at_eof():
                    writer.write(drip)
                    await asyncio.wait([asyncio.ensure_future(reader.read(1))], timeout=0.05)
    finally:
        writer.transport.abort()
    return 0


def _posted(stranger: Attacker, headers: dict[str, str], length: int | None = None) -> bytes:
    return stranger.head("POST", "/contacts", length, {"Connection": "close", **headers})


async def half_a_head(stranger: Attacker) -> int:
    return await left_open(stranger, _posted(stranger, {})[:-2], b"X-A: b\r\n")


async def a_token_of_nobody(stranger: Attacker) -> int:
    token = mint_token("svc_test_", os.urandom)
    return await pour(stranger, _posted(stranger, {"Authorization": f"Bearer {token}"}, 0), ())


async def extensions(stranger: Attacker) -> int:
    chunk = b"1;" + b"a" * 8_000 + b"\r\nx\r\n"
    return await pour(stranger, _posted(stranger, {"Transfer-Encoding": "chunked"}), [chunk] * 200)


async def a_large_head(stranger: Attacker) -> int:
    head = _posted(stranger, {"X-A": "a" * 200_000})
    return await pour(stranger, head[:1_000], [head[1_000:]])


ATTACKS = {
    "heads without an end": (400, half_a_head),
    "tokens of nobody": (16, a_token_of_nobody),
    "extensions of chunks": (16, extensions),
    "large heads": (16, a_large_head),
}


@pytest.mark.parametrize("attack", cases(ATTACKS, "heads without an end"))
async def test_an_attack_on_the_entry_keeps_nobody_waiting(
    entry: EntryProgram, neighbour: Neighbour, seconds: float, attack: tuple[int, Callable[[Attacker], Awaitable[int]]]
) -> None:
    at_once, does = attack
    addresses = [f"127.0.2.{1 + number}" for number in range(ADDRESSES)]
    strangers = itertools.cycle(Attacker("127.0.0.1", entry.port, source=each) for each in addresses)
    async with neighbour.held():
        answers = await keep_on(seconds, at_once, lambda: does(next(strangers)))
    assert set(answers) <= {0, 400, 401, 429}  # 0: the connection ended amid the sending
