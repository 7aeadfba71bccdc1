"""Holding back and letting go the messages of one sender, and ending those that can leave no more.

Each gate of a message's own writes its reason and moment into the row, which takes it out of the ready index: what
waits costs no memory and delays nobody (C14.5.2).
"""

import asyncio
from collections.abc import Callable
from datetime import datetime

import structlog

from recado.actors.dispatch.lane_context import LaneContext
from recado.domain.core.errors import Unavailable
from recado.domain.dispatch.gates import Fail, Hold
from recado.domain.messages.message import FailureCode, WaitReason
from recado.domain.senders.sender import SenderKey
from recado.services.dispatch.row import Row
from recado.storage.dispatch import dispatch

log = structlog.get_logger()

CRASHES_TO_SET_ASIDE = 3
TRY_AGAIN_AFTER = 1.0  # seconds after the database was away


class Holding:
    """The holds of one sender. A write that fails loses nothing: the row stays ready and meets its gate again."""

    __slots__ = (
        "_blocks",
        "_context",
        "_db",
        "_organization_id",
        "_released",
        "_sender_id",
        "_templates",
        "_under_way",
    )

    def __init__(self, key: SenderKey, context: LaneContext, *, released: Callable[[], None]) -> None:
        """`released` is told of each block that was let go."""
        self._organization_id, self._sender_id = key.organization_id, key.sender_id
        self._context = context
        self._db = context.records.db
        self._released = released
        self._templates: set[str] = set()
        self._under_way: set[asyncio.Future[None]] = set()
        self._blocks = asyncio.Lock()

    def hold(self, row: Row, hold: Hold) -> bool:
        """Take the row out of the ready index; False when the queue of holds is full."""
        try:
            held = self._context.sending.hold(row, hold.until, hold.reason)
        except Unavailable:
            return False
        self._begun(held)
        return True

    def _begun(self, move: "asyncio.Future[None]") -> None:
        self._under_way.add(move)
        move.add_done_callback(self._ended)

    def _ended(self, move: "asyncio.Future[None]") -> None:
        self._under_way.discard(move)
        if not move.cancelled():
            move.exception()

    async def settled(self) -> None:
        """Until what was held or ended so far is committed, or has failed."""
        if self._under_way:
            await asyncio.wait(self._under_way)

    def fail(self, row: Row, verdict: Fail, at: datetime) -> bool:
        """queued → failed; False when the queue of failures is full."""
        try:
            failed = self._context.sending.fail(row, verdict, at)
        except Unavailable:
            return False
        self._begun(failed)
        return True

    async def hold_template(self, template_id: str) -> None:
        """Hold every message that waits for the same template, block by block, until it is released."""
        if template_id in self._templates:
            return
        self._templates.add(template_id)
        try:
            while template_id in self._templates:
                async with self._blocks:
                    count = await dispatch.hold_template(self._db, self._organization_id, self._sender_id, template_id)
                if not count:
                    return
        finally:
            self._templates.discard(template_id)

    async def let_go(self, *reasons: WaitReason, template_id: str | None = None, owner: str | None = None) -> None:
        """Let go the messages (of this template, of this owner) that wait for any of these reasons, block by block.

        While the database is away this waits: nobody else lets them go before the rescuer looks.
        """
        for reason in reasons:
            while True:
                try:
                    async with self._context.turn:
                        if not await self._release(reason, template_id, owner):
                            break
                except Unavailable:
                    await self._context.records.clock.sleep(TRY_AGAIN_AFTER)
                else:
                    self._released()

    async def _release(self, reason: WaitReason, template_id: str | None, owner: str | None) -> bool:
        """Let go one block of the messages (of this template, of this owner) that wait for this reason.

        False when there was none. What was held for the reason as it was before is committed first, or it would stay
        behind.
        """
        if template_id is not None:
            self._templates.discard(template_id)
        await self.settled()
        async with self._blocks:
            return bool(
                await dispatch.release(self._db, self._organization_id, self._sender_id, reason, template_id, owner)
            )

    async def count_crash(self, row: Row, at: datetime) -> None:
        """A message that was in hand at the third failure is set aside, so that it cannot stop the number."""
        found = await dispatch.crashed(self._db, row.organization_id, row.id)
        if found is not None and found["crashes"] >= CRASHES_TO_SET_ASIDE:
            log.error("message_set_aside", message_id=row.id)
            self.fail(row, Fail(FailureCode.PROVIDER_ERROR, "it could not be processed"), at)
