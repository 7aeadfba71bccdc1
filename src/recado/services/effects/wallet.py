"""Captures and releases the prices of messages in the commits that move them (C15.4, C25.2): a consequence."""

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import date, datetime

from recado.domain.billing.prices import FAMILY_OF, month_of
from recado.domain.channels.policies import shown
from recado.domain.core.clock import Clock
from recado.domain.core.ids import LEDGER_ENTRY, IdSource
from recado.domain.messages.message import GenericStatus, MessageStatus
from recado.domain.webhooks.webhook import SubscriptionKey
from recado.storage.billing import wallet
from recado.storage.billing.ledger import ADJUSTMENT
from recado.storage.billing.prices import Captured, PriceDirectory
from recado.storage.billing.wallet import Charge, Settlement, WalletKey
from recado.storage.core.statements.moves import AfterCommit, Money, Moved
from recado.storage.core.statements.rows import Executor
from recado.storage.dispatch.settlements import Departed

_GONE = frozenset({GenericStatus.SENT.value, GenericStatus.DELIVERED.value, GenericStatus.READ.value})
_WAITS = frozenset({MessageStatus.QUEUED.value, MessageStatus.SENDING.value})


class Wallet:
    """`queued` is told, after the commit, whose events were written."""

    def __init__(
        self,
        prices: PriceDirectory,
        *,
        clock: Clock,
        ids: IdSource,
        queued: Callable[[Iterable[SubscriptionKey]], None],
    ) -> None:
        self._prices = prices
        self._clock = clock
        self._ids = ids
        self._queued = queued

    async def wanted(self, environments: Collection[tuple[str, str]], to_status: str) -> bool:
        """What a row holds is known when it moves: so every end is wanted."""
        return to_status not in _WAITS

    async def write(self, connection: Executor, moved: Sequence[Moved]) -> AfterCommit | None:
        """Capture what was sent, release what will not be, charge what was sent after all, and adjust."""
        settlements: dict[WalletKey, Settlement] = {}
        units: dict[tuple[str, str, date], int] = {}
        months: dict[str, date] = {}
        charged = await self._charged_before(connection, moved)
        now = self._clock.now()
        for move in moved:
            if move.money is not None and (move.money.freed or move.money.adjusted):
                _let_go(settlements.setdefault((move.organization_id, move.env), Settlement()), move, move.money)
            if move.from_status is None or move.id in charged or (move.coins == 0 and not _counts_free(move)):
                continue
            settlement = settlements.setdefault((move.organization_id, move.env), Settlement())
            if not _is_gone(move):
                settlement.released += move.coins
                continue
            charged.add(move.id)  # what was sent, failed and was sent after all in one batch is one send
            coins = move.captured
            if coins:
                held = move.from_status != MessageStatus.FAILED
                settlement.charges.append(Charge(move.id, move.channel, move.batch_id, coins, held=held))
            if move.money is not None:
                settlement.released += move.coins - coins - move.money.kept
            family = FAMILY_OF.get(move.price_kind or "")
            if family is not None:
                month = months.get(move.organization_id)
                if month is None:
                    month = months[move.organization_id] = await self._month(move.organization_id, now)
                key = (move.organization_id, family, month)
                units[key] = units.get(key, 0) + move.units
        if not settlements:
            return None
        settled = await wallet.settle(connection, self._ids, settlements, units, now=now)

        def committed() -> None:
            self.captured(settled.captured)
            if settled.queued:
                self._queued(settled.queued)

        return committed

    async def departures(self, rows: Sequence[Departed]) -> tuple[list[str], dict[str, date]]:
        """For messages that may have been sent: an id of the ledger each, and the month of each organization."""
        now = self._clock.now()
        months: dict[str, date] = {}
        for row in rows:
            if row.organization_id not in months:
                months[row.organization_id] = await self._month(row.organization_id, now)
        return [self._ids.new(LEDGER_ENTRY) for _ in rows], months

    def captured(self, changes: Iterable[Captured]) -> None:
        """A commit raised these volumes."""
        self._prices.captured(changes)

    async def _month(self, organization_id: str, now: datetime) -> date:
        return month_of((await self._prices.volumes_of(organization_id)).zone, now)

    async def _charged_before(self, connection: Executor, moved: Sequence[Moved]) -> set[str]:
        """Of messages that had failed by an unknown outcome, those charged already: they had failed again."""
        late = [
            (move.organization_id, move.env, move.id)
            for move in moved
            if move.coins and move.from_status == MessageStatus.FAILED and _is_gone(move)
        ]
        return await wallet.charged(connection, late) if late else set()


def _let_go(settlement: Settlement, move: Moved, money: Money) -> None:
    """What was kept of the message's price is held no more, or more is charged for it, or less."""
    settlement.released += money.freed
    if money.adjusted:
        adjustment = Charge(move.id, move.channel, move.batch_id, money.adjusted, held=False, kind=ADJUSTMENT)
        settlement.charges.append(adjustment)


def _counts_free(move: Moved) -> bool:
    """Whether it is a unit of the month at an agreed price of nothing: no charge would tell that it was counted before.

    So what had failed, and was sent after all, does not count.
    """
    return move.price_kind in FAMILY_OF and move.from_status != MessageStatus.FAILED and _is_gone(move)


def _is_gone(move: Moved) -> bool:
    """Whether the message has left, as far as is known."""
    return shown(move.channel, move.to_status) in _GONE
