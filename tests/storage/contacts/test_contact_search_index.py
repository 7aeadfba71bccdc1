"""The index of words inside words (C12.1): made where pg_trgm is offered and permitted, used where it is."""

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from tests.storage.conftest import empty_database, opened
from tests.storage.searching import ENV, ORG, add, learnt, names

from recado.domain.contacts.contact_search import Inside
from recado.storage.contacts import contact_reads
from recado.storage.contacts.contact_reads import ContactFilter
from recado.storage.core.connections.postgres import Database
from recado.storage.core.upkeep.migrate import migrate, pending

CONFIGURATION = Path(__file__).parents[3] / "docs" / "configuration.md"


@pytest.fixture
async def bare(system_postgres: dict[str, Any]) -> AsyncIterator[Database]:
    """A database where whoever migrates may make no extension."""
    async with empty_database(system_postgres) as arguments, opened(arguments) as db:
        await db.execute(f"revoke create on database {arguments['database']} from public, {arguments['user']}")
        yield db


async def permit(db: Database) -> None:
    """Give back what was taken."""
    database, user = await db.fetchval("select current_database()"), await db.fetchval("select current_user")
    await db.execute(f"grant create on database {database} to {user}")


async def test_where_the_server_offers_it_migrating_makes_extension_and_index(system_database: Database) -> None:
    assert not await system_database.fetchval("select rolsuper from pg_roles where rolname = current_user")
    assert await learnt(system_database) is Inside.ALL
    made = await system_database.fetchval("select pg_get_indexdef('contacts_search_inside'::regclass)")
    assert "gin (((search)::text) gin_trgm_ops)" in made
    assert await pending(system_database) == []


@pytest.mark.long
async def test_an_extension_that_somebody_made_in_another_schema_is_used(bare: Database) -> None:
    await permit(bare)
    await bare.execute('create schema "Of all"; create extension pg_trgm schema "Of all"')
    await migrate(bare)
    assert await learnt(bare) is Inside.ALL
    await add(bare, ["Maria"])
    assert await names(bare, "ari") == ["Maria"]


@pytest.mark.long
async def test_where_the_extension_is_not_permitted_all_else_is_migrated_and_beginnings_are_found(
    bare: Database,
) -> None:
    await migrate(bare)
    assert await pending(bare) == []
    assert await bare.fetchval("select to_regclass('contacts_search_inside') is null")
    assert await learnt(bare) is Inside.NONE
    await add(bare, ["Maria"])
    assert (await names(bare, "mari"), await names(bare, "aria")) == (["Maria"], [])


async def test_the_embedded_server_finds_beginnings_and_is_asked_for_nothing_else(database: Database) -> None:
    assert not await database.fetchval("select count(*) from pg_available_extensions where name = 'pg_trgm'")
    assert await learnt(database) is Inside.NONE
    await add(database, ["Maria", "Ana"])
    assert (await names(database, "mari"), await names(database, "aria")) == (["Maria"], [])
    sql, _ = contact_reads.search_query(ContactFilter(organization_id=ORG, env=ENV, q="maria"), limit=1)
    assert "~" not in sql


@pytest.mark.long
async def test_what_the_documents_say_brings_it_later(bare: Database) -> None:
    await migrate(bare)
    await add(bare, ["Maria"])
    await permit(bare)
    (block,) = re.findall(r"```sql\n(create extension pg_trgm;.*?)```", CONFIGURATION.read_text(), re.DOTALL)
    for statement in block.strip().split(";\n"):
        await bare.execute(statement.removesuffix(";"))
    assert await learnt(bare) is Inside.ALL
    assert await names(bare, "ari") == ["Maria"]


async def test_an_index_that_was_not_finished_is_not_used(system_database: Database) -> None:
    await system_database.execute("drop index contacts_search_inside")
    await add(system_database, ["Maria"])
    with pytest.raises(asyncpg.DivisionByZeroError):  # it leaves what it began
        await system_database.execute(
            "create index concurrently contacts_search_inside on contacts ((1 / (revision - 1)))"
        )
    assert await system_database.fetchval("select to_regclass('contacts_search_inside') is not null")
    assert await learnt(system_database) is Inside.NONE


@pytest.mark.long
async def test_letters_that_a_database_does_not_know_are_found_at_beginnings(system_postgres: dict[str, Any]) -> None:
    of_c = "template template0 lc_ctype 'C' lc_collate 'C'"
    async with empty_database(system_postgres, of_c) as arguments, opened(arguments) as db:
        await migrate(db)
        assert await learnt(db) is Inside.ASCII
        await add(db, ["Conceição", "Людмила"])
        assert await names(db, "ceição") == ["Conceição"]
        assert (await names(db, "людм"), await names(db, "мила")) == (["Людмила"], [])
