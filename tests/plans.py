"""Plans of statements, and tables that look to the planner as large as those of a million contacts."""

import math
import os
import re
from pathlib import Path
from typing import Any

import orjson

from recado.storage.core.connections.pool import Pool
from recado.storage.core.connections.postgres import Database

Plan = dict[str, Any]

_PAGE = 8192  # bytes
_MOST_PAGES = 131_072  # of one file
_RELATIONS = """
select c.oid, c.relkind::text as kind, pg_relation_filepath(c.oid) as path, c.relpages as pages, c.reltuples as rows
from pg_class c
where c.oid = $1::text::regclass or c.oid in (select indexrelid from pg_index where indrelid = $1::text::regclass)
order by c.relkind desc
"""
_GROWN = """
update pg_class set relpages = $2, reltuples = $3, relallvisible = case when relkind = 'r' then $2 else 0 end
where oid = $1
"""


def nodes(plan: Plan) -> list[Plan]:
    """A plan and everything below it."""
    return [plan, *(node for child in plan.get("Plans", []) for node in nodes(child))]


async def plan_of(executor: Any, sql: str, arguments: Any) -> list[Plan]:
    """Every node of the plan for these values."""
    (plan,) = orjson.loads(await executor.fetchval(f"explain (format json) {sql}", *arguments))
    return nodes(plan["Plan"])


async def plan_for_any(pool: Pool, sql: str, values: str | None = None) -> list[Plan]:
    """Every node of the plan that is made once for all values: on the batchers' connections that is each plan.

    `values`: literals, which say which months are shown; without them those that are the same for all rows show none.
    """
    given = values or ", ".join(["null"] * max(map(int, re.findall(r"\$(\d+)", sql))))
    async with pool.transaction() as connection:
        await connection.execute("set local plan_cache_mode = force_generic_plan")
        await connection.execute(f"prepare asked as {sql}")
        (plan,) = orjson.loads(await connection.fetchval(f"explain (format json) execute asked({given})"))
        await connection.execute("deallocate asked")
    return nodes(plan["Plan"])


def whole_tables(found: list[Plan]) -> set[str]:
    """The tables that a plan reads from one end to the other."""
    return {node["Relation Name"] for node in found if node["Node Type"] == "Seq Scan"}


def indexes(found: list[Plan]) -> set[str]:
    """The indexes that a plan reads."""
    return {node["Index Name"] for node in found if "Index Name" in node}


async def grow(db: Database, table: str, rows: int) -> None:
    """Let an analyzed table, and its indexes, count as holding so many rows of the kind that it holds.

    The planner scales what was counted to the present size of the files, so these grow with it: by pages that were
    never written, which take no room on the disk. Statements may be planned then, and not run.
    """
    folder = Path(await db.fetchval("show data_directory"))
    await db.execute(f"alter table {table} set (autovacuum_enabled = off)")
    relations = await db.fetch(_RELATIONS, table)
    factor = rows / relations[0]["rows"]
    for relation in relations:
        pages = math.ceil(relation["pages"] * factor)
        assert relation["pages"] <= pages <= _MOST_PAGES, relation
        os.truncate(folder / relation["path"], pages * _PAGE)
        await db.execute(_GROWN, relation["oid"], pages, relation["rows"] * factor)
