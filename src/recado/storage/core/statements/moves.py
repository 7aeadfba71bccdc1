"""What a statement moved, told to whatever belongs into the same commit: events, the wallet, totals.

Told are a message's acceptance, its departure, its end and its reports; not claims and returns to the queue, of
which nothing follows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from recado.domain.messages.message import MessageStatus
from recado.storage.core.statements.rows import Executor

AfterCommit = Callable[[], None]
"""What is left to do when the transaction is committed: hints, caches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Money:
    """What a move does to a wallet when that is not just to capture, or to release, all of its `coins`.

    `captured`: of the coins, None: all that the move captures as a rule; `kept`: of the rest, what stays held with a
    deadline of the message. `freed`: what was kept so before, and is held no more. `adjusted`: what is charged besides
    as an adjustment, given back when negative.
    """

    captured: int | None = None
    kept: int = 0
    freed: int = 0
    adjusted: int = 0


@dataclass(slots=True)
class Moved:
    """One move of one message.

    `from_status` None: it is new. `coins`, `price_kind`: what the row held when it leaves the queue, or the price of a
    message that failed by an unknown outcome and was sent after all; else 0 and None. `units`: what they count as. A
    message whose report was the first to say that it had left moves twice: `sending` → `sent`, and on. `told`: what its
    event says of other records, as JSON text. `quiet`: whoever moved it knows, and nobody else is told. A move of coins
    alone, `money`, leaves the message in its state.
    """

    organization_id: str
    env: str
    channel: str
    id: str
    from_status: str | None
    to_status: str
    coins: int = 0
    price_kind: str | None = None
    batch_id: str | None = None
    campaign_id: str | None = None
    told: str | None = None
    units: int = 1
    quiet: bool = False
    money: Money | None = None

    @property
    def captured(self) -> int:
        """What it captures of its `coins`, if it captures at all."""
        return self.coins if self.money is None or self.money.captured is None else self.money.captured

    @property
    def left_queue(self) -> bool:
        """Whether it was queued or sending, and its row there is gone."""
        return self.from_status in _WAITING and self.to_status not in _WAITING


class Effects(Protocol):
    """What follows from moves (`consequences.py`)."""

    async def write(self, connection: Executor, moved: Sequence[Moved]) -> AfterCommit:
        """Write it, in the transaction of the moves."""
        ...


_WAITING = (MessageStatus.QUEUED.value, MessageStatus.SENDING.value)


def withdrawn(row: Any, env: str) -> Moved:
    """As `left`, of a row that was queued, and that somebody withdrew: its `channel`, and its new `status`."""
    moved = left(row, env, row["channel"], MessageStatus.QUEUED.value, row["status"])
    moved.quiet = True
    return moved


def left(row: Any, env: str, channel: str, from_status: str, to_status: str) -> Moved:
    """The move of a row of the queue that is gone: its `organization_id`, `id`, `coins`, `price_kind`, `units`, …"""
    return Moved(
        row["organization_id"],
        env,
        channel,
        row["id"],
        from_status,
        to_status,
        row["coins"],
        row["price_kind"],
        row["batch_id"],
        row["campaign_id"],
        units=row["units"],
    )
