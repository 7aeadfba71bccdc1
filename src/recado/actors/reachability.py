"""Whom the chat app does not reach: marked by a message that fails for it, cleared by one that arrives (C13.2).

It follows moves of messages, but in commits of its own right after theirs: whoever changes a contact locks it before
messages, and a transaction that moves messages has locked those.
"""

import asyncio
from collections.abc import Collection, Sequence
from functools import partial

import structlog

from recado.actors.acceptance_rules import CHATAPP
from recado.domain.clock import Clock
from recado.domain.errors import Unavailable
from recado.domain.message import MessageStatus
from recado.storage import reachability
from recado.storage.batch import Batcher
from recado.storage.moves import AfterCommit, Moved
from recado.storage.postgres import Database
from recado.storage.reachability import Environment, Told
from recado.storage.rows import Executor

log = structlog.get_logger()

_ARRIVED = frozenset((MessageStatus.DELIVERED.value, MessageStatus.READ.value))
_LINGER = 0.05  # seconds


class Reachability:
    """A consequence, and a service (`start`, `stop`) that flushes what it was told."""

    def __init__(self, db: Database, *, clock: Clock) -> None:
        self._db = db
        self._marked: dict[Environment, bool] = {}  # where a delivery may clear a mark; elsewhere it costs nothing
        self._told: Batcher[tuple[Told, bool], None] = Batcher(
            "reachability", self._write, clock=clock, concurrency=1, linger=_LINGER
        )

    async def start(self) -> None:
        await self._told.start()

    async def stop(self) -> None:
        await self._told.stop()

    async def wanted(self, environments: Collection[Environment], to_status: str) -> bool:
        """Every failure: it may be the provider's final word on a recipient."""
        return to_status == MessageStatus.FAILED

    async def write(self, connection: Executor, moved: Sequence[Moved]) -> AfterCommit | None:
        """Nothing in this transaction: see above."""
        told = [
            ((move.organization_id, move.env, move.id), move.to_status in _ARRIVED)
            for move in moved
            if move.channel == CHATAPP and move.from_status is not None and self._matters(move)
        ]
        return partial(self._note, told) if told else None

    def _matters(self, move: Moved) -> bool:
        if move.to_status in _ARRIVED:  # a message that is read had mostly arrived before, and told so
            return move.from_status not in _ARRIVED and self._marked.get((move.organization_id, move.env), True)
        return move.to_status == MessageStatus.FAILED

    def _note(self, told: Sequence[tuple[Told, bool]]) -> None:
        for each in told:
            try:
                self._told.put(each).add_done_callback(_looked_at)
            except Unavailable:
                log.warning("reachability_not_noted", code="overload")
                return

    async def _write(self, told: Sequence[tuple[Told, bool]]) -> Sequence[None]:
        """What failed before what arrived: who was reached is not marked."""
        if failed := [each for each, arrived in told if not arrived]:
            for environment in await reachability.mark(self._db.hot, failed, CHATAPP):
                self._marked[environment] = True
        arrived = [each for each, arrived in told if arrived]
        for environment in {each[:2] for each in arrived} - self._marked.keys():
            self._marked[environment] = await reachability.any_marked(self._db.hot, environment)
        if cleared := [each for each in arrived if self._marked[each[:2]]]:
            await reachability.clear(self._db.hot, cleared, CHATAPP)
        return [None] * len(told)


def _looked_at(noted: "asyncio.Future[None]") -> None:
    """Nobody waits for it: the next message to the recipient tells the same."""
    if not noted.cancelled() and noted.exception() is not None:
        log.warning("reachability_not_noted", code=type(noted.exception()).__name__)
