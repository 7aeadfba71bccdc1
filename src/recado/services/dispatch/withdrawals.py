"""Withdraws what refusals, deletions and ends of journeys left, in blocks (C12.5.3, C12.6, C9.12).

The rows are the truth: what is noted is looked for again at each start, and every few seconds. Each environment has its
turn with one block of each kind, so that nobody waits for another's thousands.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import groupby

import structlog

from recado.domain.core.clock import Clock
from recado.domain.core.errors import Unavailable
from recado.domain.messages.withdrawal import Withdrawal, WithdrawalKind
from recado.engine.periodic import Periodic
from recado.engine.turns import turns
from recado.services.dispatch.withdrawing import Withdrawing
from recado.storage.core.connections.postgres import Connection, Database
from recado.storage.core.statements.moves import Effects, Moved
from recado.storage.dispatch import withdrawals

log = structlog.get_logger()

LOOK_EVERY = 5.0  # seconds
PEOPLE = 100  # who opted out, journeys, or messages in hand, of which one block takes what is left

_Group = tuple[str, str, WithdrawalKind]
_Taken = tuple[list[Moved], dict[Withdrawal, str | None]]
"""The moves of a block, and after which message the next one begins: "" for any, None when nothing is left."""


class Withdrawals:
    """A service (`start`, `stop`). `effects`: of the messages that are withdrawn."""

    def __init__(self, db: Database, *, clock: Clock, effects: Effects, withdrawing: Withdrawing) -> None:
        self._db = db
        self._clock = clock
        self._effects = effects
        self._withdrawing = withdrawing
        self._after: dict[Withdrawal, str] = {}  # up to which message of a contact it is done
        self._take: Mapping[WithdrawalKind, Callable[[Connection, Sequence[Withdrawal]], Awaitable[_Taken]]] = {
            WithdrawalKind.OPTED_OUT: self._of_refused,
            WithdrawalKind.DELETED: self._of_deleted,
            WithdrawalKind.ARCHIVED: self._of_archived,
            WithdrawalKind.RECALLED: self._of_recalled,
        }
        self._stopping = False
        self._worker = Periodic("withdrawals", LOOK_EVERY, self.work, clock, at_once=True)

    async def start(self) -> None:
        """Before any number starts: what is noted must not leave."""
        self._stopping = False
        self._withdrawing.begin(await withdrawals.noted(self._db))
        await self._worker.start()

    async def stop(self) -> None:
        """Ends after the block under way; the next start goes on."""
        self._stopping = True
        await self._worker.stop()

    def left(self, left: Sequence[Withdrawal]) -> None:
        """Something is left of these, and it is committed."""
        self._withdrawing.begin(left)
        self._worker.hint()

    async def work(self) -> None:
        """Whatever is left, a block of each group in turn.

        A group waits for the next look when its block fails, or when what is left of it is in the hand of others.
        """
        resting: set[_Group] = set()
        worked = True
        while worked:
            worked = False
            found = await withdrawals.next_ones(self._db, PEOPLE)
            self._withdrawing.begin(found)  # known, unless an answer was lost
            for group, people in groupby(found, lambda each: (each.organization_id, each.env, each.kind)):
                if self._stopping:
                    return
                if group in resting:
                    continue
                worked = True
                await turns.next()
                try:
                    if not await self._block(group[2], list(people)):
                        resting.add(group)
                except Unavailable:
                    raise
                except Exception as error:  # noqa: BLE001 - one group must not keep the others waiting
                    log.error("not_withdrawn", organization_id=group[0], kind=group[2], error=type(error).__name__)
                    resting.add(group)

    async def _block(self, kind: WithdrawalKind, people: Sequence[Withdrawal]) -> bool:
        """False when nothing came of it."""
        async with self._db.hot.transaction() as connection:
            moved, after = await self._take[kind](connection, people)
            done = [each for each, position in after.items() if position is None]
            await withdrawals.finish(connection, done)
            committed = await self._effects.write(connection, moved)
        committed()
        self._withdrawing.end(done)
        for each, position in after.items():
            if position:
                self._after[each] = position
            else:
                self._after.pop(each, None)
        return bool(moved) or any(position != "" for position in after.values())

    async def _of_refused(self, connection: Connection, people: Sequence[Withdrawal]) -> _Taken:
        now = self._clock.now()
        moved = await withdrawals.opted_out(connection, people, now, limit=withdrawals.BLOCK, noted=True)
        left = await withdrawals.left_of(connection, people, count=1)
        return moved, {each: "" if each in left else None for each in people}

    async def _of_deleted(self, connection: Connection, people: Sequence[Withdrawal]) -> _Taken:
        """Of the first of them: a block of one contact's messages is found by its place among them."""
        first, now = people[0], self._clock.now()
        contact = (first.organization_id, first.env, first.name)
        moved, position = await withdrawals.of_contact(
            connection, *contact, now, after_id=self._after.get(first, ""), limit=withdrawals.BLOCK
        )
        return moved, {first: position}

    async def _of_archived(self, connection: Connection, journeys: Sequence[Withdrawal]) -> _Taken:
        now = self._clock.now()
        moved = await withdrawals.of_journeys(connection, journeys, now, limit=withdrawals.BLOCK)
        left = await withdrawals.left_of_journeys(connection, journeys, now)
        return moved, {each: "" if each in left else None for each in journeys}

    async def _of_recalled(self, connection: Connection, messages: Sequence[Withdrawal]) -> _Taken:
        moved, left = await withdrawals.of_recalled(connection, messages, self._clock.now())
        return moved, {each: "" if each in left else None for each in messages}
