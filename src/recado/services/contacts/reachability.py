"""Whom a channel does not reach: marked by a message that fails for it, cleared by one that arrives (C13.2).

It follows moves of messages in their commit. There it waits for nobody: anyone who changes a contact locks it before
messages, and a transaction that moves messages has locked those. A contact that is being changed at that moment is
marked right after the commit.
"""

import asyncio
from collections.abc import Collection, Sequence
from functools import partial

import structlog

from recado.domain.channels.address import AddressKind
from recado.domain.channels.policies import POLICIES, address_kind
from recado.domain.core.clock import Clock
from recado.domain.core.errors import Unavailable
from recado.domain.messages.message import ARRIVED, FAILURES
from recado.storage.contacts import reachability
from recado.storage.contacts.reachability import Environment, Told
from recado.storage.core.connections.batch import Batcher
from recado.storage.core.connections.postgres import Database
from recado.storage.core.statements.moves import AfterCommit, Moved
from recado.storage.core.statements.rows import Executor

log = structlog.get_logger()

News = tuple[str, Told, bool]
"""The channel, the message that tells, and whether it arrived."""

_LINGER = 0.05  # seconds


class Reachability:
    """A consequence, and a service (`start`, `stop`) that flushes what it was told."""

    def __init__(self, db: Database, *, clock: Clock) -> None:
        self._db = db
        # Where a delivery may clear a mark. Of others it is asked each time: any process may set the first one.
        self._marked: set[Environment] = set()
        self._told: Batcher[News, None] = Batcher(
            "reachability", self._write, clock=clock, concurrency=1, linger=_LINGER
        )

    async def start(self) -> None:
        await self._told.start()

    async def stop(self) -> None:
        await self._told.stop()

    async def wanted(self, environments: Collection[Environment], to_status: str) -> bool:
        """Every failure: it may be the provider's final word on a recipient."""
        return to_status in FAILURES

    async def write(self, connection: Executor, moved: Sequence[Moved]) -> AfterCommit | None:
        """Mark and clear whom nobody else is changing; the others after the commit."""
        told = [
            (move.channel, (move.organization_id, move.env, move.id), move.to_status in ARRIVED)
            for move in moved
            if move.from_status is not None and self._matters(move) and _by_phone(move.channel)
        ]
        left = await self._apply(connection, told, waiting=False) if told else ()
        return partial(self._note, left) if left else None

    def _matters(self, move: Moved) -> bool:
        if move.to_status in ARRIVED:  # a message that is read had mostly arrived before, and told so
            return move.from_status not in ARRIVED
        return move.to_status in FAILURES

    def _note(self, told: Sequence[News]) -> None:
        for each in told:
            try:
                self._told.put(each).add_done_callback(_looked_at)
            except Unavailable:
                log.warning("reachability_not_noted", code="overload")
                return

    async def _write(self, told: Sequence[News]) -> Sequence[None]:
        await self._apply(self._db.hot, told, waiting=True)
        return [None] * len(told)

    async def _apply(self, executor: Executor, told: Sequence[News], *, waiting: bool) -> list[News]:
        """Answers what is left to do."""
        left: list[News] = []
        for channel in dict.fromkeys(channel for channel, _, _ in told):
            of_channel = [(each, arrived) for on, each, arrived in told if on == channel]
            left += await self._apply_to(executor, channel, of_channel, waiting=waiting)
        return left

    async def _apply_to(
        self, executor: Executor, channel: str, told: Sequence[tuple[Told, bool]], *, waiting: bool
    ) -> list[News]:
        """What failed before what arrived: who was reached is not marked."""
        left: list[News] = []
        if failed := [each for each, arrived in told if not arrived]:
            noted = await reachability.mark(executor, failed, channel, waiting=waiting)
            self._marked |= noted.there
            left += [(channel, each, False) for each in noted.left]
        arrived = [each for each, arrived in told if arrived]
        if asked := {each[:2] for each in arrived} - self._marked:
            self._marked |= await reachability.with_marks(executor, asked)
        if cleared := [each for each in arrived if each[:2] in self._marked]:
            noted = await reachability.clear(executor, cleared, channel, waiting=waiting)
            left += [(channel, each, True) for each in noted.left]
        return left


def _by_phone(channel: str) -> bool:
    """Whether what happens to messages there tells of their recipients' phones."""
    return bool(POLICIES[channel].nobody_there) and address_kind(channel) is AddressKind.PHONE


def _looked_at(noted: "asyncio.Future[None]") -> None:
    """Nobody waits for it: the next message to the recipient tells the same."""
    if not noted.cancelled() and noted.exception() is not None:
        log.warning("reachability_not_noted", code=type(noted.exception()).__name__)
