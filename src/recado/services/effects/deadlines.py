"""What is due for messages that have left (C25.2, C32): noted when they leave, gone when they move on. A consequence.

Where no channel has anything due, as chat-app, it costs nothing. Of departures that are recorded in one statement it is
a part (`departures.sql`); here are all others, as that of a message of which a report tells first that it has left.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from recado.domain.channels.policies import POLICIES
from recado.domain.channels.policy import TakenPrice
from recado.domain.messages.message import MessageStatus
from recado.storage.core.statements.moves import AfterCommit, Money, Moved
from recado.storage.core.statements.rows import Executor
from recado.storage.messages import message_deadlines

_UNPAID = frozenset({MessageStatus.QUEUED.value, MessageStatus.SENDING.value, MessageStatus.FAILED.value})
_GONE = frozenset({MessageStatus.SENT.value, MessageStatus.DELIVERED.value, MessageStatus.READ.value})


class MessageDeadlines:
    """Stands before `Wallet`, which it tells what is held no more, by the moves' `money`."""

    async def wanted(self, environments: Collection[tuple[str, str]], to_status: str) -> bool:
        """Never by itself: what a departure makes due is known to it."""
        return False

    async def write(self, connection: Executor, moved: Sequence[Moved]) -> AfterCommit | None:
        """Note what is due for what has left, and let go of what was due for what has moved on."""
        with_deadlines = {each.channel for each in POLICIES.values() if each.after_sent}
        if not with_deadlines:
            return None
        await _take(connection, moved)
        last = {move.id: move for move in moved if move.channel in with_deadlines and move.from_status is not None}
        on = [move for move in last.values() if move.to_status != MessageStatus.SENT and not move.left_queue]
        if on:
            for message_id, coins in (await message_deadlines.end(connection, on)).items():
                last[message_id].money = freed(last[message_id], coins)
        left = [move for move in last.values() if move.to_status == MessageStatus.SENT != move.from_status]
        if left:
            await message_deadlines.note(connection, left)
        return None


async def _take(connection: Executor, moved: Sequence[Moved]) -> None:
    """Tell what is captured of messages whose way of leaving has a price of its own, where a report says they left."""
    unpriced = [
        move
        for move in moved
        if move.money is None and move.from_status in _UNPAID and move.to_status in _GONE and _takes(move.channel)
    ]
    if not unpriced:
        return
    details = await message_deadlines.details_of(connection, unpriced)
    ends = {move.id: move.to_status for move in moved}
    for move in unpriced:
        told = details.get(move.id, {})
        takes = _takes(move.channel)
        taken = None if takes is None else takes(told)
        if taken is None:
            continue
        coins = min(taken.coins, move.coins)
        if move.from_status == MessageStatus.FAILED:
            move.coins = coins  # what had been held was released
        stays = ends[move.id] == MessageStatus.SENT and any(
            due.holds_rest and due.delay(told) is not None for due in POLICIES[move.channel].after_sent.values()
        )
        move.units, move.price_kind = taken.units, taken.price_kind
        move.money = Money(captured=coins, kept=move.coins - coins if stays else 0, adjusted=taken.adjusted or 0)


def _takes(channel: str) -> Callable[[Mapping[str, Any]], TakenPrice | None] | None:
    return POLICIES[channel].taken


def freed(move: Moved, coins: int) -> Money | None:
    """The money of a move with which so many coins more are held no longer."""
    if not coins:
        return move.money
    money = move.money or Money()
    return replace(money, freed=money.freed + coins)
