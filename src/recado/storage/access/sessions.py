"""Sessions of people (C24.3): one sign-in has a token for each environment, stored hashed and shown once.

A sign-in that fails is counted against the address, whether an account has it or not.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256

from recado.domain.core.errors import Problem
from recado.domain.core.ids import SESSION, IdSource
from recado.domain.core.tokens import SESSION_PREFIXES, mint_token, token_hash
from recado.storage.access import accounts
from recado.storage.access.accounts import UserAccount, email_key
from recado.storage.core.statements.rows import Executor, columns
from recado.storage.core.statements.sql import load

SQL = load("sessions")

LASTS = timedelta(hours=12)
IDLE = timedelta(hours=2)
KEPT = timedelta(days=1)  # after its end

MOST_FAILURES = 5
LOCKED = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class OpenedSession:
    """`tokens` by environment, which nothing can show again."""

    account: UserAccount
    tokens: Mapping[str, str]
    expires_at: datetime


async def open_session(
    connection: Executor, ids: IdSource, account: UserAccount, *, now: datetime, random_bytes: Callable[[int], bytes]
) -> OpenedSession | None:
    """Make a session of the account whose password was right; None when it was disabled or changed meanwhile.

    To be run in a transaction.
    """
    row = await connection.fetchrow(accounts.SQL.logged_in, account.id, now, account.password_hash)
    if row is None:
        return None
    tokens: dict[str, str] = {env: mint_token(prefix, random_bytes) for prefix, env in SESSION_PREFIXES.items()}
    expires_at = now + LASTS
    await connection.execute(
        SQL.insert,
        ids.new(SESSION),
        account.organization_id,
        account.id,
        token_hash(tokens["live"]),
        token_hash(tokens["test"]),
        expires_at,
        now,
    )
    await connection.execute(SQL.forget_attempts, _hashed(account.email))
    return OpenedSession(accounts.read(row), tokens, expires_at)


async def end(executor: Executor, token: str, now: datetime) -> None:
    """End the session that has this token."""
    await executor.execute(SQL.end_one, token_hash(token), now)


async def end_of_account(connection: Executor, account_id: str, now: datetime) -> None:
    """End every session of the account."""
    await connection.execute(SQL.end_of_account, account_id, now)


async def touch(executor: Executor, used: Iterable[tuple[str, datetime]]) -> None:
    """Record the last use of many sessions: session, moment."""
    await executor.execute(SQL.touch, *columns(list(used), 2))


async def begin_attempt(executor: Executor, email: str, now: datetime) -> None:
    """Count an attempt to sign in; raises TOO_MANY_ATTEMPTS (429) after five that failed, for 15 minutes.

    Counted as failed until `open_session` forgets it: guesses made at once do not overtake the count.
    """
    row = await executor.fetchrow(SQL.begin_attempt, _hashed(email), now, now - LOCKED, MOST_FAILURES)
    if row["failures"] > MOST_FAILURES:
        left = (row["last_at"] + LOCKED - now).total_seconds()
        raise Problem(
            "TOO_MANY_ATTEMPTS",
            "Too many sign-ins with this e-mail address have failed.",
            headers={"Retry-After": str(max(1, -int(-left // 1)))},
        )


async def settle_attempt(executor: Executor, email: str, now: datetime) -> None:
    """Record that the attempt has failed now."""
    await executor.execute(SQL.settle_attempt, _hashed(email), now)


async def withdraw_attempt(executor: Executor, email: str) -> None:
    """Count an attempt no more: the password was not looked at."""
    await executor.execute(SQL.withdraw_attempt, _hashed(email))


async def purge(executor: Executor, now: datetime) -> None:
    """Remove sessions that ended a day ago, and failures that count no more."""
    await executor.execute(SQL.purge, now - KEPT)
    await executor.execute(SQL.purge_attempts, now - LOCKED)


def _hashed(email: str) -> bytes:
    return sha256(email_key(email).encode("utf-8", "surrogatepass")).digest()
