"""From a bearer token to its API key (C3.1, C24.4)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from recado.domain.core.errors import Problem
from recado.storage.access import api_keys, organizations
from recado.storage.access.api_keys import ApiKey
from recado.storage.access.token_directory import TokenDirectory


@dataclass(slots=True, eq=False)
class KnownKey:
    """One token's key, ready for use. `ends_at`: its expiry, revocation or the token's own end."""

    record: ApiKey
    ends_at: datetime | None
    suspended: bool
    hide_phone_hash: bool
    principal: Any = None  # what the HTTP layer makes of it, once


class KeyDirectory(TokenDirectory[KnownKey, tuple[str, str]]):
    """Tokens to keys. Refuses with UNAUTHORIZED, API_KEY_EXPIRED or API_KEY_REVOKED."""

    def forget_key(self, key_id: str) -> None:
        self.forget_where(lambda known: known.record.id == key_id)

    def forget_organization(self, organization_id: str) -> None:
        self.forget_where(lambda known: known.record.organization_id == organization_id)

    async def _load(self, hashed: bytes) -> KnownKey | None:
        row: Mapping[str, Any] | None = await self._executor.fetchrow(api_keys.SQL.by_token_hash, hashed)
        if row is None:
            return None
        if row["organization_moving"]:
            raise organizations.on_the_move()
        record = api_keys.read(row)
        ends = [end for end in (record.expires_at, record.revoked_at, row["token_valid_until"]) if end is not None]
        return KnownKey(record, min(ends) if ends else None, row["organization_suspended"], row["hide_phone_hash"])

    def _refuse_ended(self, known: KnownKey, now: datetime) -> None:
        if known.record.revoked_at is not None:
            raise Problem("API_KEY_REVOKED", "The API key was revoked: use another one.")
        if known.ends_at is not None and known.ends_at <= now:
            raise Problem("API_KEY_EXPIRED", "The API key has expired, or its token was rotated: use a new one.")

    def _use(self, known: KnownKey, now: datetime) -> tuple[str, str]:
        return known.record.organization_id, known.record.id

    async def _touch(self, used: Sequence[tuple[tuple[str, str], datetime]]) -> None:
        await api_keys.touch(self._executor, [(*key, at) for key, at in used])
