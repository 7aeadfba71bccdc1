"""Social identities as rows: whose contact a user of an account is, and what that user wrote before (C26)."""

from collections.abc import Sequence
from typing import Final

from recado.domain.contacts.social_identities import SocialIdentity
from recado.domain.core.errors import FieldError, conflict
from recado.domain.core.ids import SOCIAL_ACCOUNT
from recado.domain.core.references import reference_not_found
from recado.storage.contacts.inbound_contacts import Person
from recado.storage.core.statements.rows import Executor, columns
from recado.storage.core.statements.sql import load

SQL = load("social_identities")

BLOCK: Final = 1_000  # messages in a statement

User = tuple[str, str, str, str]
"""Organization, environment, social account, and user id."""
ContactKey = tuple[str, str, str]


async def people(executor: Executor, users: Sequence[User]) -> dict[User, Person]:
    """As whose contacts these are known; the others are nobody's."""
    asked = sorted(set(users))
    if not asked:
        return {}
    rows = await executor.fetch(SQL.people, *columns(asked, 4))
    return {
        (user := asked[row["n"] - 1]): (user[0], user[1], row["phone"])
        for row in rows
    }  # fmt: skip


async def users_of(executor: Executor, contact: ContactKey, account_id: str) -> list[str]:
    """Whom a contact is at an account."""
    return [row["user_id"] for row in await executor.fetch(SQL.users_of, *contact, account_id)]


async def replace(connection: Executor, contact: ContactKey, before: Sequence[str], after: Sequence[str]) -> None:
    """Make these the identities of a contact that the transaction holds; each as it is stored.

    What people wrote as those that are new becomes the contact's. Raises `Problem` REFERENCE_NOT_FOUND for an account
    that does not exist, SOCIAL_IDENTITY_TAKEN for a user who is another contact.
    """
    gone = [SocialIdentity.of(each) for each in before if each not in after]
    new = [SocialIdentity.of(each) for each in after if each not in before]
    if gone:
        await connection.execute(SQL.unlink, *contact, *columns(gone, 2))
    if not new:
        return
    organization_id, env, _ = contact
    there = {
        row["id"]
        for row in await connection.fetch(SQL.accounts, organization_id, env, [each.account_id for each in new])
    }
    for each in new:
        if each.account_id not in there:
            field = f"socialIdentities.{after.index(each.stored)}.socialAccountId"
            raise reference_not_found(field, SOCIAL_ACCOUNT, each.account_id, env)
    linked = {tuple(row) for row in await connection.fetch(SQL.link, *contact, *columns(new, 2))}
    for each in new:
        if each not in linked:
            raise await _taken(connection, contact, each, after.index(each.stored))
    for each in new:
        last: str | None = ""
        while last is not None:
            last = await connection.fetchval(
                SQL.adopt, organization_id, env, each.account_id, each.user_id, contact[2], last, BLOCK
            )


async def forget(connection: Executor, contact: ContactKey) -> None:
    """The contact is nobody at any account any more."""
    await connection.execute(SQL.forget, *contact)


async def _taken(connection: Executor, contact: ContactKey, identity: SocialIdentity, place: int) -> Exception:
    holder = await connection.fetchval(SQL.holder, *contact[:2], *identity)
    problem = conflict("SOCIAL_IDENTITY_TAKEN", "Another contact has this social identity.", contactId=holder)
    path = f"/socialIdentities/{place}"
    problem.errors = (FieldError(path, problem.code, problem.detail),)
    return problem
