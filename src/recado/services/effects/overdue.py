"""What was due for messages that have left, and did not come: each kind has its handler, found by the channel (C32).

A block is one transaction: the deadlines go, the messages move where their state still knows that, and what follows is
written. A message that has moved on since stays as it is.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby

import structlog

from recado.domain.channels.policies import POLICIES
from recado.domain.core.clock import Clock
from recado.domain.messages.message import Cause, MessageEvent
from recado.engine.periodic import Periodic
from recado.services.effects.consequences import Consequences
from recado.services.effects.deadlines import freed
from recado.services.effects.due_blocks import take_due
from recado.storage.core.connections.postgres import Database
from recado.storage.core.statements.moves import Moved
from recado.storage.core.statements.rows import Executor
from recado.storage.messages import message_deadlines, state_moves
from recado.storage.messages.message_deadlines import DueDeadline

log = structlog.get_logger()

EVERY = 1.0  # seconds
BLOCK = 500  # deadlines in one commit
PUT_OFF_FOR = timedelta(hours=1)

Handler = Callable[[Executor, Sequence[DueDeadline], datetime], Awaitable[Sequence[Moved]]]
"""Does what a kind of deadlines of one channel asks for, in the transaction that took them; answers what it moved."""

Handlers = Mapping[tuple[str, str], Handler]
"""By channel and kind."""


ELSEWHERE = sorted(
    kind
    for policy in POLICIES.values()
    for kind, due in policy.after_sent.items()
    if due.event is None and due.elsewhere
)
"""The kinds that a service of their channel sees to, as it has to ask somebody first."""


def handlers_of_policies() -> Handlers:
    """Those that move messages by an event, as the policies of their channels say."""
    return {
        (policy.channel, kind): _moving(policy.channel, due.event, due.cause)
        for policy in POLICIES.values()
        for kind, due in policy.after_sent.items()
        if due.event is not None
    }


class Overdue:
    """A service: every second it takes what is due, block by block."""

    def __init__(self, db: Database, *, clock: Clock, consequences: Consequences, handlers: Handlers) -> None:
        self._db = db
        self._clock = clock
        self._consequences = consequences
        self._handlers = handlers
        self._worker = Periodic("message deadlines", EVERY, self.work, clock)

    async def start(self) -> None:
        await self._worker.start()

    async def stop(self) -> None:
        await self._worker.stop()

    async def work(self) -> None:
        """Take all that is due. What fails alone while the database answers waits for an hour, the others do not."""
        if not await message_deadlines.any_due(self._db, self._clock.now(), ELSEWHERE):
            return
        await take_due(self._db, BLOCK, self._take, self._put_off)

    async def _put_off(self, error: Exception) -> None:
        now = self._clock.now()
        log.error("deadline_put_off", error=type(error).__name__)
        await message_deadlines.put_off(self._db, now, now + PUT_OFF_FOR, ELSEWHERE)

    async def _take(self, limit: int) -> int:
        """One block; answers how many there were."""
        async with self._db.hot.transaction() as connection:
            now = self._clock.now()
            due = await message_deadlines.take(connection, now, limit, ELSEWHERE)
            moved: list[Moved] = []
            for (channel, kind), some in groupby(sorted(due, key=_whose), key=_whose):
                handler = self._handlers.get((channel, kind))
                if handler is None:
                    log.error("deadline_without_handler", channel=channel, kind=kind)
                else:
                    moved += await handler(connection, list(some), now)
            await _let_go(connection, due, moved)
            committed = await self._consequences.write(connection, moved)
        committed()
        return len(due)


def _moving(channel: str, event: MessageEvent, cause: Cause | None) -> Handler:
    async def handle(connection: Executor, due: Sequence[DueDeadline], now: datetime) -> Sequence[Moved]:
        return await state_moves.move(connection, channel, [_key(each) for each in due], event, now, cause)

    return handle


async def _let_go(connection: Executor, due: Sequence[DueDeadline], moved: list[Moved]) -> None:
    """What the deadlines held is held no more, whether their messages moved or not: `moved` tells it, added to."""
    last = {move.id: move for move in moved}
    holding = [each for each in due if each.held_coins]
    for channel, some in groupby(sorted(holding, key=_channel), key=_channel):
        stayed = [_key(each) for each in some if each.message_id not in last]
        if stayed:
            staying = await state_moves.stay(connection, channel, stayed)
            moved += staying
            last |= {move.id: move for move in staying}
    for each in holding:
        move = last[each.message_id]
        move.money = freed(move, each.held_coins)


def _channel(due: DueDeadline) -> str:
    return due.channel


def _whose(due: DueDeadline) -> tuple[str, str]:
    return (due.channel, due.kind)


def _key(due: DueDeadline) -> tuple[str, str, str]:
    return (due.organization_id, due.env, due.message_id)
