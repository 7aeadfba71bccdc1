"""Senders of e-mail (C10.4): records, which of them is the default, and when each is looked at again.

Who changes a sender locks its organization first: so one at a time decides which is the default.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final

from recado.domain.core.ids import EMAIL_SENDER, Identified, IdSource, created_at
from recado.domain.email.sender import MAX_SENDERS, DnsRecord, EmailSenderStatus, domain_of_address
from recado.storage.core.statements.rows import Executor
from recado.storage.core.statements.sql import load
from recado.storage.core.statements.tables import Limit, Table, Unique, lock_organization
from recado.storage.email import identities

SANDBOX_DOMAIN = "sandbox.test"  # nobody can own it


@dataclass(frozen=True, slots=True, kw_only=True)
class EmailSender(Identified):
    """A domain, with each of its addresses, or one address. `token`: what it proves itself by.

    `misses`: daily checks in a row that found nothing; `checked_at`: when a caller last had it looked at;
    `next_check_at`: when the daily check is due, None where there is none.
    """

    organization_id: str
    env: str
    id: str
    domain: str | None = None
    address: str | None = field(default=None, repr=False)
    display_name: str | None = field(default=None, repr=False)
    status: EmailSenderStatus = EmailSenderStatus.PENDING
    is_default: bool = False
    token: str = field(repr=False)
    dns_records: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)
    misses: int = 0
    checked_at: datetime | None = None
    next_check_at: datetime | None = None
    verified_at: datetime | None = None
    updated_at: datetime

    @property
    def name(self) -> str:
        """The domain or the address, as it is compared."""
        return (self.domain or self.address or "").lower()

    @property
    def mail_domain(self) -> str:
        """The domain whose owner has to prove it."""
        domain = self.domain or domain_of_address(self.address or "")
        if domain is None:
            raise ValueError("a sender without a domain was stored")
        return domain

    @property
    def records(self) -> tuple[DnsRecord, ...]:
        return tuple(DnsRecord(**each) for each in self.dns_records)


SENDERS: Final = Table(
    "email_senders",
    EmailSender,
    "sender",
    own=load("email_senders"),
    convert={"status": EmailSenderStatus, "dns_records": tuple},
    derived={"name_key": lambda sender: sender.name},
    unseen=("token", "misses", "checked_at", "next_check_at"),
    unique=Unique(("name_key",), "SENDER_TAKEN", "Another sender is this domain or address.", "senderId"),
    limit=Limit(MAX_SENDERS, "senders"),
)
SQL = SENDERS.sql


def stored_records(records: tuple[DnsRecord, ...]) -> tuple[dict[str, Any], ...]:
    """As they are kept."""
    return tuple(map(asdict, records))


async def insert(connection: Executor, new: EmailSender) -> EmailSender:
    """Store a new sender; the first verified one is the default. Raises `Problem` SENDER_TAKEN, LIMIT_REACHED."""
    await lock_organization(connection, new.organization_id)
    return await SENDERS.insert(connection, await _first_as_default(connection, new))


async def save(connection: Executor, before: EmailSender, after: EmailSender, now: datetime) -> EmailSender:
    """Write a change, in the transaction that holds the organization and the row.

    Who becomes the default takes that from the one that was; the first that is verified becomes it, and who fails
    leaves it to the oldest verified one.
    """
    if after.status is not EmailSenderStatus.VERIFIED:
        after = replace(after, is_default=False)
    elif after.is_default and not before.is_default:
        await connection.execute(SQL.no_default, after.organization_id, after.env, now)
    elif before.status is not EmailSenderStatus.VERIFIED:
        after = await _first_as_default(connection, after)
    saved = await SENDERS.save(connection, before, after, now)
    if before.is_default and not saved.is_default:
        await connection.execute(SQL.next_default, saved.organization_id, saved.env, now)
    return saved


async def delete(connection: Executor, sender: EmailSender, now: datetime) -> None:
    """Remove it, in the transaction that holds the organization and the row. As default it is followed likewise."""
    await SENDERS.delete(connection, sender)
    if sender.env == "live":
        await identities.forsake(connection, sender.mail_domain, now)
    if sender.is_default:
        await connection.execute(SQL.next_default, sender.organization_id, sender.env, now)


async def get_held(connection: Executor, organization_id: str, env: str, sender_id: str) -> EmailSender | None:
    """The sender, with its organization and its row held until this transaction ends."""
    await lock_organization(connection, organization_id)
    return await SENDERS.get_locked(connection, organization_id, env, sender_id)


async def sending(executor: Executor, organization_id: str, env: str, address: str | None) -> EmailSender | None:
    """The verified sender of an address, its own before that of its domain; without an address, the default one."""
    names = [] if address is None else [address.lower(), address.rpartition("@")[2].lower()]
    row = await executor.fetchrow(SQL.sending, organization_id, env, names)
    return None if row is None else SENDERS.read(row)


async def claim_check(executor: Executor, sender: EmailSender, now: datetime, *, apart: timedelta) -> bool:
    """Whether a caller may have it looked at now: at most once within `apart`."""
    row = await executor.fetchrow(SQL.claim_check, *SENDERS.key_of(sender), now, now - apart)
    return row is not None


async def claim_due(executor: Executor, now: datetime, *, lease: timedelta, limit: int) -> list[EmailSender]:
    """Those whose daily check is due, due again after `lease` should it come to nothing."""
    return [SENDERS.read(row) for row in await executor.fetch(SQL.claim_due, now, now + lease, limit)]


def sandbox_sender(ids: IdSource, *, organization_id: str, token: str) -> EmailSender:
    """The sender that every new organization has in test (C2.2)."""
    sender_id = ids.new(EMAIL_SENDER)
    born = created_at(sender_id)
    return EmailSender(
        organization_id=organization_id,
        env="test",
        id=sender_id,
        domain=SANDBOX_DOMAIN,
        display_name="Sandbox",
        status=EmailSenderStatus.VERIFIED,
        token=token,
        verified_at=born,
        updated_at=born,
    )


async def _first_as_default(connection: Executor, sender: EmailSender) -> EmailSender:
    if sender.is_default or sender.status is not EmailSenderStatus.VERIFIED:
        return sender
    there = await connection.fetchval(SQL.has_default, sender.organization_id, sender.env)
    return sender if there else replace(sender, is_default=True)
