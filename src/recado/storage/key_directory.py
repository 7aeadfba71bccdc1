"""Who a bearer token is: the cached way from a token to its key (C3.1), one dictionary look-up when it is known.

Form and checksum are tested before the database is asked, so that rubbish costs no query. A token that is unknown is
not remembered.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from recado.domain.clock import Clock
from recado.domain.errors import Problem
from recado.domain.tokens import token_env, token_hash
from recado.storage import api_keys
from recado.storage.api_keys import ApiKey
from recado.storage.directory import Directory
from recado.storage.rows import Executor

TTL = 5.0  # seconds until a change made by another process holds here (C24.4)
MOST_USED = 100_000  # keys whose last use waits to be written


@dataclass(slots=True, eq=False)
class KnownKey:
    """One token's key, ready for use. `ends_at`: its expiry, revocation or the token's own end."""

    record: ApiKey
    ends_at: datetime | None
    suspended: bool
    principal: Any = None  # what the HTTP layer makes of it, once


class KeyDirectory:
    """Tokens to keys. At most 5 s behind other processes; in this one every write calls a `forget_…`."""

    def __init__(self, executor: Executor, *, clock: Clock, capacity: int = 10_000) -> None:
        self._executor = executor
        self._now = clock.now
        self._known: Directory[bytes, KnownKey] = Directory(self._load, clock=clock, ttl=TTL, capacity=capacity)
        self._used: dict[tuple[str, str], datetime] = {}

    def peek(self, token: str) -> KnownKey | None:
        """The key of a valid token when it is at hand, without waiting; None = ask `authenticate`."""
        known = self._known.peek(token_hash(token))
        if known is None or (known.ends_at is not None and known.ends_at <= self._now()):
            return None
        return known

    async def authenticate(self, token: str) -> KnownKey:
        """The key of a valid token.

        Raises `Problem` UNAUTHORIZED, API_KEY_EXPIRED or API_KEY_REVOKED.
        """
        known = self.peek(token)
        if known is not None:
            return known
        if token_env(token) is None:
            raise Problem("UNAUTHORIZED", "The credential is not a key of this service.")
        known = await self._known.get(token_hash(token))
        if known is None:
            raise Problem("UNAUTHORIZED", "The credential is unknown.")
        if known.record.revoked_at is not None:
            raise Problem("API_KEY_REVOKED", "The key was revoked.")
        if known.ends_at is not None and known.ends_at <= self._now():
            raise Problem("API_KEY_EXPIRED", "The key, or this token of it, has expired.")
        # A key in use comes by here every five seconds, which is exact enough for the moment of its last use.
        key = (known.record.organization_id, known.record.id)
        if len(self._used) < MOST_USED or key in self._used:
            self._used[key] = self._now()
        return known

    def forget_key(self, key_id: str) -> None:
        self._known.forget_where(lambda known: known.record.id == key_id)

    def forget_organization(self, organization_id: str) -> None:
        self._known.forget_where(lambda known: known.record.organization_id == organization_id)

    async def flush(self) -> None:
        """Write the last uses gathered since the last flush, in one statement. Run every minute and at the end."""
        if not self._used:
            return
        used, self._used = self._used, {}
        try:
            await api_keys.touch(self._executor, [(*key, at) for key, at in used.items()])
        except BaseException:
            self._used = used | self._used
            raise

    async def _load(self, hashed: bytes) -> KnownKey | None:
        row: Mapping[str, Any] | None = await self._executor.fetchrow(api_keys.SQL.by_token_hash, hashed)
        if row is None:
            return None
        record = api_keys.read(row)
        ends = [end for end in (record.expires_at, record.revoked_at, row["token_valid_until"]) if end is not None]
        return KnownKey(record, min(ends) if ends else None, row["organization_suspended"])
