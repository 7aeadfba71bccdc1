"""Numbers: the chat-app senders of an organization (C14), and whom a provider's number belongs to.

`revision` rises with every change that a reader can see, except for the moment of the last look at the provider.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from recado.domain.channels.policies import NUMBERS_CHANNEL
from recado.domain.core.clock import Clock
from recado.domain.core.errors import Problem
from recado.domain.core.ids import NUMBER, Identified, IdSource, created_at
from recado.domain.senders.number import (
    DEFAULT_PER_DAY,
    DEFAULT_PER_SECOND,
    TIER_LIMITS,
    MessagingTier,
    NumberStatus,
    QualityRating,
)
from recado.storage.core.directory import Directory
from recado.storage.core.statements.rows import Executor
from recado.storage.core.statements.sql import load
from recado.storage.core.statements.tables import Table

REFRESH_EVERY = timedelta(minutes=15)  # C14.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Number(Identified):
    """One sender. `held_ms`: past pauses by an operator. `verify_at`: when the provider is asked next (C14.3).

    `limited_at`: when a limit came to its tier, until whom it wrote to in the day before is counted (C14.5.5).
    """

    organization_id: str
    id: str
    env: str
    phone_number_id: str
    business_account_id: str
    display_phone: str = field(repr=False)
    status: NumberStatus = NumberStatus.PENDING
    quality_rating: QualityRating = QualityRating.UNKNOWN
    messaging_tier: MessagingTier = MessagingTier.TIER_250
    per_second: int = DEFAULT_PER_SECOND
    per_day: int = DEFAULT_PER_DAY
    verified_name: str | None = None
    byo: bool = False
    name_status: str | None = None
    partner_removed_at: datetime | None = None
    partner_removed_reason: str | None = None
    profile: Mapping[str, str] = field(default_factory=dict)
    access_token_cipher: str | None = field(default=None, repr=False)
    operator_paused_at: datetime | None = None
    held_ms: int = 0
    last_provider_sync_at: datetime | None = None
    verify_at: datetime | None = None
    limited_at: datetime | None = None
    deleted_at: datetime | None = None
    revision: int = 1
    updated_at: datetime


NUMBERS: Final = Table(
    "numbers",
    Number,
    "number",
    own=load("numbers"),
    convert={"status": NumberStatus, "quality_rating": QualityRating, "messaging_tier": MessagingTier},
    unseen=("last_provider_sync_at", "verify_at"),
    keeps_deleted=True,
)
SQL = NUMBERS.sql
read, get, get_locked = NUMBERS.read, NUMBERS.get, NUMBERS.get_locked


def sandbox_number(ids: IdSource, *, organization_id: str, display_phone: str, now: datetime) -> Number:
    """The number that every new organization has in test: connected, without a tier limit (C2.2)."""
    number_id = ids.new(NUMBER)
    return Number(
        organization_id=organization_id,
        id=number_id,
        env="test",
        phone_number_id=f"sandbox-{number_id.removeprefix(NUMBER)}",
        business_account_id=f"sandbox-{organization_id}",
        display_phone=display_phone,
        status=NumberStatus.CONNECTED,
        quality_rating=QualityRating.GREEN,
        messaging_tier=MessagingTier.UNLIMITED,
        verified_name="Sandbox",
        name_status="approved",
        verify_at=now + REFRESH_EVERY,
        updated_at=created_at(number_id),
    )


async def insert(connection: Executor, number: Number) -> Number:
    """Store a new number; its provider id and its business account are this organization's. Run it in a transaction.

    Raises `Problem` NUMBER_TAKEN when an organization of the installation has that provider id in this environment, or
    another one the business account (C14.1).
    """
    account = (number.env, NUMBERS_CHANNEL, number.phone_number_id, number.organization_id)
    if await connection.fetchval(SQL.take_ownership, *account, number.id) is None:
        holder = await connection.fetchval(SQL.own_holder, *account)
        meta = {"field": "phoneNumberId", "numberId": holder}
        raise Problem("NUMBER_TAKEN", "Another number has this phoneNumberId.", meta=meta)
    joined = await connection.fetchval(
        SQL.join_business_account, number.env, number.business_account_id, number.organization_id
    )
    if joined is None:
        detail = "This businessAccountId belongs to another organization."
        raise Problem("NUMBER_TAKEN", detail, meta={"field": "businessAccountId"})
    return await NUMBERS.insert(connection, number)


async def of_organization(executor: Executor, organization_id: str, number_id: str) -> Number | None:
    """A number of the organization, in whichever environment."""
    row = await executor.fetchrow(SQL.of_organization, organization_id, number_id)
    return read(row) if row else None


async def by_provider_id(executor: Executor, env: str, phone_number_id: str) -> Number | None:
    """The number that a provider's report is about, whichever organization owns it."""
    row = await executor.fetchrow(SQL.by_provider_id, env, NUMBERS_CHANNEL, phone_number_id)
    return read(row) if row else None


async def of_business_account(executor: Executor, env: str, business_account_id: str) -> list[Number]:
    """The numbers that a provider's report about a whole business account is about: of the account's organization."""
    return [read(row) for row in await executor.fetch(SQL.of_business_account, env, business_account_id)]


async def save(connection: Executor, before: Number, after: Number, now: datetime) -> Number:
    """As of any record. A limit that comes to its tier is noted, and is not any more when it goes (C14.5.5)."""
    if TIER_LIMITS[after.messaging_tier] is None:
        after = replace(after, limited_at=None)
    elif TIER_LIMITS[before.messaging_tier] is None:
        after = replace(after, limited_at=now)
    return await NUMBERS.save(connection, before, after, now)


async def counted(executor: Executor, organization_id: str, number_id: str, limited_at: datetime) -> None:
    """Whom the number wrote to in the day before this limit came is counted."""
    await executor.execute(SQL.counted, organization_id, number_id, limited_at)


async def delete(connection: Executor, number: Number, now: datetime) -> Number:
    """Take the number out of sight; its row stays for history, its provider id is free again.

    So is its business account with the last number of it.

    Raises `Problem` RESOURCE_IN_USE while messages wait to leave through it, also those that a batch has still to make.
    """
    if await connection.fetchval(SQL.in_use, number.organization_id, number.env, number.id):
        raise Problem(
            "RESOURCE_IN_USE", "Messages of this number are still queued or being sent: archive them or wait."
        )
    deleted = await save(connection, number, replace(number, deleted_at=now, verify_at=None), now)
    await connection.execute(
        SQL.release_ownership, number.env, NUMBERS_CHANNEL, number.phone_number_id, number.organization_id, number.id
    )
    account = (number.env, number.business_account_id)
    if await connection.fetchval(SQL.leave_business_account, *account, number.organization_id) == 0:
        await connection.execute(SQL.free_business_account, *account)
    return deleted


async def claim_due(executor: Executor, env: str, now: datetime, *, lease: timedelta, limit: int) -> list[Number]:
    """Numbers whose provider is to be asked now; each is due again after `lease`, whatever becomes of this turn."""
    return [read(row) for row in await executor.fetch(SQL.claim_due, env, now, now + lease, limit)]


NumberKey = tuple[str, str, str]  # organization, environment, number


class NumberDirectory(Directory[NumberKey, Number]):
    """Numbers that exist, by (organization, environment, id), read through, at most 5 s old."""

    def __init__(self, executor: Executor, *, clock: Clock) -> None:
        super().__init__(lambda key: get(executor, *key), clock=clock)
