"""Social accounts: what social messages leave from (C26), and whom an account at the provider belongs to."""

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from recado.domain.channels.policies import ACCOUNTS_CHANNEL
from recado.domain.core.clock import Clock
from recado.domain.core.errors import Problem
from recado.domain.core.ids import SOCIAL_ACCOUNT, Identified, IdSource, created_at
from recado.domain.senders.social_account import Platform, SocialAccountStatus
from recado.storage.core.directory import Directory
from recado.storage.core.statements.rows import Executor
from recado.storage.core.statements.sql import load
from recado.storage.core.statements.tables import Limit, Table

MOST_ACCOUNTS: Final = 1_000  # of an environment


@dataclass(frozen=True, slots=True, kw_only=True)
class SocialAccount(Identified):
    """One account. `connected_at`: when it was last connected; what the provider told before is late."""

    organization_id: str
    id: str
    env: str
    platform: Platform
    external_account_id: str
    display_name: str = field(repr=False)
    status: SocialAccountStatus = SocialAccountStatus.PENDING
    access_token_cipher: str | None = field(default=None, repr=False)
    connected_at: datetime | None = None
    deleted_at: datetime | None = None
    revision: int = 1
    updated_at: datetime


SOCIAL_ACCOUNTS: Final = Table(
    "social_accounts",
    SocialAccount,
    "social account",
    own=load("social_accounts"),
    convert={"platform": Platform, "status": SocialAccountStatus},
    unseen=("connected_at",),
    limit=Limit(MOST_ACCOUNTS, "social accounts"),
    keeps_deleted=True,
)
SQL = SOCIAL_ACCOUNTS.sql


def sandbox_account(ids: IdSource, *, organization_id: str) -> SocialAccount:
    """The account that every new organization has in test: connected (C2.2)."""
    account_id = ids.new(SOCIAL_ACCOUNT)
    return SocialAccount(
        organization_id=organization_id,
        id=account_id,
        env="test",
        platform=Platform.PAGE,
        external_account_id=f"sandbox-{account_id.removeprefix(SOCIAL_ACCOUNT)}",
        display_name="Sandbox",
        status=SocialAccountStatus.CONNECTED,
        updated_at=created_at(account_id),
    )


async def insert(connection: Executor, account: SocialAccount) -> SocialAccount:
    """Store a new account; its id at the platform is this organization's. Run it in a transaction.

    Raises `Problem` SOCIAL_ACCOUNT_TAKEN when an organization of the installation has that id in this environment;
    LIMIT_REACHED.
    """
    key = (account.env, ACCOUNTS_CHANNEL, account.external_account_id, account.organization_id)
    if await connection.fetchval(SQL.take_ownership, *key, account.id) is None:
        holder = await connection.fetchval(SQL.own_holder, *key)
        meta = {"field": "externalAccountId", "socialAccountId": holder}
        raise Problem("SOCIAL_ACCOUNT_TAKEN", "Another social account has this externalAccountId.", meta=meta)
    return await SOCIAL_ACCOUNTS.insert(connection, account)


async def by_external_id(executor: Executor, env: str, external_account_id: str) -> SocialAccount | None:
    """The account that a provider's report is about, whichever organization owns it."""
    row = await executor.fetchrow(SQL.by_external_id, env, ACCOUNTS_CHANNEL, external_account_id)
    return SOCIAL_ACCOUNTS.read(row) if row else None


async def delete(connection: Executor, account: SocialAccount, now: datetime) -> SocialAccount:
    """Take the account out of sight; its row stays for history, its id at the platform is free again.

    Raises `Problem` RESOURCE_IN_USE while messages wait to leave through it.
    """
    if await connection.fetchval(SQL.in_use, account.organization_id, account.env, account.id):
        raise Problem(
            "RESOURCE_IN_USE", "Messages of this account are still queued or being sent: archive them or wait."
        )
    gone = replace(account, deleted_at=now, access_token_cipher=None)
    deleted = await SOCIAL_ACCOUNTS.save(connection, account, gone, now)
    await connection.execute(
        SQL.release_ownership, account.env, ACCOUNTS_CHANNEL, account.external_account_id, account.organization_id,
        account.id,
    )  # fmt: skip
    return deleted


SocialAccountKey = tuple[str, str, str]  # organization, environment, account


class SocialAccountDirectory(Directory[SocialAccountKey, SocialAccount]):
    """Accounts that exist, by (organization, environment, id), read through, at most 5 s old."""

    def __init__(self, executor: Executor, *, clock: Clock) -> None:
        super().__init__(lambda key: SOCIAL_ACCOUNTS.get(executor, *key), clock=clock)
