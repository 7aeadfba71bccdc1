"""Contacts as rows (C12): one by id or phone, inserted many at a time, changed under a lock.

Lists are in `contact_reads.py`; consent history, opt-out registry and debt groups have modules of their own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import orjson

from recado.domain.contacts.consent import Consent, ConsentStatus
from recado.domain.contacts.contact import email_hash, email_key, tag_key
from recado.domain.contacts.contact_search import search_mark, search_words
from recado.domain.core.errors import Problem
from recado.domain.core.ids import created_at
from recado.domain.core.phones import recipient_hash
from recado.storage.contacts.opt_outs import pack_spellings
from recado.storage.core.rows import Executor, array, pack, pack_moments, pack_some, reader
from recado.storage.core.sql import load

SQL = load("contacts")


@dataclass(slots=True, kw_only=True)
class Contact:
    """One contact. `phone` is canonical; `external_ids` by integration; `opt_in_*`: see `consent`.

    Not frozen only because a frozen one takes 4 µs more to make; nothing changes one.
    """

    organization_id: str
    env: str
    id: str
    phone: str = field(repr=False)
    phone_hash: bytes = field(repr=False)
    name: str | None = field(default=None, repr=False)
    chatapp_profile_name: str | None = field(default=None, repr=False)
    email: str | None = field(default=None, repr=False)
    avatar_url: str | None = field(default=None, repr=False)
    cpf_cipher: str | None = field(default=None, repr=False)
    cnpj_cipher: str | None = field(default=None, repr=False)
    birth_date_cipher: str | None = field(default=None, repr=False)
    cpf_index: bytes | None = field(default=None, repr=False)
    cnpj_index: bytes | None = field(default=None, repr=False)
    attributes: Mapping[str, Any] = field(default_factory=dict, repr=False)
    tags: tuple[str, ...] = ()
    source: str = "manual"
    external_id: str | None = None
    external_ids: Mapping[str, str] = field(default_factory=dict)
    company_id: str | None = None
    company_role: str | None = None
    opt_in_status: ConsentStatus = ConsentStatus.UNKNOWN
    opt_in_source: str | None = None
    opt_in_at: datetime | None = None
    opt_in_ip: str | None = field(default=None, repr=False)
    opt_in_user_agent: str | None = field(default=None, repr=False)
    opt_in_revoked_at: datetime | None = None
    opt_in_revoked_reason: str | None = field(default=None, repr=False)
    last_interaction_at: datetime | None = None
    revision: int = 1
    updated_at: datetime

    @property
    def created_at(self) -> datetime:
        return created_at(self.id)

    @property
    def consent(self) -> Consent:
        """What it consented to (C12.5)."""
        return Consent(
            self.opt_in_status,
            source=self.opt_in_source,
            at=self.opt_in_at,
            ip=self.opt_in_ip,
            user_agent=self.opt_in_user_agent,
            revoked_at=self.opt_in_revoked_at,
            revoked_reason=self.opt_in_revoked_reason,
        )

    @property
    def recipient_hash(self) -> int:
        """What `messages.recipient_hash` holds for messages to its phone."""
        return recipient_hash(self.organization_id, self.phone)


def consent_columns(consent: Consent) -> dict[str, Any]:
    """The fields of a contact that hold `consent`, for `dataclasses.replace`."""
    return {
        "opt_in_status": consent.status,
        "opt_in_source": consent.source,
        "opt_in_at": consent.at,
        "opt_in_ip": consent.ip,
        "opt_in_user_agent": consent.user_agent,
        "opt_in_revoked_at": consent.revoked_at,
        "opt_in_revoked_reason": consent.revoked_reason,
    }


read = reader(Contact, opt_in_status=ConsentStatus, tags=tuple)

WIDE: Final = ("attributes", "avatar_url", "tags", "external_ids")  # columns that may hold much


async def get(executor: Executor, organization_id: str, env: str, contact_id: str) -> Contact | None:
    row = await executor.fetchrow(SQL.by_id, organization_id, env, contact_id)
    return read(row) if row else None


async def get_locked(connection: Executor, organization_id: str, env: str, contact_id: str) -> Contact | None:
    """As `get`, and nobody else changes the row until this transaction ends."""
    row = await connection.fetchrow(SQL.by_id_locked, organization_id, env, contact_id)
    return read(row) if row else None


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


async def lock(connection: Executor, organization_id: str, env: str, ids: Sequence[str]) -> list[str]:
    """Of these, in order, those that are there; nobody else changes them until this transaction ends."""
    return [row["id"] for row in await connection.fetch(SQL.lock, organization_id, env, list(ids))]


async def by_ids(executor: Executor, organization_id: str, env: str, ids: Sequence[str]) -> list[Contact]:
    """The contacts with these ids, by id."""
    return [read(row) for row in await executor.fetch(SQL.by_ids, organization_id, env, list(ids))]


def derived(contact: Contact) -> tuple[str | None, list[str], list[str]]:
    """What is stored beside a contact to find it: its address in lower case, tags without case, search words."""
    mark = search_mark(contact.organization_id, contact.env)
    return (
        None if contact.email is None else email_key(contact.email),
        [tag_key(tag) for tag in contact.tags],
        search_words(mark, contact.phone, (contact.name, contact.chatapp_profile_name, contact.email)),
    )


async def insert(executor: Executor, batch: Sequence[Contact], *, unless_opted_out: bool) -> set[str]:
    """Store new contacts; answers the ids of those that were stored.

    Left out is anyone who has the phone or the external id of another, and with `unless_opted_out` anyone the opt-out
    registry knows by phone or address.
    """
    addresses, tag_keys, words = zip(*(derived(contact) for contact in batch), strict=True)
    rows = await executor.fetch(
        SQL.insert,
        pack([contact.organization_id for contact in batch]),
        pack([contact.env for contact in batch]),
        pack([contact.id for contact in batch]),
        pack([contact.phone for contact in batch]),
        pack([contact.phone_hash.hex() for contact in batch]),
        array([contact.name for contact in batch]),
        array([contact.chatapp_profile_name for contact in batch]),
        pack_some([contact.email for contact in batch]),
        pack_some(addresses),
        pack_some([_email_hash(contact) for contact in batch]),
        pack_some([contact.avatar_url for contact in batch]),
        pack_some([contact.cpf_cipher for contact in batch]),
        pack_some([contact.cnpj_cipher for contact in batch]),
        pack_some([contact.birth_date_cipher for contact in batch]),
        pack_some([hex_text(contact.cpf_index) for contact in batch]),
        pack_some([hex_text(contact.cnpj_index) for contact in batch]),
        pack([orjson.dumps(contact.attributes).decode() for contact in batch]),
        [array_text(contact.tags) for contact in batch],
        [array_text(keys) for keys in tag_keys],
        pack([contact.source for contact in batch]),
        array([contact.external_id for contact in batch]),
        array([orjson.dumps(contact.external_ids).decode() if contact.external_ids else None for contact in batch]),
        pack_some([contact.company_id for contact in batch]),
        pack_some([contact.company_role for contact in batch]),
        pack([contact.opt_in_status for contact in batch]),
        array([contact.opt_in_source for contact in batch]),
        pack_moments([contact.opt_in_at for contact in batch]),
        array([contact.opt_in_ip for contact in batch]),
        array([contact.opt_in_user_agent for contact in batch]),
        pack_moments([contact.opt_in_revoked_at for contact in batch]),
        unless_opted_out,
        array([contact.opt_in_revoked_reason for contact in batch]),
        pack([" ".join(each) for each in words]),
        pack_moments([contact.updated_at for contact in batch]),
        pack_spellings([contact.phone for contact in batch]) if unless_opted_out else None,
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
        SQL.save,
        before.organization_id,
        before.env,
        before.id,
        before.revision,
        after.name,
        after.chatapp_profile_name,
        after.email,
        address,
        after.avatar_url,
        after.cpf_cipher,
        after.cnpj_cipher,
        after.birth_date_cipher,
        after.cpf_index,
        after.cnpj_index,
        dict(after.attributes),
        list(after.tags),
        tag_keys,
        after.external_id,
        dict(after.external_ids),
        after.company_id,
        after.company_role,
        after.opt_in_status,
        after.opt_in_source,
        after.opt_in_at,
        after.opt_in_ip,
        after.opt_in_user_agent,
        after.opt_in_revoked_at,
        after.opt_in_revoked_reason,
        words,
        now,
    )
    if row is None:
        raise Problem(
            "VERSION_MISMATCH",
            "Another request changed the contact at the same time: read it again and repeat the change.",
        )
    return read(row)


async def delete(connection: Executor, contact: Contact) -> None:
    """Remove the row."""
    await connection.execute(SQL.delete, contact.organization_id, contact.env, contact.id)


def _email_hash(contact: Contact) -> str | None:
    return None if contact.email is None else email_hash(contact.organization_id, contact.email).hex()


def hex_text(value: bytes | None) -> str | None:
    """Bytes as `decode(…, 'hex')` takes them."""
    return None if value is None else value.hex()


def array_text(texts: Sequence[str]) -> str:
    """An array of texts as the server writes one: arrays of arrays would have to be of one length."""
    quoted = (text.replace("\\", "\\\\").replace('"', '\\"') for text in texts)
    return "{" + ",".join(f'"{text}"' for text in quoted) + "}"
