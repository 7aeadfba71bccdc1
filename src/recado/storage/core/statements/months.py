"""Names the table of a month in statements for messages that all lie in it (C2.1).

A plan for all months opens each of them whenever it runs, and an installation of two years has 27. Where a statement
says `messages /*month*/`, it may name the one table instead; as it is written it serves every month.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import asyncpg

from recado.storage.core.statements.rows import Executor

ANY_MONTH = "messages /*month*/"


@lru_cache(maxsize=256)
def in_month(statement: str, table: str) -> str:
    """The statement for messages of the month that lies in this table."""
    return statement.replace(ANY_MONTH, table)


class Months:
    """The months whose tables are known to be there: those around the present (`ensure_partitions`)."""

    __slots__ = ("_tables",)

    def __init__(self) -> None:
        self._tables: tuple[tuple[str, str, str], ...] = ()

    def know(self, tables: Sequence[tuple[str, str, str]]) -> None:
        """These tables are there, and no other is known: name and id bounds (low included, high not)."""
        self._tables = tuple(tables)

    def table(self, ids: Sequence[str]) -> str | None:
        """The table of all these messages; None where they lie in several, or in one that is not known."""
        if not self._tables or not ids:
            return None
        first, last = min(ids), max(ids)
        for name, low, high in self._tables:
            if low <= first and last < high:
                return name
        return None

    async def fetch(
        self, executor: Executor, statement: str, ids: Sequence[str], *arguments: object
    ) -> list[Mapping[str, Any]]:
        """Run a statement for messages with these ids.

        Raises UndefinedTableError where their table was dropped at this moment: it may be run again, for all months.
        """
        table = self.table(ids)
        try:
            rows: list[Mapping[str, Any]] = await executor.fetch(
                statement if table is None else in_month(statement, table), *arguments
            )
        except asyncpg.UndefinedTableError:
            self._tables = ()
            raise
        return rows


ALL_MONTHS = Months()
"""Knows no month: every statement is run as it is written."""
