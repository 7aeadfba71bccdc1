"""Organizations that ask for large lists and read nothing of them: everybody else gets theirs (C31)."""

import asyncio
import itertools
import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress

import pytest
from tests.abuse.attacker import Attacker, keep_on
from tests.abuse.neighbour import Neighbour
from tests.program import Service

pytestmark = [pytest.mark.alone, pytest.mark.long]

HOSTILE = 4  # organizations: a quarter of the memory of unread answers each
UNREAD = 40  # lists of each, of which as many as fit its quarter stay
CONTACTS = 30
FULL = {f"a{n}": "x" * 1_000 for n in range(100)}
LISTS = "/contacts?limit=200"


async def settled(service: Service, name: str) -> Attacker:
    """A caller of an organization of its own, with contacts that make a page of 3 MB."""
    made = await asyncio.to_thread(service.command, "org", "create", "--name", name, "--json")
    caller = Attacker("127.0.0.1", service.port, made["keys"]["test"]["token"])
    phones = itertools.count(secrets.randbelow(10**7))
    contacts = [{"phone": f"+55119{next(phones):08}", "attributes": FULL} for _ in range(CONTACTS)]
    imported = {"contacts": contacts, "options": {"matchBy": "phone"}}
    assert await caller.ask("POST", "/contacts/import", imported) == 200
    return caller


async def gone(writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()
    with suppress(OSError):
        await writer.wait_closed()


@pytest.fixture
async def fifth(service: Service) -> AsyncIterator[Attacker]:
    """Who reads what it asks for, beside four organizations that leave everything unread."""
    async with AsyncExitStack() as connections:
        for number in range(HOSTILE):
            caller = await settled(service, f"Hostile {number}")
            for _ in range(UNREAD):
                reader, writer = await caller.connect()
                connections.push_async_callback(gone, writer)
                writer.write(caller.head("GET", LISTS, None))
                assert await reader.readline()  # it is answered, with a page or a refusal
                writer.transport.pause_reading()  # type: ignore[attr-defined]
        yield await settled(service, "Fifth")


async def test_lists_that_nobody_reads_take_no_list_from_anybody_else(
    fifth: Attacker, neighbour: Neighbour, seconds: float
) -> None:
    async with neighbour.held():
        answers = await keep_on(seconds, 4, lambda: fifth.ask("GET", LISTS))
    assert set(answers) == {200}
