"""How many connections a database allows."""

from recado.storage.core.connections.allowed import connections_allowed
from recado.storage.core.connections.postgres import Database


async def test_the_least_of_what_server_user_and_database_allow(database: Database) -> None:
    of_server = int(await database.fetchval("show max_connections"))
    name = await database.fetchval("select quote_ident(current_database())")
    user = await database.fetchval("select quote_ident(current_user)")
    assert await connections_allowed(database) == of_server
    try:
        await database.execute(f"alter database {name} connection limit {of_server - 1}")
        assert await connections_allowed(database) == of_server - 1
        await database.execute(f"alter role {user} connection limit {of_server - 2}")
        assert await connections_allowed(database) == of_server - 2
    finally:
        await database.execute(f"alter role {user} connection limit -1")
        await database.execute(f"alter database {name} connection limit -1")
