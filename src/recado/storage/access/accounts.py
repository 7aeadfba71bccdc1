"""Accounts of people and their invitations (C24.2). An invitation is a token that is stored hashed and shown once."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from recado.domain.access.account import ACCOUNT_MACHINE, AccountEvent, AccountStatus, Role, scopes_of
from recado.domain.core.errors import Problem
from recado.domain.core.ids import ACCOUNT, Identified, IdSource, created_at
from recado.domain.core.tokens import mint_token, token_hash
from recado.storage.core.statements.rows import Executor
from recado.storage.core.statements.sql import load
from recado.storage.core.statements.tables import Table

INVITE_PREFIX = "svci_"
INVITE_LASTS = timedelta(hours=72)


@dataclass(frozen=True, slots=True)
class UserAccount(Identified):
    """One person's account. An e-mail address has one account in the whole installation."""

    organization_id: str
    id: str
    name: str
    email: str = field(repr=False)
    role: Role
    extra_scopes: frozenset[str]
    status: AccountStatus
    password_hash: str | None = field(repr=False)
    last_login_at: datetime | None
    updated_at: datetime

    @property
    def scopes(self) -> frozenset[str]:
        """What it allows, by its role and beyond (C3.3)."""
        return scopes_of(self.role, self.extra_scopes)


ACCOUNTS: Final = Table(
    "accounts",
    UserAccount,
    "account",
    own=load("accounts"),
    key=("organization_id", "id"),
    convert={"role": Role, "extra_scopes": frozenset, "status": AccountStatus},
)
SQL = ACCOUNTS.sql
read, get, get_locked, save = ACCOUNTS.read, ACCOUNTS.get, ACCOUNTS.get_locked, ACCOUNTS.save


def email_key(email: str) -> str:
    """What addresses are compared by (C2.4)."""
    return email.strip().lower()


async def create(
    connection: Executor,
    ids: IdSource,
    *,
    organization_id: str,
    name: str,
    email: str,
    role: Role,
    now: datetime,
    random_bytes: Callable[[int], bytes],
    extra_scopes: Iterable[str] = (),
    invited_by_id: str | None = None,
) -> tuple[UserAccount, str]:
    """Make an account; answers it and the token of its invitation, which nothing can show again.

    To be run in a transaction. Raises `Problem` ACCOUNT_EMAIL_TAKEN.
    """
    account_id = ids.new(ACCOUNT)
    row = await connection.fetchrow(
        SQL.insert,
        organization_id,
        account_id,
        name,
        email,
        email_key(email),
        role.value,
        sorted(extra_scopes),
        invited_by_id,
        created_at(account_id),
    )
    if row is None:
        raise Problem("ACCOUNT_EMAIL_TAKEN", "Another account of this installation has this e-mail address.")
    account = read(row)
    return account, await _invite(connection, account, now, random_bytes)


async def invite_again(
    connection: Executor, account: UserAccount, *, now: datetime, random_bytes: Callable[[int], bytes]
) -> tuple[UserAccount, str]:
    """Give the account a new invitation; the former one and a former password are void.

    Raises `Problem` INVALID_STATE when the account is active.
    """
    status = ACCOUNT_MACHINE.move(account.status, AccountEvent.INVITE)
    account = await save(connection, account, replace(account, status=status, password_hash=None), now)
    return account, await _invite(connection, account, now, random_bytes)


async def accept(connection: Executor, token: str, *, password_hash: str, now: datetime) -> UserAccount | None:
    """Make the invited account active with this password; None when the invitation is unknown, used or too old.

    To be run in a transaction.
    """
    found = await invited(connection, token, now)
    if found is None:
        return None
    # The account before its invitation, as everywhere: no two transactions wait for each other.
    account = await get_locked(connection, found.organization_id, found.id)
    if account is None or await connection.fetchval(SQL.take_invite, token_hash(token), now) is None:
        return None
    status = ACCOUNT_MACHINE.move(account.status, AccountEvent.ACCEPT)
    return await save(connection, account, replace(account, status=status, password_hash=password_hash), now)


async def invited(executor: Executor, token: str, now: datetime) -> UserAccount | None:
    """The account that this token still invites."""
    row = await executor.fetchrow(SQL.invited, token_hash(token), now)
    return read(row) if row else None


async def disable(connection: Executor, account: UserAccount, now: datetime) -> UserAccount:
    """Let the account sign in no more. Its sessions are ended by `sessions.end_of_account`."""
    status = ACCOUNT_MACHINE.move(account.status, AccountEvent.DISABLE)
    await connection.execute(SQL.end_invite, account.id)
    return await save(connection, account, replace(account, status=status), now)


async def refuse_without_owner(connection: Executor, account: UserAccount) -> None:
    """Raise CONFLICT when no other account is an active owner. The organization must be locked."""
    if not await connection.fetchval(SQL.other_active_owner, account.organization_id, account.id):
        raise Problem(
            "CONFLICT", "This is the last active owner of the organization: make another account owner first."
        )


async def by_email(executor: Executor, email: str) -> UserAccount | None:
    """The account with this address, in whatever spelling."""
    row = await executor.fetchrow(SQL.by_email, email_key(email))
    return read(row) if row else None


async def purge(executor: Executor, now: datetime) -> None:
    """Remove invitations that are too old."""
    await executor.execute(SQL.purge_invites, now)


async def _invite(
    connection: Executor, account: UserAccount, now: datetime, random_bytes: Callable[[int], bytes]
) -> str:
    token = mint_token(INVITE_PREFIX, random_bytes)
    await connection.execute(SQL.put_invite, account.id, token_hash(token), now + INVITE_LASTS)
    return token
