"""Idempotency keys and the answers kept for them (C6.2). Keys of sends are bound to their row where the row is made."""

from datetime import datetime, timedelta

from recado.domain.idempotency import Beginning, InProgress, Reused, Started, Stored
from recado.storage.rows import Executor, in_blocks
from recado.storage.sql import load

SQL = load("idempotency")

RETENTION = timedelta(hours=24)
LOCK = timedelta(seconds=60)  # after it, the key of a process that died is free again
PURGE_BLOCK = 10_000


class IdempotencyKeys:
    """The store of kept answers, one row a key."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    async def begin(
        self, organization_id: str, env: str, key_hash: bytes, fingerprint: bytes, now: datetime
    ) -> Beginning:
        """Claim the key for this request, or tell what it is used for."""
        while True:
            claimed = await self._executor.fetchval(
                SQL.begin, organization_id, env, key_hash, fingerprint, now, now + LOCK, now - RETENTION
            )
            if claimed:
                return Started()
            found = await self._executor.fetchrow(SQL.find, organization_id, env, key_hash)
            if found is None:  # released between the two statements
                continue
            if found["fingerprint"] != fingerprint:
                return Reused()
            if found["status"] is None:
                return InProgress()
            return Stored(found["status"], found["body"])

    async def finish(self, organization_id: str, env: str, key_hash: bytes, status: int, body: bytes) -> None:
        """Keep the answer for the rest of the 24 hours."""
        await self._executor.execute(SQL.finish, organization_id, env, key_hash, status, body)

    async def release(self, organization_id: str, env: str, key_hash: bytes) -> None:
        """Free a key whose request left nothing behind."""
        await self._executor.execute(SQL.release, organization_id, env, key_hash)


async def purge(executor: Executor, now: datetime) -> int:
    """Remove keys older than their retention, a bounded block at a time; answers how many went. Run every hour."""
    return await in_blocks(executor, SQL.purge, now - RETENTION, block=PURGE_BLOCK)
