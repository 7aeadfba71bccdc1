"""`Idempotency-Key` (C6.2): its form, its hashes, and answers that are kept and given again."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from hashlib import sha256
from typing import Protocol

import orjson
import structlog

from recado.domain.clock import Clock
from recado.domain.errors import Problem, conflict
from recado.domain.idempotency import Beginning, Erased, Held, InProgress, Stored
from recado.http.call import Call, IdempotencyKey
from recado.http.rendering import dump
from recado.http.reply import REPLAYED, Reply
from recado.http.route import Route

HEADER = "Idempotency-Key"
RENEW_EVERY = 20.0  # seconds: two tries may fail before the key is free
_LONGEST = 255

_log = structlog.get_logger(__name__)


class IdempotencyStore(Protocol):
    """Keeps keys for 24 hours; frees a key 60 s after it was last held."""

    async def begin(
        self, organization_id: str, env: str, key_hash: bytes, fingerprint: bytes, now: datetime
    ) -> Beginning:
        """Claim the key, or tell what it is used for already."""

    async def renew(self, held: Held, now: datetime) -> bool:
        """Hold the key for another 60 s; False when it is no longer held."""

    async def finish(self, held: Held, status: int, answer: bytes, subject_id: str | None) -> None:
        """Keep the answer, as long as the contact that it shows exists."""

    async def release(self, held: Held) -> None:
        """Free the key: its request left nothing behind."""


def check_form(key: str) -> None:
    """Raise IDEMPOTENCY_KEY_INVALID unless `key` is 1 to 255 printable ASCII characters."""
    if not 1 <= len(key) <= _LONGEST or not key.isascii() or not key.isprintable():
        raise Problem("IDEMPOTENCY_KEY_INVALID", f"{HEADER} must be 1 to {_LONGEST} characters of printable ASCII.")


def key_of(call: Call, key: str, query: str, content: bytes) -> IdempotencyKey:
    """Return the hashes of `key`. `content`: the canonical JSON, or the bytes of a body that is no JSON.

    Organization and environment stand beside the hash in the store, so that they are no part of it.
    """
    scope = f"{call.method} {call.target}\n{key}".encode("utf-8", "surrogateescape")
    asked = sha256(f"{call.target}\n{query}\n".encode("utf-8", "surrogateescape"))
    asked.update(content)
    return IdempotencyKey(sha256(scope).digest(), asked.digest())


class KeptAnswers:
    """Runs a handler once per key and gives its answer again."""

    def __init__(self, store: IdempotencyStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def once(
        self, route: Route, call: Call, key: IdempotencyKey, handle: Callable[[], Awaitable[Reply]]
    ) -> Reply:
        """Return the kept answer, or that of `handle` when this request is the first.

        Raises `Problem`: 409 or 422 when the key is taken; 409 CONFLICT when the answer is gone with its contact.
        """
        principal = call.principal
        # Now, and not when the request began: a large body may take longer to come than a key is held.
        now = self._clock.now()
        found = await self._store.begin(principal.organization_id, principal.env, key.key_hash, key.fingerprint, now)
        if isinstance(found, Held):
            return await self._run(handle, call, found)
        if isinstance(found, Stored):
            return await self._replay(route, call, found)
        if isinstance(found, Erased):
            return await self._replay_erased(route, call, found)
        if isinstance(found, InProgress):
            raise Problem(
                "IDEMPOTENCY_IN_PROGRESS",
                f"The first request with this {HEADER} is still running.",
                headers={"Retry-After": "1"},
            )
        raise reused()

    async def _run(self, handle: Callable[[], Awaitable[Reply]], call: Call, held: Held) -> Reply:
        """Run `handle`; keep a 2xx, free the key on everything else."""
        renewal = asyncio.create_task(self._renew(held, call))
        kept = False
        try:
            reply = await handle()
            kept = 200 <= reply.status < 300
        finally:
            renewal.cancel()
            if not kept:
                # Shielded: also a cancelled request frees its key.
                await asyncio.shield(self._release(held, call))
        shown = reply.body if reply.stored is None else reply.stored
        answer = dump({"body": shown, "revision": reply.revision})
        try:
            await self._store.finish(held, reply.status, answer, reply.subject_id)
        except Problem as problem:
            # The work is done and committed; the caller learns so. A repeat meets the lock, then the row itself.
            _log.error("idempotency_answer_not_kept", request_id=call.request_id, code=problem.code)
        return reply

    async def _renew(self, held: Held, call: Call) -> None:
        """Hold the key while its request runs, however long that takes."""
        while True:
            await self._clock.sleep(RENEW_EVERY)
            try:
                if not await self._store.renew(held, self._clock.now()):
                    _log.warning("idempotency_key_lost", request_id=call.request_id)
                    return
            except Problem as problem:
                _log.warning("idempotency_key_not_renewed", request_id=call.request_id, code=problem.code)

    async def _release(self, held: Held, call: Call) -> None:
        """Free the key; a store that is away frees it by itself after a minute."""
        try:
            await self._store.release(held)
        except Problem as problem:
            _log.warning("idempotency_key_not_released", request_id=call.request_id, code=problem.code)

    async def _replay(self, route: Route, call: Call, found: Stored) -> Reply:
        answer = orjson.loads(found.answer)
        if route.replay is not None:
            reply = await route.replay(call, found.status, answer["body"])
        else:
            reply = Reply(found.status, answer["body"])
        reply.revision = answer["revision"]
        if isinstance(reply.body, dict) and "replayed" in reply.body:
            reply.body["replayed"] = True
        return _marked(reply)

    async def _replay_erased(self, route: Route, call: Call, found: Erased) -> Reply:
        """Answer a repeat when what was kept is gone: by no means is the work done once more (C12.6)."""
        if route.replay_erased is None:
            raise conflict(
                "CONFLICT",
                f"The request with this {HEADER} was carried out; the contact that its answer showed is deleted.",
                contactId=found.subject_id,
            )
        return _marked(await route.replay_erased(call, found.status))


def _marked(reply: Reply) -> Reply:
    reply.headers = {**reply.headers, **REPLAYED}
    return reply


def reused() -> Problem:
    """Return the 422 for a key that was used with another request."""
    return Problem("IDEMPOTENCY_KEY_REUSED", f"This {HEADER} was used with another request.")
