"""Attacks on the entry of cells: whoever comes to his cell through it is served as beside nothing."""

import asyncio
import itertools
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import replace

import asyncpg
import pytest
from tests.abuse.attacker import ANSWER_LIMIT, Attacker, keep_on, status_of
from tests.abuse.conftest import Resident, cases
from tests.abuse.neighbour import Neighbour
from tests.abuse.test_framing import pour
from tests.cli.cells.test_serve import EntryProgram, serving
from tests.program import Service
from tests.two_cells import Cells

from recado.domain.core.tokens import mint_token

pytestmark = pytest.mark.alone

ADDRESSES = 60
AHEAD = 2_000
VERY_MANY = 800  # bodies
OPENED = 1.0  # seconds that a neighbour may wait where so many connections are made at once


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


async def left_open(stranger: Attacker, begin: bytes, drip: bytes, lasts: float = 0.5) -> int:
    """A request that does not end, until the entry ends it, or so many seconds have passed."""
    reader, writer = await stranger.connect()
    try:
        writer.write(begin)
        with suppress(OSError):
            async with asyncio.timeout(lasts):
                ended = asyncio.ensure_future(reader.read())
                while not ended.done():
                    writer.write(drip)
                    await asyncio.wait([ended], timeout=0.05)
    finally:
        writer.transport.abort()
    return 0


async def poured(stranger: Attacker, raw: bytes, lasts: float = ANSWER_LIMIT) -> int:
    """The status, 0 where the answer has no end within so many seconds."""
    reader, writer = await stranger.connect()
    try:
        with suppress(OSError):
            writer.write(raw)
            async with asyncio.timeout(lasts):
                return await status_of(reader)
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


async def a_body_that_trickles(caller: Attacker) -> int:
    return await left_open(caller, caller.head("POST", "/contacts", 100_000), b" ", lasts=2.0)


async def chunks_of_a_byte(caller: Attacker) -> int:
    head = caller.head("POST", "/contacts", None, {"Transfer-Encoding": "chunked", "Connection": "close"})
    return await poured(caller, head + b"1\r\n \r\n" * 20_000)


async def requests_ahead(stranger: Attacker) -> int:
    last = stranger.head("GET", "/contacts", None, {"Connection": "close"})
    return await poured(stranger, stranger.head("GET", "/contacts", None) * (AHEAD - 1) + last, lasts=2.0)


ATTACKS = {
    "heads without an end": (400, half_a_head),
    "tokens of nobody": (16, a_token_of_nobody),
    "extensions of chunks": (16, extensions),
    "large heads": (16, a_large_head),
    "requests ahead": (4, requests_ahead),
}
BODIES = {  # of somebody with a key: the cell takes them
    "bodies that trickle": (60, a_body_that_trickles),
    "chunks of a byte": (8, chunks_of_a_byte),
}
Attack = tuple[int, Callable[[Attacker], Awaitable[int]]]


def strangers(entry: EntryProgram, token: str | None = None) -> Iterator[Attacker]:
    """The same one from many addresses, again and again."""
    addresses = [f"127.0.2.{1 + number}" for number in range(ADDRESSES)]
    return itertools.cycle(Attacker("127.0.0.1", entry.port, token, source=each) for each in addresses)


@pytest.mark.parametrize("attack", cases(ATTACKS, "heads without an end"))
async def test_an_attack_on_the_entry_keeps_nobody_waiting(
    entry: EntryProgram, neighbour: Neighbour, seconds: float, attack: Attack
) -> None:
    (at_once, does), those = attack, strangers(entry)
    async with neighbour.held():
        answers = await keep_on(seconds, at_once, lambda: does(next(those)))
    assert set(answers) <= {0, 400, 401, 429}


@pytest.mark.parametrize("attack", cases(BODIES, *BODIES))
async def test_pieces_of_bodies_at_the_entry_keep_nobody_waiting(
    entry: EntryProgram, attacker_token: str, neighbour: Neighbour, seconds: float, attack: Attack
) -> None:
    (at_once, does), those = attack, strangers(entry, attacker_token)
    async with neighbour.held():
        answers = await keep_on(seconds, at_once, lambda: does(next(those)))
    assert set(answers) <= {0, 400, 429}


@pytest.mark.long
async def test_very_many_bodies_that_trickle_keep_a_neighbour_waiting_while_they_are_opened_only(
    entry: EntryProgram, attacker_token: str, neighbour: Neighbour, seconds: float
) -> None:
    those = strangers(entry, attacker_token)
    async with neighbour.held(OPENED):
        answers = await keep_on(seconds, VERY_MANY, lambda: a_body_that_trickles(next(those)))
    assert set(answers) == {0}
