"""Plain records: rows that are listed, read, locked, changed and removed by statements made of their columns.

A table has a column for each field of its record. What is particular to it stands in the `.sql` file of its aggregate:
the statement `matches`, which filters its list, and any other of `tables.sql` that has to be a different one here.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Final, Generic, TypeVar

import asyncpg
import orjson

from recado.domain.core.errors import Problem, conflict
from recado.storage.core.statements.rows import Executor, Page, page, reader
from recado.storage.core.statements.sql import Queries, load
from recado.storage.core.statements.wide_rows import bounded, rows_of

R = TypeVar("R")

SQL = load("tables")

_PLACES: Final = re.compile(r"\$(\d+)")


@dataclass(frozen=True, slots=True)
class Unique:
    """What only one record of its owner may have, by columns. `holder`: what the refusal calls the id of who has it."""

    columns: tuple[str, ...]
    code: str
    detail: str
    holder: str

    def taken(self, holder: str | None) -> Problem:
        """409. `holder` None: it came at the same moment, or is gone meanwhile."""
        return Problem(self.code, self.detail, meta={self.holder: holder})


@dataclass(frozen=True, slots=True)
class Limit:
    """How many records an environment holds at most (C31), what they are called, and the code of the refusal."""

    most: int
    what: str
    code: str = "LIMIT_REACHED"


class Table(Generic[R]):
    """The rows of one kind of record. What writes is run in a transaction.

    `read` makes a record of a row; `sql` has the statements.
    """

    def __init__(
        self,
        name: str,
        record: type[R],
        what: str,
        *,
        own: Queries | None = None,
        key: Sequence[str] = ("organization_id", "env", "id"),
        convert: Mapping[str, Callable[[Any], Any]] | None = None,
        derived: Mapping[str, Callable[[R], Any]] | None = None,
        unseen: Collection[str] = (),
        unique: Unique | None = None,
        limit: Limit | None = None,
        wide: Sequence[str] = (),
        keeps_deleted: bool = False,
    ) -> None:
        """`what`: what a record is called. `own`: the statements of its aggregate.

        `convert`: by column, from what is stored to what the record holds. `derived`: columns that follow from the
        record and are no part of it. `unseen`: columns that no caller sees: to change them raises no revision.
        `wide`: columns that may hold much, so that a page is read in parts. `keeps_deleted`: deleted rows stay, with
        the moment in `deleted_at`, and are not found any more.
        """
        self.read = reader(record, **(convert or {}))
        self._what = what
        self._columns = tuple(field.name for field in fields(record))  # type: ignore[arg-type]
        self._key = tuple(key)
        self._version = tuple(column for column in ("revision",) if column in self._columns)
        self._derived = dict(derived or {})
        self._unseen = frozenset(unseen)
        self._unique = unique
        self._named = () if unique is None else (*self._key[:-1], *unique.columns)
        self._limit = limit
        self._wide = bool(wide)
        there = " and deleted_at is null" if keeps_deleted else ""
        columns = (*self._columns, *self._derived)
        words = {
            "table": name,
            "key": _equal(self._key) + there,
            "version": _equal(self._key + self._version) + there,
            "owner": _equal(self._key[:-1]) + there,
            "unique": _equal(self._named) + there,
            "columns": ", ".join(columns),
            "becomes": ", ".join(f"{column} = g.{column}" for column in columns if column not in self._key),
            "same": " and ".join(f"t.{column} = g.{column}" for column in self._key),
            "values": ", ".join(f"${place}" for place in range(1, len(columns) + 1)),
        }
        plain = {name: _filled(getattr(SQL, name), words) for name in dir(SQL)}
        own = own or Queries(name, {})
        matches = own.before(plain).matches
        self._filters = max(map(int, _PLACES.findall(matches)), default=0)
        paging = {name: f"${self._filters + place}" for place, name in enumerate(("before", "limit", "skip"), 1)}
        newest_first = _filled(plain["page"], {"matches": matches, **paging})
        plain["page"] = bounded(newest_first, wide, "p.id desc") if wide else newest_first
        plain["page_count"] = _filled(plain["page_count"], {"matches": matches})
        self.sql = own.before(plain)

    @property
    def versioned(self) -> bool:
        """Whether its records have a revision, which callers name (C6.3)."""
        return bool(self._version)

    @property
    def of_environment(self) -> bool:
        """Whether a record belongs to one environment of its organization."""
        return "env" in self._key

    async def get(self, executor: Executor, *key: str) -> R | None:
        """The record with this key: organization, environment and id, unless the table has another one."""
        row = await executor.fetchrow(self.sql.by_id, *key)
        return self.read(row) if row else None

    async def get_locked(self, connection: Executor, *key: str) -> R | None:
        """As `get`, and nobody else changes the row until this transaction ends."""
        row = await connection.fetchrow(self.sql.by_id_locked, *key)
        return self.read(row) if row else None

    async def list_page(
        self, executor: Executor, *matching: Any, limit: int, skip: int = 0, before_id: str | None = None
    ) -> Page[R]:
        """Newest first, what is read of the page at once. `matching`: what `matches` takes, or the first of it.

        `before_id`: only older ones, and nobody counts them.
        """
        filters = (*matching, *[None] * (self._filters - len(matching)))
        rows = await executor.fetch(self.sql.page, *filters, before_id, limit, skip)
        total = 0 if before_id else await executor.fetchval(self.sql.page_count, *filters)
        return page([self.read(row) for row in rows], total, more=self._wide and rows_of(rows) > len(rows))

    async def insert(self, connection: Executor, new: R) -> R:
        """Store a new record; raises `Problem` with the code of the limit, or the one of what is taken."""
        values = self._values(new)
        if self._limit is not None:
            await self._refuse_beyond(self._limit, connection, values)
        row = await connection.fetchrow(self.sql.insert, *values.values())
        if row is None and self._unique is not None:
            raise self._unique.taken(await self._holder(connection, values))
        return self.read(row)

    async def save(self, connection: Executor, before: R, after: R, now: datetime) -> R:
        """Write what differs; what callers see of it raises the revision.

        Raises `Problem` VERSION_MISMATCH when the row is no longer at `before.revision`, or the one of what is taken.
        """
        was, will = self._values(before), self._values(after)
        changes = {column: value for column, value in will.items() if _differ(value, was[column])}
        if not changes:
            return before
        await self._refuse_taken(connection, changes, will)
        if not self._unseen.issuperset(changes):
            moved = {"revision": was.get("revision", 0) + 1, "updated_at": now}
            changes |= {column: value for column, value in moved.items() if column in was}
        guard = [was[column] for column in self._key + self._version]
        assigned = ", ".join(f"{column} = ${place}" for place, column in enumerate(changes, len(guard) + 1))
        try:
            row = await connection.fetchrow(_filled(self.sql.save, {"changes": assigned}), *guard, *changes.values())
        except asyncpg.UniqueViolationError:
            if self._unique is None:
                raise
            raise self._unique.taken(None) from None
        if row is None:
            raise Problem(
                "VERSION_MISMATCH",
                f"Another request changed the {self._what} at the same time: read it again and repeat the change.",
            )
        return self.read(row)

    async def insert_many(self, connection: Executor, new: Sequence[R]) -> list[R]:
        """Store new records in one statement, of a table without a limit; answers those that took nobody's place."""
        rows = await connection.fetch(self.sql.insert_many, self._as_rows([self._values(each) for each in new]))
        return [self.read(row) for row in rows]

    async def save_many(self, connection: Executor, pairs: Sequence[tuple[R, R]], now: datetime) -> list[R]:
        """Write in one statement what differs of records before and after, as `save` does; answers those that do.

        The transaction holds the rows locked, and what is unique stays.
        """
        written = []
        for was, will in ((self._values(before), self._values(after)) for before, after in pairs):
            changes = {column for column, value in will.items() if _differ(value, was[column])}
            if changes and not self._unseen.issuperset(changes):
                moved = {"revision": was.get("revision", 0) + 1, "updated_at": now}
                will |= {column: value for column, value in moved.items() if column in was}
            if changes:
                written.append(will)
        rows = await connection.fetch(self.sql.save_many, self._as_rows(written)) if written else ()
        return [self.read(row) for row in rows]

    def _as_rows(self, values: Sequence[Mapping[str, Any]]) -> str:
        return orjson.dumps(values).decode()

    async def delete(self, connection: Executor, record: R) -> None:
        """Remove the row, which the transaction holds locked."""
        await connection.execute(self.sql.delete, *self.key_of(record))

    def key_of(self, record: R) -> tuple[str, ...]:
        return tuple(getattr(record, column) for column in self._key)

    def place_of(self, record: R) -> tuple[str, str | None, str]:
        """Whose the record is: its organization, its environment where it has one, and its own id."""
        key = dict(zip(self._key, self.key_of(record), strict=True))
        return key.get("organization_id", key["id"]), key.get("env"), key["id"]

    def revision_of(self, record: R) -> int | None:
        """Its revision; None where records have none."""
        return getattr(record, "revision", None)

    def _values(self, record: R) -> dict[str, Any]:
        """By column, as they are stored."""
        values = {column: _stored(getattr(record, column)) for column in self._columns}
        return values | {column: derive(record) for column, derive in self._derived.items()}

    async def _refuse_beyond(self, limit: Limit, connection: Executor, new: Mapping[str, Any]) -> None:
        await lock_organization(connection, new["organization_id"])
        count = await connection.fetchval(self.sql.count_of_environment, new["organization_id"], new["env"])
        if count >= limit.most:
            raise conflict(limit.code, f"An environment holds at most {limit.most:,} {limit.what}.", limit=limit.most)

    async def _refuse_taken(self, connection: Executor, changes: Mapping[str, Any], will: Mapping[str, Any]) -> None:
        unique = self._unique
        if unique is None or changes.keys().isdisjoint(unique.columns):
            return
        if self._limit is not None:  # who adds one waits: so it is known who has the value
            await lock_organization(connection, will["organization_id"])
        holder = await self._holder(connection, will)
        if holder is not None:
            raise unique.taken(holder)

    async def _holder(self, connection: Executor, values: Mapping[str, Any]) -> str | None:
        holder: str | None = await connection.fetchval(self.sql.named, *[values[column] for column in self._named])
        return holder


async def lock_organization(connection: Executor, organization_id: str) -> None:
    """Let nobody else lock the organization until this transaction ends."""
    await connection.execute(SQL.lock_organization, organization_id)


def _filled(statement: str, words: Mapping[str, str]) -> str:
    for name, word in words.items():
        statement = statement.replace(f"{{{name}}}", word)
    return statement


def _equal(columns: Sequence[str]) -> str:
    return " and ".join(f"{column} = ${place}" for place, column in enumerate(columns, 1)) or "true"


def _differ(one: Any, other: Any) -> bool:
    """Whether two values are stored differently: in JSON, 1 is not true."""
    if one is other:  # it may be long
        return False
    if one != other:
        return True
    return isinstance(one, list | dict) and _as_json(one) != _as_json(other)


def _as_json(value: Any) -> bytes:
    return orjson.dumps(value, default=repr, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)


def _stored(value: Any) -> Any:
    """As the driver takes it; sets in one order."""
    if isinstance(value, frozenset):
        return sorted(value)
    return list(value) if isinstance(value, tuple) else value
