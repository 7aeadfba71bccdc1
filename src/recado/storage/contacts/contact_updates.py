"""Many contacts in one statement (C12.7): changed ones, unless they changed since they were read; and their groups."""

from collections.abc import Sequence
from datetime import datetime

import orjson

from recado.domain.contacts.contact import email_hash
from recado.domain.core.phones import phone_hash
from recado.storage.contacts.contacts import Contact, array_text, derived, hex_text
from recado.storage.contacts.opt_outs import pack_spellings
from recado.storage.core.rows import Executor, pack
from recado.storage.core.sql import load

SQL = load("contact_imports")


async def opted_out(
    connection: Executor, organization_id: str, env: str, new: Sequence[tuple[str, str | None]]
) -> list[int]:
    """The places of those, by phone and address, that the opt-out registry knows, if it knows anyone."""
    if not new or not await connection.fetchval(SQL.anyone_opted_out, organization_id, env):
        return []
    rows = await connection.fetch(
        SQL.opted_out,
        organization_id,
        env,
        pack([phone_hash(organization_id, phone).hex() for phone, _ in new]),
        pack([None if email is None else email_hash(organization_id, email).hex() for _, email in new]),
        pack_spellings([phone for phone, _ in new]),
    )
    return [row["place"] - 1 for row in rows]


async def save_many(
    connection: Executor, organization_id: str, env: str, changed: Sequence[Contact], now: datetime
) -> set[str]:
    """Write contacts that still have the revision they are given with; answers the ids of those that were written.

    Raises `asyncpg.UniqueViolationError` when an external id is another contact's.
    """
    addresses, tag_keys, words = zip(*(derived(contact) for contact in changed), strict=True)
    rows = await connection.fetch(
        SQL.save_contacts,
        organization_id,
        env,
        now,
        [contact.id for contact in changed],
        [contact.revision for contact in changed],
        [contact.name for contact in changed],
        [contact.email for contact in changed],
        list(addresses),
        [contact.avatar_url for contact in changed],
        [contact.cpf_cipher for contact in changed],
        [contact.cnpj_cipher for contact in changed],
        [contact.birth_date_cipher for contact in changed],
        [hex_text(contact.cpf_index) for contact in changed],
        [hex_text(contact.cnpj_index) for contact in changed],
        [orjson.dumps(contact.attributes).decode() for contact in changed],
        [array_text(contact.tags) for contact in changed],
        [array_text(keys) for keys in tag_keys],
        [contact.external_id for contact in changed],
        [orjson.dumps(contact.external_ids).decode() for contact in changed],
        [contact.company_id for contact in changed],
        [contact.company_role for contact in changed],
        [contact.opt_in_status.value for contact in changed],
        [contact.opt_in_source for contact in changed],
        [contact.opt_in_at for contact in changed],
        [contact.opt_in_ip for contact in changed],
        [contact.opt_in_user_agent for contact in changed],
        [contact.opt_in_revoked_at for contact in changed],
        [contact.opt_in_revoked_reason for contact in changed],
        [" ".join(each) for each in words],
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


async def holders_of_groups(
    connection: Executor, organization_id: str, env: str, group_ids: Sequence[str]
) -> dict[str, str]:
    """By the id of each debt group that exists: the contact that it belongs to."""
    rows = await connection.fetch(SQL.groups_held, organization_id, env, list(group_ids))
    return {row["id"]: row["contact_id"] for row in rows}


async def remove_groups(connection: Executor, organization_id: str, env: str, contact_ids: Sequence[str]) -> None:
    """Remove all debt groups of these contacts."""
    if contact_ids:
        await connection.execute(SQL.remove_groups, organization_id, env, list(contact_ids))
