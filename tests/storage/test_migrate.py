"""Migrations: applied once, in order, by one process at a time, and never after they were changed."""

import asyncio
from pathlib import Path

import asyncpg
import pytest

from recado.storage.migrate import Migration, MigrationError, migrate, pending, read_migrations
from recado.storage.postgres import Database

SHIPPED = read_migrations()
MORE = (
    *SHIPPED,
    Migration("9001_table", "create table made_by_migration (a integer); insert into made_by_migration values (1);"),
    Migration("9002_column", "alter table made_by_migration add column b text not null default 'b'"),
)


async def test_the_schema_of_this_program_is_whole_after_migrating(database: Database) -> None:
    assert await pending(database) == []
    assert await migrate(database) == []
    names = [migration.name for migration in SHIPPED]
    assert await database.fetchval("select array_agg(name order by name) from schema_migrations") == names


async def test_an_empty_database_lacks_everything_and_looking_changes_nothing(database: Database) -> None:
    await database.execute("drop schema public cascade; create schema public")
    for _ in range(2):
        assert await pending(database) == [migration.name for migration in SHIPPED]
    assert await migrate(database) == [migration.name for migration in SHIPPED]
    assert await database.fetchval("select count(*) from organizations") == 0


async def test_only_what_is_missing_is_applied(database: Database) -> None:
    assert await migrate(database, MORE[:-1]) == ["9001_table"]
    assert await pending(database, MORE) == ["9002_column"]
    async with database.acquire() as connection:
        assert await migrate(connection, MORE) == ["9002_column"]
    assert dict(await database.fetchrow("select * from made_by_migration") or {}) == {"a": 1, "b": "b"}


async def test_processes_that_start_together_apply_each_migration_once(database: Database) -> None:
    done = await asyncio.gather(*(migrate(database, MORE) for _ in range(4)))
    assert sorted(name for names in done for name in names) == ["9001_table", "9002_column"]


async def test_a_migration_that_fails_leaves_nothing_of_itself_and_all_before_it(database: Database) -> None:
    broken = Migration("9003_broken", "create table half (a integer); select * from no_such_table")
    with pytest.raises(asyncpg.UndefinedTableError):
        await migrate(database, (*MORE, broken))
    assert await pending(database, (*MORE, broken)) == ["9003_broken"]
    assert await database.fetchval("select to_regclass('half')") is None


async def test_a_migration_that_was_changed_after_it_was_applied_is_refused(database: Database) -> None:
    changed = (Migration(SHIPPED[0].name, SHIPPED[0].sql + "\n-- later"), *MORE[1:])
    for call in (migrate, pending):
        with pytest.raises(MigrationError, match=f"{SHIPPED[0].name} was changed after the database took it"):
            await call(database, changed)
    assert await database.fetchval("select to_regclass('made_by_migration')") is None


async def test_a_database_of_a_newer_program_is_refused(database: Database) -> None:
    await migrate(database, MORE)
    with pytest.raises(MigrationError, match="9001_table, which this program does not know"):
        await migrate(database)


async def test_another_order_of_migrations_is_refused(database: Database) -> None:
    await migrate(database, MORE[:-1])
    with pytest.raises(MigrationError, match="holds the migration 9001_table where 9002_column is expected"):
        await migrate(database, (*SHIPPED, MORE[-1], MORE[-2]))


@pytest.mark.parametrize(
    ("names", "complaint"),
    [
        (["0001_a.sql", "0003_c.sql"], "0003_c.sql stands where migration 0002 is expected"),
        (["0001_a.sql", "0001_b.sql"], "0001_b.sql stands where migration 0002 is expected"),
        (["1_a.sql"], "1_a.sql is no migration"),
        (["0001_A.sql"], "0001_A.sql is no migration"),
    ],
)
def test_numbers_without_gaps_name_the_files(tmp_path: Path, names: list[str], complaint: str) -> None:
    for name in names:
        (tmp_path / name).write_text("select 1")
    with pytest.raises(MigrationError, match=complaint):
        read_migrations(tmp_path)


def test_migrations_are_read_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for name in ("0002_b.sql", "0001_a.sql"):
        (tmp_path / name).write_text(f"select '{name}'")
    assert [migration.name for migration in read_migrations(tmp_path)] == ["0001_a", "0002_b"]
