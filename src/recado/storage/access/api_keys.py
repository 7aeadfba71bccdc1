"""API keys: records and tokens (C3.1, C24.4). A token is stored as its SHA-256 and is shown once.

A key has one current token and, for a grace after a rotation, its previous one: at most two that are valid.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from recado.domain.core.errors import conflict
from recado.domain.core.ids import API_KEY, Identified, IdSource
from recado.domain.core.tokens import mint_token, token_hash, token_prefix
from recado.storage.core.statements.rows import Executor, columns
from recado.storage.core.statements.sql import load
from recado.storage.core.statements.tables import Table, lock_organization

MAX_ACTIVE_KEYS = 50  # per environment (C31)


@dataclass(frozen=True, slots=True)
class ApiKey(Identified):
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
    last_used_at: datetime | None = None
    rotated_at: datetime | None = None
    previous_valid_until: datetime | None = None
    revoked_at: datetime | None = None

    def status(self, now: datetime) -> str:
        """`active`, `expired` or `revoked`."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= now else "active"


API_KEYS: Final = Table(
    "api_keys", ApiKey, "API key", own=load("api_keys"), convert={"scopes": frozenset, "allowed_ips": tuple}
)
SQL = API_KEYS.sql
read, get, list_page = API_KEYS.read, API_KEYS.get, API_KEYS.list_page


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
    key = await API_KEYS.insert(
        connection,
        ApiKey(
            organization_id=organization_id,
            id=ids.new(API_KEY),
            env=env,
            name=name,
            prefix=token_prefix(token),
            scopes=frozenset(scopes),
            expires_at=expires_at,
            allowed_ips=tuple(allowed_ips),
            rate_limits=rate_limits,
            unlimited=unlimited,
            created_by_id=created_by_id,
        ),
    )
    await connection.execute(SQL.insert_token, token_hash(token), organization_id, key.id)
    return key, token


async def refuse_beyond_limit(connection: Executor, organization_id: str, env: str, now: datetime) -> None:
    """Raise LIMIT_REACHED when the environment has its 50 active keys; holds the count until the transaction ends."""
    await lock_organization(connection, organization_id)
    if await connection.fetchval(SQL.active_count, organization_id, env, now) >= MAX_ACTIVE_KEYS:
        raise conflict(
            "LIMIT_REACHED", f"An environment holds at most {MAX_ACTIVE_KEYS} active keys.", limit=MAX_ACTIVE_KEYS
        )


async def rotate(
    connection: Executor, key: ApiKey, *, grace: timedelta, now: datetime, random_bytes: Callable[[int], bytes]
) -> tuple[ApiKey, str]:
    """Give the locked key a new token; the former one holds for `grace` more, any older one ends now (at most two)."""
    token = mint_token(f"svc_{key.env}_", random_bytes)
    until = now + grace
    row = await connection.fetchrow(
        SQL.rotate, key.organization_id, key.env, key.id, token_prefix(token), now, until if grace else None
    )
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
