"""What an installation opens, and what it refuses to open (C33)."""

import base64
import os
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import asyncpg
import pytest

from recado.config.errors import SettingsError
from recado.config.settings import load_settings
from recado.engine.clock import SystemClock
from recado.installation import Installation
from recado.storage.core.upkeep.migrate import read_migrations
from recado.storage.dispatch.ownership import LOCK


async def test_a_given_database_with_a_pending_migration_is_refused_with_the_command_and_left_alone(
    postgres: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ENCRYPTION_KEYS", "INDEX_KEY", "CURSOR_KEY"):
        key = base64.b64encode(os.urandom(32)).decode()
        monkeypatch.setenv(f"RECADO_{name}", f"k1:{key}" if name == "ENCRYPTION_KEYS" else key)
    where: dict[Any, Any] = {name: postgres[name] for name in ("host", "port", "user") if name in postgres}
    monkeypatch.setenv("RECADO_DATABASE_URL", f"postgresql:///recado_pending?{urlencode(where)}")
    server = await asyncpg.connect(**postgres)
    await server.execute("create database recado_pending strategy file_copy")
    try:
        installation = Installation(
            load_settings(data_dir=tmp_path / "data"), clock=SystemClock(), random_bytes=os.urandom
        )
        with pytest.raises(SettingsError) as refused:
            await installation.start()
        (line,) = refused.value.lines
        assert line.startswith("the database lacks 0001_initial, ")
        assert line.endswith(f", {read_migrations()[-1].name}: apply with 'recado migrate'")
        tables = await asyncpg.connect(**{**postgres, "database": "recado_pending"})
        await tables.execute("select pg_advisory_lock($1, $2)", *LOCK)  # as a service of an earlier version has it
        with pytest.raises(SettingsError, match=r"of this one: stop it first$"):
            await installation.start(migrate_given=True)
        assert await tables.fetchval("select count(*) from pg_tables where schemaname = 'public'") == 0
        await tables.close()
    finally:
        await server.execute("drop database recado_pending with (force)")
        await server.close()
