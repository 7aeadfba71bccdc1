"""A database is lost only where nobody answers: one whose TLS is out of order is there, and so is what it holds."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from recado.cli.cells import databases
from recado.cli.cells.databases import must_be_lost
from recado.cli.errors import CommandError
from recado.storage.cells.cell_map import Cell

CELL = Cell("b", "CELL_B", "http://b.example", None)


@pytest.fixture
async def answers() -> AsyncIterator[tuple[int, list[bytes]]]:
    """A port, and what is answered there to the question whether there is TLS."""
    said: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(8)
        writer.write(said[0])
        await reader.read()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1], said
    server.close()


@pytest.mark.parametrize("said", [b"N", b"S" + b"no TLS" * 20], ids=["none", "broken"])
async def test_a_database_that_agrees_on_no_tls_is_not_lost(
    answers: tuple[int, list[bytes]], said: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers[1].append(said)
    monkeypatch.setenv("CELL_B", f"postgresql://who@127.0.0.1:{answers[0]}/cell?sslmode=require")
    with pytest.raises(CommandError, match="cannot be reached"):
        await must_be_lost(CELL)


async def test_a_database_that_one_may_not_reach_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    async def connect(url: str) -> None:
        raise PermissionError(url)

    monkeypatch.setattr(databases.holding, "connect", connect)
    monkeypatch.setenv("CELL_B", "postgresql:///cell?host=/var/run/theirs")
    with pytest.raises(CommandError, match="cannot be reached"):
        await must_be_lost(CELL)


async def test_a_database_is_lost_where_nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CELL_B", "postgresql://who@127.0.0.1:1/cell?sslmode=require")
    await must_be_lost(CELL)
