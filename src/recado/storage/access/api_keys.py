"""API keys: records and tokens (C3.1, C24.4). A token is stored as its SHA-256 and is shown once.

A key has one current token and, for a grace after a rotation, its previous one: at most two that are valid.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from recado.domain.core.errors import Problem
from recado.domain.core.ids import API_KEY, IdSource, created_at
from recado.domain.core.tokens import mint_token, token_hash, token_prefix
from recado.storage.core.rows import Executor, Page, columns, page, reader
from recado.storage.core.sql import load

SQL = load("api_keys")

MAX_ACTIVE_KEYS = 50  # per environment (C31)


@dataclass(frozen=True, slots=True)
class ApiKey:
    """One key. `unlimited`: no request limit (load tests). `rate_limits`: overrides by class (C6.1)."""

    organization_id: str
    id: str
    env: str
    name: str
    prefix: str
    scopes: frozenset[str]
    expires_at: datetime | None
    allowed_ips: tuple[str, ...]
    rate_limits: Mapping[str, Any] | None
    unlimited: bool
    created_by_id: str | None
    last_used_at: datetime | None
    rotated_at: datetime | None
    previous_valid_until: datetime | None
    revoked_at: datetime | None

    @property
    def created_at(self) -> datetime:
        return created_at(self.id)

    def status(self, now: datetime) -> str:
        """`active`, `expired` or `revoked`."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= now else "active"


read = reader(ApiKey, scopes=frozenset, allowed_ips=tuple)


async def issue_key(
    connection: Executor,
    ids: IdSource,
    *,
    organization_id: str,
    env: str,
    name: str,
    scopes: Iterable[str],
    random_bytes: Callable[[int], bytes],
    expires_at: datetime | None = None,
    allowed_ips: Iterable[str] = (),
    rate_limits: Mapping[str, Any] | None = None,
    unlimited: bool = False,
    created_by_id: str | None = None,
) -> tuple[ApiKey, str]:
    """Make a key; answers the record and its token, which nothing can show again. Run it in a transaction."""
    token = mint_token(f"svc_{env}_", random_bytes)
    row = await connection.fetchrow(
        SQL.insert,
        organization_id,
        ids.new(API_KEY),
        env,
        name,
        token_prefix(token),
        sorted(scopes),
        expires_at,
        list(allowed_ips),
        rate_limits,
        unlimited,
        created_by_id,
    )
    key = read(row)
    await connection.execute(SQL.insert_token, token_hash(token), organization_id, key.id)
    return key, token


async def refuse_beyond_limit(connection: Executor, organization_id: str, env: str, now: datetime) -> None:
    """Raise LIMIT_REACHED when the environment has its 50 active keys; holds the count until the transaction ends."""
    await connection.execute(SQL.lock_organization, organization_id)
    if await connection.fetchval(SQL.active_count, organization_id, env, now) >= MAX_ACTIVE_KEYS:
        raise Problem(
            "LIMIT_REACHED",
            f"An environment holds at most {MAX_ACTIVE_KEYS} active keys.",
            meta={"limit": MAX_ACTIVE_KEYS},
        )


async def get(executor: Executor, organization_id: str, env: str, key_id: str) -> ApiKey | None:
    row = await executor.fetchrow(SQL.by_id, organization_id, env, key_id)
    return read(row) if row else None


async def get_locked(connection: Executor, organization_id: str, env: str, key_id: str) -> ApiKey | None:
    row = await connection.fetchrow(SQL.by_id_locked, organization_id, env, key_id)
    return read(row) if row else None


async def list_page(executor: Executor, organization_id: str, env: str, *, limit: int, skip: int) -> Page[ApiKey]:
    """Newest first."""
    rows = await executor.fetch(SQL.page, organization_id, env, limit, skip)
    return page([read(row) for row in rows], await executor.fetchval(SQL.page_count, organization_id, env))


async def save(connection: Executor, key: ApiKey) -> ApiKey | None:
    """Write name, scopes, expiry and addresses; None when the key was revoked meanwhile."""
    row = await connection.fetchrow(
        SQL.save,
        key.organization_id,
        key.env,
        key.id,
        key.name,
        sorted(key.scopes),
        key.expires_at,
        list(key.allowed_ips),
    )
    return read(row) if row else None


async def rotate(
    connection: Executor, key: ApiKey, *, grace: timedelta, now: datetime, random_bytes: Callable[[int], bytes]
) -> tuple[ApiKey, str] | None:
    """Give the key a new token; the former one holds for `grace` more, any older one ends now (at most two are valid).

    None when the key was revoked meanwhile.
    """
    token = mint_token(f"svc_{key.env}_", random_bytes)
    until = now + grace
    row = await connection.fetchrow(
        SQL.rotate, key.organization_id, key.env, key.id, token_prefix(token), now, until if grace else None
    )
    if row is None:
        return None
    await connection.execute(SQL.end_previous_tokens, key.organization_id, key.id, now)
    await connection.execute(SQL.end_current_token, key.organization_id, key.id, until)
    await connection.execute(SQL.insert_token, token_hash(token), key.organization_id, key.id)
    return read(row), token


async def replace_token(
    connection: Executor, key: ApiKey, unshown: bytes, *, random_bytes: Callable[[int], bytes]
) -> tuple[ApiKey, str] | None:
    """Give the locked key another token in place of the current one, of the hash `unshown`; the former one stays.

    None when a later rotation has ended it.
    """
    token = mint_token(f"svc_{key.env}_", random_bytes)
    if not await connection.fetchval(SQL.replace_token, key.organization_id, key.id, unshown, token_hash(token)):
        return None
    row = await connection.fetchrow(SQL.save_prefix, key.organization_id, key.env, key.id, token_prefix(token))
    return read(row), token


async def revoke(connection: Executor, organization_id: str, env: str, key_id: str, now: datetime) -> ApiKey | None:
    """End all tokens of the key. None when there is no such key or it was revoked before."""
    row = await connection.fetchrow(SQL.revoke, organization_id, env, key_id, now)
    return read(row) if row else None


async def touch(executor: Executor, used: Iterable[tuple[str, str, datetime]]) -> None:
    """Record the last use of many keys: organization, key, moment."""
    await executor.execute(SQL.touch, *columns(list(used), 3))
