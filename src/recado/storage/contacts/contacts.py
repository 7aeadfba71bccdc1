"""Contacts as rows (C12): one by id or phone, inserted and changed many at a time.

Lists are in `contact_reads.py`; consent history, opt-out registry and debt groups have modules of their own.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from recado.domain.contacts.consent import ConsentStatus
from recado.domain.contacts.contact import Contact, email_hash, email_key
from recado.domain.core.errors import Problem
from recado.storage.contacts.contact_columns import COLUMNS, SAVED, derived, in_sql, packed
from recado.storage.contacts.opt_outs import pack_spellings
from recado.storage.core.statements.rows import Executor, pack_some
from recado.storage.core.statements.sql import load
from recado.storage.core.statements.tables import Table

CONTACTS: Final = Table(
    "contacts",
    Contact,
    "contact",
    own=load(
        "contacts",
        columns=in_sql(COLUMNS),
        arrays=in_sql(COLUMNS, "{array}"),
        values=in_sql(COLUMNS, "{value} as {name}"),
        saved=in_sql(SAVED),
        saved_arrays=in_sql(SAVED, "{array}"),
        changes=in_sql(SAVED, "{name} = {value}"),
        change=in_sql({name: form for name, form in SAVED.items() if name != "search"}, "{name} = :{name}"),
    ),
    convert={"opt_in_status": ConsentStatus, "tags": tuple, "social_identities": tuple},
)
SQL = CONTACTS.sql
read, get, get_locked, delete = CONTACTS.read, CONTACTS.get, CONTACTS.get_locked, CONTACTS.delete

WIDE: Final = ("attributes", "avatar_url", "tags", "external_ids")  # columns that may hold much


async def by_phones(executor: Executor, organization_id: str, env: str, phones: Sequence[str]) -> list[Contact]:
    """The contacts of these canonical phones, by id."""
    return [read(row) for row in await executor.fetch(SQL.by_phones, organization_id, env, list(phones))]


async def by_external_ids(executor: Executor, organization_id: str, env: str, ids: Sequence[str]) -> list[Contact]:
    """The contacts that customers know by these ids, by id."""
    return [read(row) for row in await executor.fetch(SQL.by_external_ids, organization_id, env, list(ids))]


async def ids_by_email(executor: Executor, organization_id: str, env: str, address: str) -> list[str]:
    """Every contact with this address, whatever its case (C12.5.7); thousands may share one."""
    rows = await executor.fetch(SQL.by_email, organization_id, env, email_key(address))
    return [row["id"] for row in rows]


async def ids_by_user_id(executor: Executor, organization_id: str, env: str, user_id: str) -> list[str]:
    """Every contact that the chat app names so: mostly one (C28.6)."""
    return [row["id"] for row in await executor.fetch(SQL.by_user_id, organization_id, env, user_id)]


async def lock(connection: Executor, organization_id: str, env: str, ids: Sequence[str]) -> list[str]:
    """Of these, in order, those that are there; nobody else changes them until this transaction ends."""
    return [row["id"] for row in await connection.fetch(SQL.lock, organization_id, env, list(ids))]


async def by_ids(executor: Executor, organization_id: str, env: str, ids: Sequence[str]) -> list[Contact]:
    """The contacts with these ids, by id."""
    return [read(row) for row in await executor.fetch(SQL.by_ids, organization_id, env, list(ids))]


async def insert(executor: Executor, batch: Sequence[Contact], *, unless_opted_out: bool) -> set[str]:
    """Store new contacts; answers the ids of those that were stored.

    Left out is anyone who has the phone or the external id of another, and with `unless_opted_out` anyone the opt-out
    registry knows by phone or address.
    """
    addresses = [
        None if contact.email is None else email_hash(contact.organization_id, contact.email).hex() for contact in batch
    ]
    spellings = pack_spellings([contact.phone for contact in batch]) if unless_opted_out else None
    rows = await executor.fetch(
        *SQL.bind(
            "insert",
            **packed(batch, COLUMNS),
            unless_opted_out=unless_opted_out,
            email_hash=pack_some(addresses),
            spellings=spellings,
        )
    )
    return {row["id"] for row in rows}


async def holders(executor: Executor, batch: Sequence[Contact]) -> dict[str, tuple[str, bool]]:
    """By the id of each of these that is not free: who has its phone (True) or its external id (False)."""
    rows = await executor.fetch(
        SQL.holders,
        [contact.organization_id for contact in batch],
        [contact.env for contact in batch],
        [contact.id for contact in batch],
        [contact.phone for contact in batch],
        [contact.external_id for contact in batch],
    )
    found: dict[str, tuple[str, bool]] = {}
    for row in rows:
        if row["by_phone"] or row["id"] not in found:
            found[row["id"]] = (row["holder"], row["by_phone"])
    return found


async def save(executor: Executor, before: Contact, after: Contact, now: datetime) -> Contact:
    """Write `after` in place of `before`, which raises the revision; nothing when they do not differ.

    Raises `Problem` VERSION_MISMATCH when the row is no longer at `before.revision`, and `asyncpg.UniqueViolationError`
    when the external id is another contact's. What never changes is not written: phone, source, `last_interaction_at`.
    """
    if after == before:
        return before
    address, tag_keys, words = derived(after)
    row = await executor.fetchrow(
        *SQL.bind(
            "save", after, revision=before.revision, email_key=address, tag_keys=tag_keys, words=words, updated_at=now
        )
    )
    if row is None:
        raise Problem(
            "VERSION_MISMATCH",
            "Another request changed the contact at the same time: read it again and repeat the change.",
        )
    return read(row)


async def save_many(
    connection: Executor, organization_id: str, env: str, changed: Sequence[Contact], now: datetime
) -> set[str]:
    """Write contacts that still have the revision they are given with; answers the ids of those that were written.

    Raises `asyncpg.UniqueViolationError` when an external id is another contact's.
    """
    rows = await connection.fetch(
        *SQL.bind(
            "save_contacts",
            **packed(changed, SAVED),
            organization_id=organization_id,
            env=env,
            ids=[contact.id for contact in changed],
            revisions=[contact.revision for contact in changed],
            now=now,
        )
    )
    return {row["id"] for row in rows}


async def hold(connection: Executor, organization_id: str, env: str, contact_ids: Sequence[str]) -> bool:
    """Keep contacts from being deleted until this transaction ends; False when one of them is gone already."""
    rows = await connection.fetch(SQL.hold, organization_id, env, list(contact_ids)) if contact_ids else ()
    return len(rows) == len(contact_ids)


async def hold_unchanged(connection: Executor, organization_id: str, env: str, known: Sequence[Contact]) -> bool:
    """Keep contacts as they are until this transaction ends; False when one was changed or deleted before."""
    ids, revisions = [contact.id for contact in known], [contact.revision for contact in known]
    return len(await connection.fetch(SQL.hold_unchanged, organization_id, env, ids, revisions)) == len(known)
