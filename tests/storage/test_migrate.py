"""Migrations: applied once, in order, by one process at a time, and never after they were changed."""



from recado.storage.migrate import migrate, pending, read_migrations
from recado.storage.postgres import Database


async def test_the_schema_of_this_program_is_whole_after_migrating(database: Database) -> None:
    assert await pending(database) == []
    assert await migrate(database) == []
    names = [migration.name for migration in read_migrations()]
    assert await database.fetchval("select array_agg(name order by name) from schema_migrations") == names
