"""Idempotency keys and the answers kept for them (C6.2). Keys of sends are bound to their row where the row is made."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta

from recado.domain.core.idempotency import (
    LOCK,
    AnswerLost,
    AnswerStored,
    Beginning,
    Erased,
    InProgress,
    KeyHeld,
    Reused,
)
from recado.storage.core.shares.callers import before_commit
from recado.storage.core.statements.rows import Executor, columns, in_blocks
from recado.storage.core.statements.sql import load

SQL = load("idempotency")

RETENTION = timedelta(hours=24)
PURGE_BLOCK = 10_000


class IdempotencyKeys:
    """The store of kept answers, one row a key."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    async def begin(
        self,
        organization_id: str,
        env: str,
        key_hash: bytes,
        fingerprint: bytes,
        now: datetime,
        *,
        lock: timedelta = LOCK,
    ) -> Beginning:
        """Claim the key for this request, or tell what it is used for. `lock`: longer than the request may run."""
        while True:
            claimed = await self._executor.fetchval(
                SQL.begin, organization_id, env, key_hash, fingerprint, now, now + lock, now - RETENTION
            )
            if claimed:
                return KeyHeld(organization_id, env, key_hash, now)
            found = await self._executor.fetchrow(SQL.find, organization_id, env, key_hash)
            if found is None:  # released between the two statements
                continue
            if found["status"] is not None and found["body"] is None:
                return Erased(found["status"], found["subject_id"])
            if found["fingerprint"] != fingerprint:
                return Reused()
            if found["status"] is None:
                if not found["committed"] or found["created_at"] > now - lock:
                    return InProgress()
                return AnswerLost(None if found["body"] is None else found["body"].decode())
            return AnswerStored(found["status"], found["body"])

    async def resume(self, organization_id: str, env: str, key_hash: bytes, now: datetime) -> KeyHeld | None:
        """Take over a key whose answer is lost; None when another repeat did. Nothing frees it any more."""
        resumed = await self._executor.fetchval(SQL.resume, organization_id, env, key_hash, now, now - LOCK)
        return KeyHeld(organization_id, env, key_hash, now) if resumed else None

    async def finish(self, held: KeyHeld, status: int, body: bytes, subject_id: str | None) -> None:
        """Keep the answer for the rest of the 24 hours; without its body when the contact that it shows is deleted.

        Nothing when the key is no longer held, or the commit of its request kept the answer.
        """
        await self._executor.execute(SQL.finish, *_row(held), status, body, subject_id)

    async def take_back(self, held: KeyHeld, made: str | None) -> None:
        """Keep no answer, also of a `finish` on its way: the work is committed, and nobody was shown what it `made`.

        Nothing when the key is no longer held, or nothing is committed under it.
        """
        await self._executor.execute(SQL.take_back, *_row(held), None if made is None else made.encode())

    async def release(self, held: KeyHeld) -> None:
        """Free a key whose request left nothing behind; nothing when it is no longer held."""
        await self._executor.execute(SQL.release, *_row(held))

    async def release_uncommitted(self, held: KeyHeld) -> None:
        """Free a key whose request has no known end, unless a transaction of it was committed."""
        await self._executor.execute(SQL.release_uncommitted, *_row(held))

    @contextmanager
    def noting_commit(
        self, held: KeyHeld, made: Callable[[], str | None], answer: Callable[[], AnswerStored | None] = lambda: None
    ) -> Iterator[None]:
        """Note in each transaction inside that the work under the key is committed with it, and what it `made`.

        Where the `answer` is known by then, the commit keeps it; it shows no contact.
        """

        async def note(connection: Executor) -> None:
            if (kept := answer()) is not None:
                await connection.execute(SQL.finish, *_row(held), kept.status, kept.answer, None)
                return
            noted = made()
            await connection.execute(SQL.note_commit, *_row(held), None if noted is None else noted.encode())

        token = before_commit.set(note)
        try:
            yield
        finally:
            before_commit.reset(token)


def _row(held: KeyHeld) -> tuple[str, str, bytes, datetime]:
    return held.organization_id, held.env, held.key_hash, held.begun_at


async def hold_keys(connection: Executor, keys: Collection[KeyHeld]) -> set[KeyHeld]:
    """Those of these keys that their requests hold still, unanswered: until this transaction ends nobody frees them.

    Whose key is not among them has given up, or an earlier run of the same work has kept its answer: nothing is to be
    done for it, and it may ask once more.
    """
    if not keys:
        return set()
    rows = sorted(set(map(_row, keys)))
    found = await connection.fetch(SQL.hold_keys, *columns(rows, 4))
    return {KeyHeld(*rows[row["place"] - 1]) for row in found}


async def keep_answers(connection: Executor, answers: Sequence[tuple[KeyHeld, AnswerStored]]) -> None:
    """Keep the answers of many requests, whose keys this transaction holds, in its commit. They show no contact."""
    if answers:
        rows = [(*_row(held), kept.status, kept.answer) for held, kept in answers]
        await connection.execute(SQL.keep_answers, *columns(rows, 6))


async def erase(connection: Executor, organization_id: str, env: str, contact_id: str) -> None:
    """Empty the answers that show a contact, in the transaction that deletes it and after its row is gone (C12.6)."""
    await connection.execute(SQL.erase, organization_id, env, contact_id)


async def purge(executor: Executor, now: datetime) -> int:
    """Remove keys older than their retention, a bounded block at a time; answers how many went. Run every hour."""
    return await in_blocks(executor, SQL.purge, now - RETENTION, block=PURGE_BLOCK)
