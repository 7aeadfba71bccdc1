"""Contacts and searches for them, on servers that find words inside words and on those that do not."""

from collections.abc import Sequence
from typing import Any

from tests.people import insert_people, phone

from recado.domain.contacts.contact_search import Inside, search_mark, search_words
from recado.storage.contacts import contact_reads
from recado.storage.contacts.contact_reads import ContactFilter, ContactPage, ContactSearch
from recado.storage.core.connections.postgres import Database

ORG, ENV = "org_7", "test"


async def learnt(db: Database) -> Inside:
    search = ContactSearch(db)
    await search.start()
    return search.inside


async def add(
    db: Database, names: Sequence[str], *, organization: str = ORG, env: str = ENV, first: int = 1, mark: str = ""
) -> None:
    """Contacts of these names, each with what finds it."""
    mark = mark or search_mark(organization, env)
    people = []
    for number, name in enumerate(names, start=first):
        entries = search_words(mark, phone(number), (name,))
        people.append({"name": name, "search": " ".join(f"'{entry}'" for entry in entries)})
    await insert_people(db, organization, env, people, first)


async def page(db: Database, q: str, inside: Inside | None = None, limit: int = 50, **more: Any) -> ContactPage:
    wanted = ContactFilter(organization_id=ORG, env=ENV, q=q, inside=await learnt(db) if inside is None else inside)
    return await contact_reads.list_page(db, wanted, limit=limit, **more)


async def names(db: Database, q: str) -> list[str | None]:
    found = await page(db, q)
    assert (found.total, found.estimated) == (len(found.items), False)
    return [contact.name for contact in reversed(found.items)]
