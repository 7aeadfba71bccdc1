"""`Idempotency-Key` (C6.2): its form, its hashes, and answers that are kept and given again."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from hashlib import sha256
from typing import Protocol

import orjson
import structlog

from recado.domain.errors import Problem
from recado.domain.idempotency import Beginning, InProgress, Reused, Stored
from recado.http.call import Call, IdempotencyKey
from recado.http.rendering import dump
from recado.http.reply import REPLAYED, Reply
from recado.http.route import Route

HEADER = "Idempotency-Key"
_LONGEST = 255

_log = structlog.get_logger(__name__)


class IdempotencyStore(Protocol):
    """Keeps keys for 24 hours; frees a key after 60 s whose process died."""

    async def begin(
        self, organization_id: str, env: str, key_hash: bytes, fingerprint: bytes, now: datetime
    ) -> Beginning:
        """Claim the key, or tell what it is used for already."""

    async def finish(self, organization_id: str, env: str, key_hash: bytes, status: int, answer: bytes) -> None:
        """Keep the answer."""

    async def release(self, organization_id: str, env: str, key_hash: bytes) -> None:
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

    def __init__(self, store: IdempotencyStore) -> None:
        self._store = store

    async def begin(self, route: Route, call: Call, key: IdempotencyKey, now: datetime) -> Reply | None:
        """Return the kept answer; None when this request is the first. 409 or 422 when the key is taken.

        `now` is when the body has come: a large one may take longer than the lock holds.
        """
        principal = call.principal
        found = await self._store.begin(principal.organization_id, principal.env, key.key_hash, key.fingerprint, now)
        if isinstance(found, Stored):
            return await self._replay(route, call, found)
        if isinstance(found, InProgress):
            raise Problem(
                "IDEMPOTENCY_IN_PROGRESS",
                f"The first request with this {HEADER} is still running.",
                headers={"Retry-After": "1"},
            )
        if isinstance(found, Reused):
            raise reused()
        return None

    async def run(self, handle: Callable[[], Awaitable[Reply]], call: Call, key: IdempotencyKey) -> Reply:
        """Run `handle`; keep a 2xx, free the key on everything else."""
        principal = call.principal
        kept = False
        try:
            reply = await handle()
            kept = 200 <= reply.status < 300
        finally:
            if not kept:
                # Shielded: also a cancelled request frees its key.
                await asyncio.shield(self.release(call, key))
        shown = reply.body if reply.stored is None else reply.stored
        answer = dump({"body": shown, "revision": reply.revision})
        try:
            await self._store.finish(principal.organization_id, principal.env, key.key_hash, reply.status, answer)
        except Problem as problem:
            # The work is done and committed; the caller learns so. A repeat meets the lock, then the row itself.
            _log.error("idempotency_answer_not_kept", request_id=call.request_id, code=problem.code)
        return reply

    async def release(self, call: Call, key: IdempotencyKey) -> None:
        """Free the key; a store that is away frees it by itself after a minute."""
        principal = call.principal
        try:
            await self._store.release(principal.organization_id, principal.env, key.key_hash)
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
        reply.headers = {**reply.headers, **REPLAYED}
        return reply


def reused() -> Problem:
    """Return the 422 for a key that was used with another request."""
    return Problem("IDEMPOTENCY_KEY_REUSED", f"This {HEADER} was used with another request.")
