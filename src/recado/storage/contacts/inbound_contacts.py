"""Contacts of people who write: found and locked by their phones, and what a message moves on them (C28.1, C28.2)."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from recado.domain.channels.policies import heard_with
from recado.domain.contacts.contact import Contact
from recado.storage.contacts.contact_columns import derived
from recado.storage.contacts.contacts import read
from recado.storage.core.statements.rows import Executor, columns
from recado.storage.core.statements.sql import load

SQL = load("inbound_contacts")

Person = tuple[str, str, str]
"""Organization, environment, and canonical phone."""


User = tuple[str, str, str]
"""Organization, environment, and a business-scoped user id."""


MOST_OF_USER: Final = 20
"""Contacts with one user id that are looked at: a person has one, and a few after changes of the phone."""


async def of_users(executor: Executor, users: Sequence[User]) -> dict[User, Person]:
    """As whose contact these are known; the others are nobody's (C28.6)."""
    asked = sorted(set(users))
    if not asked:
        return {}
    rows = await executor.fetch(SQL.of_users, *columns(asked, 3), MOST_OF_USER)
    found = ((asked[row["n"] - 1], row["phone"]) for row in rows)
    return {user: (user[0], user[1], phone) for user, phone in found}


async def identify(connection: Executor, known_as: Sequence[tuple[Contact, str]], now: datetime) -> list[Contact]:
    """Give locked contacts, each once, the user ids by which they are known; answers them as they are then."""
    after = [
        replace(contact, chatapp_user_id=user_id, revision=contact.revision + 1, updated_at=now)
        for contact, user_id in known_as
    ]
    rows = [(each.organization_id, each.env, each.id, each.chatapp_user_id) for each in after]
    if rows:
        await connection.execute(SQL.identify, *columns(rows, 4), now)
    return after


async def locked(connection: Executor, people: Sequence[Person]) -> dict[Person, Contact]:
    """Those of `people` who are contacts; nobody else changes them until this transaction ends."""
    if not people:
        return {}
    rows = await connection.fetch(SQL.locked, *columns(sorted(set(people)), 3))
    return {person_of(contact): contact for contact in map(read, rows)}


async def touch(connection: Executor, channel: str, wrote: Sequence[tuple[Contact, datetime]]) -> None:
    """Move the last interaction of contacts, each given once, who wrote what is stored with `channel`."""
    rows = [(contact.organization_id, contact.env, contact.id, at) for contact, at in wrote]
    await connection.execute(SQL.touch, *columns(rows, 4), heard_with(channel))


async def rename(connection: Executor, renamed: Sequence[tuple[Contact, str]], now: datetime) -> list[Contact]:
    """Give locked contacts, each once, their new profile names; answers them as they are then."""
    after = [
        replace(contact, chatapp_profile_name=name, revision=contact.revision + 1, updated_at=now)
        for contact, name in renamed
    ]
    rows = [
        (each.organization_id, each.env, each.id, each.chatapp_profile_name, " ".join(derived(each)[2]))
        for each in after
    ]
    if rows:
        await connection.execute(SQL.rename, *columns(rows, 5), now)
    return after


def person_of(contact: Contact) -> Person:
    """Under which name a contact writes."""
    return (contact.organization_id, contact.env, contact.phone)
