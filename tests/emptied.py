"""A database that the tests of a process use one after the other, emptied between them: to make one is slow.

What a test changes of its tables, or of what the planner knows of them, costs it its database: the next makes its own.
"""

from collections.abc import Awaitable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import asyncpg
import orjson
import pytest
from tests.standing_connection import StandingConnection, standing_connection

TEMPLATE = "recado_template"
POOL_SIZE = 8
_create_pool = asyncpg.create_pool

# Prepared once: to plan it anew for each test takes longer than to run it.
_LEFT = """
select count(pg_terminate_backend(pid)) from pg_stat_activity
where
    datname = current_database() and pid <> pg_backend_pid()
    and (state <> 'idle' or pid in (select pid from pg_locks where locktype <> 'virtualxid'))
"""
# What changes tables, columns, indexes, constraints, functions or triggers is counted, be it committed or not. Of what
# else changes a catalog, a row shows in the number of its transaction, and one that is gone in how many there are.
_COUNTED = """
create schema emptied;
create sequence emptied.changes;
create function emptied.count() returns event_trigger language plpgsql security definer as
    $$ begin perform nextval('emptied.changes'); end $$;
create event trigger emptied on ddl_command_end execute function emptied.count()
"""
_MARK = "(select concat_ws(' ', count(*), max(xmin::text::bigint)) from {})"
_LARGE = 1_024  # pages of a table: one that was larger is slower to look through than a new one is to make
# A table without pages was never written to. In one statement: each test waits for it.
_STATE = """
select json_build_array(
    concat_ws(
        ' ', count(*), max(xmin::text::bigint), (select concat(last_value, is_called) from emptied.changes),
        {of_statistics}
    ),
    coalesce(bool_or(size > {large} * 8192), false),
    coalesce(json_agg(relname) filter (where size > 0), '[]'),
    json_build_array({of_tables})
)
from (
    select xmin, relname,
        case when relkind = 'r' and relnamespace = 'public'::regnamespace then pg_relation_size(oid) end as size
    from pg_class
    offset 0
) c
"""
_CONTENT = "select coalesce(jsonb_agg(t order by t::text)::text, '[]') from {} t"
_AS_BEFORE = "delete from {0}; insert into {0} select * from jsonb_populate_recordset(null::{0}, $rows${1}$rows$)"


class KeptPool:
    """asyncpg's pool as `storage.core.connections.pool` uses it; what is closed in good order opens again as it was."""

    def __init__(self, pool: "asyncpg.Pool[asyncpg.Record]") -> None:
        self._pool = pool
        self._ended = False
        self.acquire, self.release, self.expire_connections = pool.acquire, pool.release, pool.expire_connections

    @property
    def usable(self) -> bool:
        return not self._ended and self._pool.get_idle_size() == self._pool.get_size()

    async def close(self) -> None:
        if not self.usable:
            self._ended = True
            await self._pool.close()

    def terminate(self) -> None:
        self._ended = True
        self._pool.terminate()


class Emptied:
    """`arguments`: to connect to it. It exists once it was emptied for the first time."""

    def __init__(self, server: dict[str, Any], name: str, maker: StandingConnection) -> None:
        self.arguments = {**server, "database": name}
        self._pools: dict[str, KeptPool] = {}
        self._maker = maker
        self._open = ExitStack()
        self._connection: StandingConnection | None = None
        self._shape = ""
        self._born_with: dict[str, str] = {}  # the tables that hold rows from their start, and these as JSON
        self._marks: list[str] = []  # of these tables, as long as nobody writes to them

    def open(self, **how: Any) -> Awaitable[Any]:
        """In place of `asyncpg.create_pool`; of another database it is that, which can be a context, too."""
        if how.get("database") != self.arguments["database"]:
            return _create_pool(**how)
        return self._kept(**how)

    async def _kept(self, **how: Any) -> Any:
        kind = repr(how)
        pool = self._pools.get(kind)
        if pool is None or not pool.usable:
            pool = self._pools[kind] = KeptPool(await _create_pool(**how))
        return pool

    async def empty(self) -> None:
        if not await self._emptied():
            await self._make()

    async def _emptied(self) -> bool:
        connection = self._connection
        if connection is None or connection.closed:
            return False
        await connection.fetchval(_LEFT)
        shape, grown, written, marks = await self._state(connection)
        if shape != self._shape or grown:
            return False
        emptying = [f"delete from {table}" for table in written if table not in self._born_with]
        changed = marks != self._marks
        if changed:
            for table, content in self._born_with.items():
                if await connection.fetchval(_CONTENT.format(table)) != content:
                    emptying.append(_AS_BEFORE.format(table, content))
        await connection.execute("set session_replication_role = replica;" + ";".join(emptying))
        if changed:
            *_, self._marks = await self._state(connection)
        return True

    async def _make(self) -> None:
        self.close()
        name = self.arguments["database"]
        await self._maker.execute(f"drop database if exists {name} with (force)")
        await self._maker.execute(f"create database {name} template {TEMPLATE} strategy file_copy")
        connection = self._connection = self._open.enter_context(standing_connection(self.arguments))
        await connection.execute(_COUNTED)
        self._born_with = {}
        _, _, written, _ = await self._state(connection)
        self._born_with = {table: await connection.fetchval(_CONTENT.format(table)) for table in written}
        self._shape, _, _, self._marks = await self._state(connection)

    async def _state(self, connection: StandingConnection) -> tuple[str, bool, list[str], list[str]]:
        """What tells a changed table, whether one has grown, those with pages, and marks of what it was born with."""
        of_tables = ", ".join(_MARK.format(table) for table in self._born_with)
        state = _STATE.format(of_statistics=_MARK.format("pg_statistic"), large=_LARGE, of_tables=of_tables)
        shape, grown, written, marks = orjson.loads(await connection.fetchval(state))
        return shape, grown, written, marks

    def close(self) -> None:
        for pool in self._pools.values():
            pool.terminate()
        self._pools.clear()
        self._connection = None
        self._open.close()


@contextmanager
def emptied(server: dict[str, Any], name: str, maker: StandingConnection) -> Iterator[Emptied]:
    """For a loop that all tests share: connections stay open between them, and know the tables already."""
    database = Emptied(server, name, maker)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(asyncpg, "create_pool", database.open)
        try:
            yield database
        finally:
            database.close()
