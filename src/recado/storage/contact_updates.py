"""Many contacts in one statement, for imports (C12.7): new ones by COPY, changed ones unless they changed since."""

from collections.abc import Sequence
from datetime import datetime
from io import BytesIO
from typing import Final

import orjson

from recado.storage.contacts import Contact, _array_text, _email_hash, _hex, derived
from recado.storage.postgres import Connection
from recado.storage.rows import Executor, pack
from recado.storage.sql import load

SQL = load("contact_imports")

_COLUMNS: Final = (
    "organization_id", "env", "id", "phone", "phone_hash", "name", "chatapp_profile_name", "email", "email_key",
    "avatar_url", "cpf_cipher", "cnpj_cipher", "birth_date_cipher", "cpf_index", "cnpj_index", "attributes", "tags",
    "tag_keys", "source", "external_id", "external_ids", "company_id", "company_role", "opt_in_status",
    "opt_in_source", "opt_in_at", "opt_in_ip", "opt_in_user_agent", "opt_in_revoked_at", "opt_in_revoked_reason",
    "search", "updated_at",
)  # fmt: skip
_NULL: Final = "\\N"
_ESCAPES: Final = str.maketrans({"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"})


async def copy_new(connection: Connection, new: Sequence[Contact]) -> None:
    """Store new contacts.

    Raises `asyncpg.UniqueViolationError`, which undoes the transaction, when somebody has the phone or the external id
    of one of them.
    """
    lines = "\n".join([_line(contact) for contact in new])
    source = BytesIO(f"{lines}\n".encode())
    await connection.copy_to_table("contacts", source=source, columns=_COLUMNS, format="text")


async def opted_out(connection: Executor, organization_id: str, env: str, new: Sequence[Contact]) -> list[int]:
    """The places of those that the opt-out registry knows by phone or address."""
    rows = await connection.fetch(
        SQL.opted_out,
        organization_id,
        env,
        pack([contact.phone_hash.hex() for contact in new]),
        pack([_email_hash(contact) for contact in new]),
    )
    return [row["place"] - 1 for row in rows]


def _line(contact: Contact) -> str:
    """A row as COPY takes it: texts are escaped where they may hold what separates cells and rows."""
    address, tag_keys, words = derived(contact)
    at, revoked_at = contact.opt_in_at, contact.opt_in_revoked_at
    return "\t".join(
        (
            contact.organization_id,
            contact.env,
            contact.id,
            contact.phone,
            f"\\\\x{contact.phone_hash.hex()}",
            _cell(contact.name),
            _cell(contact.chatapp_profile_name),
            _cell(contact.email),
            _cell(address),
            _cell(contact.avatar_url),
            contact.cpf_cipher or _NULL,
            contact.cnpj_cipher or _NULL,
            contact.birth_date_cipher or _NULL,
            _NULL if contact.cpf_index is None else f"\\\\x{contact.cpf_index.hex()}",
            _NULL if contact.cnpj_index is None else f"\\\\x{contact.cnpj_index.hex()}",
            _cell(orjson.dumps(contact.attributes).decode()) if contact.attributes else "{}",
            _cell(_array_text(contact.tags)) if contact.tags else "{}",
            _cell(_array_text(tag_keys)) if tag_keys else "{}",
            contact.source,
            _cell(contact.external_id),
            _cell(orjson.dumps(contact.external_ids).decode()) if contact.external_ids else "{}",
            contact.company_id or _NULL,
            contact.company_role or _NULL,
            contact.opt_in_status.value,
            _cell(contact.opt_in_source),
            _NULL if at is None else at.isoformat(),
            _cell(contact.opt_in_ip),
            _cell(contact.opt_in_user_agent),
            _NULL if revoked_at is None else revoked_at.isoformat(),
            _cell(contact.opt_in_revoked_reason),
            "'" + "' '".join(words) + "'",  # no word holds a quote
            contact.updated_at.isoformat(),
        )
    )


def _cell(text: str | None) -> str:
    if text is None:
        return _NULL
    return text if text.isprintable() and "\\" not in text else text.translate(_ESCAPES)


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
        [_hex(contact.cpf_index) for contact in changed],
        [_hex(contact.cnpj_index) for contact in changed],
        [orjson.dumps(contact.attributes).decode() for contact in changed],
        [_array_text(contact.tags) for contact in changed],
        [_array_text(keys) for keys in tag_keys],
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
