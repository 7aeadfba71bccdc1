"""From a bearer token to its session and account (C3.1, C24.3)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from recado.domain.access.account import AccountStatus
from recado.domain.core.errors import Problem
from recado.storage.access import accounts, organizations, sessions
from recado.storage.access.accounts import UserAccount
from recado.storage.access.token_directory import TokenDirectory


@dataclass(slots=True, eq=False)
class KnownSession:
    """One token's session, ready for use. `ends_at`: `expires_at`, or two hours after its last use that is known."""

    id: str
    env: str
    account: UserAccount
    expires_at: datetime
    ends_at: datetime
    suspended: bool
    hide_phone_hash: bool
    principal: Any = None  # what the HTTP layer makes of it, once


class SessionDirectory(TokenDirectory[KnownSession, str]):
    """Tokens to sessions. Refuses with UNAUTHORIZED or SESSION_EXPIRED."""

    def forget_account(self, account_id: str) -> None:
        self.forget_where(lambda known: known.account.id == account_id)

    def forget_organization(self, organization_id: str) -> None:
        self.forget_where(lambda known: known.account.organization_id == organization_id)

    async def _load(self, hashed: bytes) -> KnownSession | None:
        row: Mapping[str, Any] | None = await self._executor.fetchrow(sessions.SQL.by_token_hash, hashed)
        if row is None:
            return None
        if row["organization_moving"]:
            raise organizations.on_the_move()
        account = accounts.read(row)
        used_at = max(row["last_used_at"], self._used.get(row["session_id"], row["last_used_at"]))
        ends_at = min(row["expires_at"], used_at + sessions.IDLE)
        if row["ended_at"] is not None or account.status is not AccountStatus.ACTIVE:
            ends_at = min(ends_at, row["ended_at"] or account.updated_at)
        env = "live" if row["live_hash"] == hashed else "test"
        suspended = row["organization_suspended"]
        hides = row["hide_phone_hash"]
        return KnownSession(row["session_id"], env, account, row["expires_at"], ends_at, suspended, hides)

    def _refuse_ended(self, known: KnownSession, now: datetime) -> None:
        if known.ends_at <= now:
            raise Problem("SESSION_EXPIRED", "The session has ended: sign in again.")

    def _use(self, known: KnownSession, now: datetime) -> str:
        known.ends_at = min(known.expires_at, now + sessions.IDLE)
        return known.id

    async def _touch(self, used: Sequence[tuple[str, datetime]]) -> None:
        await sessions.touch(self._executor, used)
