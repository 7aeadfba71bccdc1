"""Every statement of the benches fits the tables that it runs against: the bench itself would tell after minutes."""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from bench import plain, storage
from tests.emptied import Emptied

_BENCHES = Path(plain.__file__).parent
_STATEMENT = re.compile(r"\s*(select|insert into|update|delete from|with \w+( \([^)]*\))? as)\s")
# What the bounds have for tables: by the benches all of whose statements are for them.
_OF_BOUNDS = {"plain": plain.SCHEMA, "storage": storage.SCHEMA}
_OF_LOADS = "end_to_end"  # waits for what a load sends, and counts it: at the service and at its bound
_MADE_FOR_BOUND = re.compile(r"insert into messages \(id, number_id,")  # of other benches

Placed = tuple[str, str]


def _statements(*benches: str) -> Iterator[Placed]:
    """Where each stands, and its text."""
    for bench in benches:
        for node in ast.walk(ast.parse((_BENCHES / f"{bench}.py").read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and _STATEMENT.match(node.value):
                yield f"bench/{bench}.py:{node.lineno}", node.value


def _of_service() -> list[Placed]:
    benches = sorted({file.stem for file in _BENCHES.glob("*.py")} - _OF_BOUNDS.keys())
    return [placed for placed in _statements(*benches) if not _MADE_FOR_BOUND.search(placed[1])]


async def _refused(connection: Any, statements: Iterable[Placed]) -> list[str]:
    refused = []
    for place, sql in statements:
        try:
            await connection.prepare(sql)
        except asyncpg.PostgresError as error:
            refused.append(f"{place}: {error}")
    return refused


async def test_what_benches_ask_of_the_service_fits_its_tables(emptied_database: Emptied) -> None:
    await emptied_database.empty()
    connection = await asyncpg.connect(**emptied_database.arguments)
    try:
        statements = _of_service()
        assert len(statements) > 40
        assert await _refused(connection, statements) == []
    finally:
        await connection.close()


@pytest.mark.parametrize("bound", _OF_BOUNDS)
async def test_what_benches_ask_of_their_bound_fits_its_tables(bound: str, postgres: dict[str, Any]) -> None:
    asked = [*_statements(bound)]
    if bound == "plain":
        loads = [*_statements(_OF_LOADS)]
        assert any("from dispatch" in sql for _, sql in loads)
        made = [placed for file in _BENCHES.glob("*.py") for placed in _statements(file.stem)]
        asked += [*loads, *(placed for placed in made if _MADE_FOR_BOUND.search(placed[1]))]
    connection = await asyncpg.connect(**postgres)
    try:
        await connection.execute("begin; create schema bound; set local search_path to bound")
        await connection.execute(_OF_BOUNDS[bound])
        assert asked
        refused = []
        for statement in asked:
            await connection.execute("savepoint asked")
            refused += await _refused(connection, [statement])
            await connection.execute("rollback to asked")
        assert refused == []
    finally:
        await connection.close()
