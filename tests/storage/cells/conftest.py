"""Two databases of the schema, and an organization that has rows in each table of it."""

import secrets
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import pytest
from tests.emptied import TEMPLATE
from tests.standing_connection import StandingConnection

from recado.domain.core.ids import ACCOUNT, MESSAGE, ORGANIZATION, IdSource
from recado.engine.clock import SystemClock
from recado.storage.cells.holding import Session, connect
from recado.storage.cells.moved_tables import MovedTable, moved_tables

ROWS = 3  # of each table
_TYPES = """
select quote_ident(attname), format_type(atttypid, atttypmod) from pg_attribute
where attrelid = $1::regclass and attnum > 0 and not attisdropped and attidentity = '' and attgenerated = ''
"""
_LITERALS: dict[str, Callable[[], str]] = {
    "bigint": lambda: str(secrets.randbelow(2**40)),
    "boolean": lambda: "true",
    "bytea": lambda: f"'\\x{secrets.token_hex(16)}'",
    "date": lambda: "'2026-11-01'",
    "integer": lambda: str(secrets.randbelow(2**30)),
    "json": lambda: '\'{"a": "line\\nbreak", "b":   1}\'',
    "jsonb": lambda: "'{\"a\": [1, 2.50]}'",
    "numeric": lambda: "12.50",
    "smallint": lambda: str(secrets.randbelow(2**14)),
    "time without time zone": lambda: "'08:30'",
    "timestamp with time zone": lambda: "'2026-11-27T10:00:00.123456Z'",
    "timestamp with time zone[]": lambda: "'{2026-11-27T10:00:00Z}'",
    "tsvector": lambda: "'ana:1 souza:2'",
}
# Nothing of these is under way, or due.
_IDLE = {
    "dispatch": {"claimed_epoch": "null", "claimed_at": "null"},
    "push_blocks": {"claimed_at": "null"},
    "push_dispatches": {"claimed_at": "null"},
    "push_messages": {"open": "true", "due_at": "'2999-01-01T00:00:00Z'"},
    "step_calls": {"claimed_at": "null"},
}


@dataclass
class TwoDatabases:
    """`urls`: of both; `organization_id`: whose rows `source` has, beside those of `neighbour_id`."""

    urls: tuple[str, str]
    source: Session
    target: Session
    organization_id: str
    neighbour_id: str

    async def rows(self, session: Session, organization_id: str) -> dict[str, list[str]]:
        """All of its rows, as texts; without the numbers that a database draws, and without its own row."""
        return {
            table.name: sorted(
                row[0]
                for row in await session.fetch(
                    f"select row({table.listed})::text from {table.name} where {table.whose}", organization_id
                )
            )
            for table in await moved_tables(session)
            if table.name != "organizations"
        }


@pytest.fixture(scope="session")
async def filled(postgres: dict[str, Any], maker: StandingConnection) -> tuple[str, str, str]:
    """A database in which two organizations have rows in each table, and their ids."""
    name = "recado_cell_filled"
    await maker.execute(f"create database {name} template {TEMPLATE} strategy file_copy")
    ids = IdSource(SystemClock(), secrets.SystemRandom())
    organization_ids = ids.new(ORGANIZATION), ids.new(ORGANIZATION)
    session = await connect(url_of(postgres, name))
    for organization_id in organization_ids:
        await fill(session, ids, organization_id)
    await session.close()
    return name, *organization_ids


@pytest.fixture
async def two(
    postgres: dict[str, Any], maker: StandingConnection, filled: tuple[str, str, str]
) -> AsyncIterator[TwoDatabases]:
    template, *organization_ids = filled
    names = [f"recado_cell_{secrets.token_hex(4)}" for _ in range(2)]
    for name, made_of in zip(names, (template, TEMPLATE), strict=True):
        await maker.execute(f"create database {name} template {made_of} strategy file_copy")
    first, second = (url_of(postgres, name) for name in names)
    source, target = await connect(first), await connect(second)
    try:
        yield TwoDatabases((first, second), source, target, *organization_ids)
    finally:
        await source.close()
        await target.close()
        for name in names:
            await maker.execute(f"drop database {name} with (force)")


def url_of(postgres: dict[str, Any], name: str) -> str:
    return f"postgresql://{postgres['user']}@/{name}?host={postgres['host']}&port={postgres['port']}"


async def fill(session: Session, ids: IdSource, organization_id: str) -> None:
    """Give the organization three rows in each table, and a wallet that is the sum of its entries."""
    account_ids: list[str] = []
    for table in sorted(await moved_tables(session), key=lambda table: (table.name != "accounts", table.name)):
        types = [(row[0], row[1]) for row in await session.fetch(_TYPES, table.name)]
        for n in range(1 if table.name in {"organizations", "wallets"} else ROWS):
            if table.name == "accounts":
                account_ids.append(ids.new(ACCOUNT))
            own = {
                "organization_id": f"'{organization_id}'",
                "env": "'test'",
                **_own(table, ids, n),
                **_IDLE.get(table.name, {}),
            }
            if table.name == "organizations":
                own |= {
                    "id": f"'{organization_id}'",
                    "status": "'active'",
                    "held_since": "null",
                    "held_ms": "0",
                    "moving": "false",
                    "time_zone": "'UTC'",
                    "quiet_start": "null",
                    "quiet_end": "null",
                }
            elif table.name == "accounts":
                own["id"] = f"'{account_ids[n]}'"
            elif table.name == "account_invites":
                own["account_id"] = f"'{account_ids[n]}'"
            values = [own.get(name.strip('"')) or _literal(kind) for name, kind in types]
            listed = ", ".join(name for name, _ in types)
            await session.execute(
                f"insert into {table.name} ({listed}) values ({', '.join(values)}) on conflict do nothing"
            )


def _own(table: MovedTable, ids: IdSource, n: int) -> dict[str, str]:
    match table.name:
        case "messages":
            return {"id": f"'{ids.new(MESSAGE)}'"}
        case "email_senders":
            return {"address": "null"}
        case "wallets":
            return {"balance_coins": "300", "verified_coins": "100", "verified_position": "1"}
        case "ledger":
            return {"coins": "100", "position": str(n + 1)}
    return {}


def _literal(kind: str) -> str:
    if kind in {"id", "text"}:
        return f"'{secrets.token_hex(12)}'"
    if kind == "text[]":
        return f"array['{secrets.token_hex(4)}', 'a,\"b']"
    return _LITERALS[kind]()
