"""`Idempotency-Key` (C6.2): its form, its hashes, and answers that are kept and given again."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, Protocol, TypeVar
from urllib.parse import quote

import orjson
import structlog

from recado.domain.core.clock import Clock
from recado.domain.core.errors import Problem, Unavailable, conflict
from recado.domain.core.idempotency import (
    LOCK,
    LONG_LOCK,
    AnswerLost,
    AnswerStored,
    Beginning,
    Erased,
    InProgress,
    KeptInCommit,
    KeyHeld,
)
from recado.http.api.call import Call, IdempotencyKey
from recado.http.api.route import Route
from recado.http.wire.rendering import dump
from recado.http.wire.reply import REPLAYED, Reply

T = TypeVar("T")

HEADER = "Idempotency-Key"
_LONGEST = 255

_log = structlog.get_logger(__name__)


class IdempotencyStore(Protocol):
    """Keeps keys for 24 hours; frees one that is held when its lock is over: no request runs so long (C31)."""

    async def begin(
        self, organization_id: str, env: str, key_hash: bytes, fingerprint: bytes, now: datetime, *, lock: timedelta
    ) -> Beginning:
        """Claim the key for that long, or tell what it is used for already."""

    async def resume(self, organization_id: str, env: str, key_hash: bytes, now: datetime) -> KeyHeld | None:
        """Take over a key whose answer is lost; None when another repeat did."""

    async def finish(self, held: KeyHeld, status: int, answer: bytes, subject_id: str | None) -> None:
        """Keep the answer, as long as the contact that it shows exists."""

    async def take_back(self, held: KeyHeld, made: str | None) -> None:
        """Keep no answer, also of a `finish` on its way: nobody was shown what the committed work `made`."""

    async def release(self, held: KeyHeld) -> None:
        """Free the key: its request left nothing behind."""

    async def release_uncommitted(self, held: KeyHeld) -> None:
        """Free the key unless a transaction inside `noting_commit` was committed."""

    def noting_commit(
        self, held: KeyHeld, made: Callable[[], str | None], answer: Callable[[], AnswerStored | None]
    ) -> AbstractContextManager[None]:
        """Note in each transaction inside that it belongs to the key's request, and what that `made`.

        An `answer` that is known by then is kept in the commit; it shows no contact.
        """


def check_form(key: str) -> None:
    """Raise IDEMPOTENCY_KEY_INVALID unless `key` is 1 to 255 printable ASCII characters."""
    if not 1 <= len(key) <= _LONGEST or not key.isascii() or not key.isprintable():
        raise Problem(
            "IDEMPOTENCY_KEY_INVALID", f"The header {HEADER} must be 1 to {_LONGEST} characters of printable ASCII."
        )


def key_of(call: Call, pattern: str, key: str, query: str, content: bytes) -> IdempotencyKey:
    """Return the hashes of `key`. `content`: the digest of canonical JSON, or the bytes of a body that is none.

    `pattern`: the route's path. Its parameters are filled in as they were understood: `%5F` is the same id as `_`.
    Organization and environment stand beside the hash in the store, so that they are no part of it.
    """
    path = pattern.format_map(_Spelled(call.path)) if call.path else pattern
    scope = f"{call.method} {path}\n{key}".encode()
    asked = sha256(f"{path}\n{query}\n".encode("utf-8", "surrogateescape"))
    asked.update(content)
    return IdempotencyKey(sha256(scope).digest(), asked.digest())


class _Spelled(dict[str, str]):
    """Path parameters in one spelling: a slash that belongs to one does not look like another path."""

    def __getitem__(self, name: str) -> str:
        return quote(super().__getitem__(name), safe="")


class KeptAnswers:
    """Runs a handler once per key and gives its answer again."""

    def __init__(self, store: IdempotencyStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._under_way: set[asyncio.Task[None]] = set()

    async def once(
        self, route: Route, call: Call, key: IdempotencyKey, handle: Callable[[], Awaitable[Reply]]
    ) -> Reply:
        """Return the kept answer, or that of `handle` when this request is the first.

        Raises `Problem`: 409 or 422 when the key is taken; 409 CONFLICT when the answer is gone with its contact.
        """
        principal = call.principal
        # Now, and not when the request began: a large body may take longer to come than a key is held.
        now = self._clock.now()
        scope = (principal.organization_id, principal.env, key.key_hash)
        try:
            found = await self._store.begin(*scope, key.fingerprint, now, lock=LONG_LOCK if route.slow else LOCK)
        except asyncio.CancelledError:
            self._begin(self._release(KeyHeld(*scope, now), call))  # it may have been claimed
            raise
        if isinstance(found, KeyHeld):
            return await self._run(route, handle, call, found)
        if isinstance(found, AnswerStored):
            return await self._replay(route, call, found)
        if isinstance(found, Erased):
            return await self._replay_erased(route, call, found)
        if isinstance(found, AnswerLost):
            if not route.rotates or found.made is None:
                raise conflict(
                    "CONFLICT",
                    f"The request with this {HEADER} was carried out, and its answer was lost: look for what it made.",
                )
            resumed = await self._store.resume(*scope, now)
            if resumed is not None:
                call.unshown = found.made
                return await self._run(route, handle, call, resumed)
            found = InProgress()
        if isinstance(found, InProgress):
            raise Problem(
                "IDEMPOTENCY_IN_PROGRESS",
                f"The first request with this {HEADER} is still running: try again in a second.",
                headers={"Retry-After": "1"},
            )
        raise reused()

    async def _run(self, route: Route, handle: Callable[[], Awaitable[Reply]], call: Call, held: KeyHeld) -> Reply:
        """Run `handle`; keep a 2xx, free the key on everything else, but for what was made and cannot be answered."""
        call.held = held
        notes = route.creates or route.rotates or route.answers_in_commit
        noting = self._store.noting_commit(
            held, lambda: call.made, lambda: None if call.answer is None else _kept(call.answer)
        )
        try:
            # What makes nothing may be done twice, and a repeat learns more from a second answer than from a refusal.
            with noting if notes else nullcontext():
                reply = await handle()
        except asyncio.CancelledError:
            self._begin(self._release(held, call, unless_committed=True))  # its time is over already
            raise
        except BaseException as error:
            # A key that was resumed is of work that is committed, whatever becomes of this repeat.
            known = call.unshown is None and isinstance(error, Problem) and not isinstance(error, Unavailable)
            await self._begin(self._release(held, call, unless_committed=not known))
            raise
        if not 200 <= reply.status < 300:
            await self._begin(self._release(held, call))
            return reply
        try:
            await self._begin(self._finish(route, held, reply, call))
        except BaseException as error:
            # The caller hears a 503. Of a rotation a kept answer would hide from the repeat what nobody was shown.
            if route.rotates:
                taken_back = self._begin(self._take_back(held, call))
                if not isinstance(error, asyncio.CancelledError):  # else its time is over already
                    await taken_back
            raise
        return reply

    def _begin(self, work: Coroutine[Any, Any, None]) -> "asyncio.Future[None]":
        """Work that goes on when the request that waits for it is cancelled."""
        task = asyncio.create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return asyncio.shield(task)

    async def _finish(self, route: Route, held: KeyHeld, reply: Reply, call: Call) -> None:
        """Keep the answer. Without that the work is committed all the same, and the caller learns so.

        Raises `Problem` of a rotation: shown now, its token or secret would be ended by a repeat (C6.2).
        """
        try:
            await self._store.finish(held, reply.status, _kept(reply).answer, reply.subject_id)
        except Problem as problem:
            _log.error("idempotency_answer_not_kept", request_id=call.request_id, code=problem.code)
            if route.rotates:
                raise

    async def _take_back(self, held: KeyHeld, call: Call) -> None:
        """Leave the key as one whose answer is lost: its repeat then makes and shows another token or secret."""
        try:
            await self._store.take_back(held, call.made)
        except Problem as problem:
            _log.error("idempotency_answer_not_taken_back", request_id=call.request_id, code=problem.code)

    async def _release(self, held: KeyHeld, call: Call, *, unless_committed: bool = False) -> None:
        """Free the key; a store that is away frees it by itself when its lock is over."""
        try:
            await (self._store.release_uncommitted(held) if unless_committed else self._store.release(held))
        except Problem as problem:
            _log.warning("idempotency_key_not_released", request_id=call.request_id, code=problem.code)

    async def _replay(self, route: Route, call: Call, found: AnswerStored) -> Reply:
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


def kept_in_commit(call: Call, reply_of: Callable[[T], Reply]) -> KeptInCommit[T] | None:
    """What is kept of the answer in a commit that is made for many requests at once; None without a key.

    `reply_of`: the answer to an outcome; it shows no contact.
    """
    return None if call.held is None else KeptInCommit(call.held, lambda outcome: _kept(reply_of(outcome)))


def _kept(reply: Reply) -> AnswerStored:
    shown = reply.body if reply.stored is None else reply.stored
    return AnswerStored(reply.status, dump({"body": shown, "revision": reply.revision}))


def _marked(reply: Reply) -> Reply:
    reply.headers = {**reply.headers, **REPLAYED}
    return reply


def rotated_since() -> Problem:
    """Return the 409 for a rotation whose answer was lost, where another one has followed."""
    return conflict(
        "CONFLICT",
        f"The rotation with this {HEADER} was carried out, its answer was lost, and another rotation followed: "
        "use what that one answered.",
    )


def reused() -> Problem:
    """Return the 422 for a key that was used with another request."""
    return Problem(
        "IDEMPOTENCY_KEY_REUSED", f"This {HEADER} was used with another request: use a new key for each new request."
    )
