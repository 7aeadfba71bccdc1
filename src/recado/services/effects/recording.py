"""Records departures with what follows of them: in one statement, or else in one transaction (C15.4, C25.2)."""

from collections.abc import Sequence
from datetime import date

from recado.domain.messages.message import MessageStatus
from recado.services.effects.consequences import Consequences
from recado.services.effects.outbox import Outbox
from recado.services.effects.totals import MessageTotals
from recado.services.effects.wallet import Wallet
from recado.storage.billing import wallet
from recado.storage.billing.holds import HoldsRefused
from recado.storage.core.connections.postgres import Database
from recado.storage.core.statements.moves import Money, Moved
from recado.storage.core.statements.rows import in_order
from recado.storage.dispatch import departures, settlements
from recado.storage.dispatch.departures import Following
from recado.storage.dispatch.settlements import Departed
from recado.storage.messages import state_moves


class Recording:
    """`consequences`: all of them, of which `outbox`, `wallet` and `totals` follow of departures.

    `wallet` None: nothing is billed (C25.2.4).
    """

    def __init__(
        self, db: Database, *, consequences: Consequences, outbox: Outbox, wallet: Wallet | None, totals: MessageTotals
    ) -> None:
        self._db = db
        self._consequences = consequences
        self._outbox = outbox
        self._wallet = wallet
        self._totals = totals

    async def record(self, rows: Sequence[Departed]) -> None:
        """sending → sent, in one commit."""
        environments = {(row.organization_id, row.env) for row in rows}
        totaled = any(row.totaled for row in rows)
        wanted = totaled or await self._consequences.wanted(environments, MessageStatus.SENT)
        if not wanted and not any(row.deadlines for row in rows):
            await settlements.departed(self._db.hot, rows, months=self._db.months)
            return
        left: Sequence[Departed] = sorted(rows, key=in_order)
        if again := [row for row in left if row.adjusted is not None]:  # hardly ever any
            await self._step_by_step(again)
            left = [row for row in left if row.adjusted is None]
        try:
            left = await self._at_once(left) if left else left
            if left:  # another statement was changing them at that moment
                left = await self._at_once(left)
        except HoldsRefused:
            left = await self._step_by_step(left)
        over = [row for row in left if row.capture is not None]  # a report was faster
        if over and self._wallet is not None:
            await self._give_back(over)

    async def _at_once(self, rows: Sequence[Departed]) -> Sequence[Departed]:
        """Answers what was left alone."""
        emissions = await self._outbox.departures(rows)
        entry_ids, months = (None, dict[str, date]()) if self._wallet is None else await self._wallet.departures(rows)
        following = Following(emissions, entry_ids, months)
        followed = await departures.depart(self._db.hot, rows, following, months=self._db.months)
        self._outbox.emitted(
            emissions if not followed.left else [e for e in emissions if e.message_id not in followed.left]
        )
        if self._wallet is not None:
            self._wallet.captured(followed.captured)
        self._totals.emptied(followed.emptied)
        return [row for row in rows if row.id in followed.left] if followed.left else ()

    async def _step_by_step(self, rows: Sequence[Departed]) -> Sequence[Departed]:
        """With a look at the wallets between the steps; answers what was left alone."""
        async with self._db.hot.transaction() as connection:
            moved = list(await settlements.departed(connection, rows, months=self._db.months))
            committed = await self._consequences.write(connection, moved)
        committed()
        gone = {move.id for move in moved}
        return [row for row in rows if row.id not in gone]

    async def _give_back(self, rows: Sequence[Departed]) -> None:
        """Of these a report told that they had left, and all that they held was captured: the rest is given back."""
        captures = {row.id: row.capture for row in rows}
        async with self._db.hot.transaction() as connection:
            charged = await wallet.charged_only(connection, [(row.organization_id, row.env, row.id) for row in rows])
            moved: list[Moved] = []
            for channel in {row.channel for row in rows}:
                keys = [(row.organization_id, row.env, row.id) for row in rows if row.channel == channel]
                moved += await state_moves.stay(connection, channel, keys)
            for move in moved:
                capture = captures[move.id]
                over = 0 if capture is None else charged.get(move.id, 0) - capture.coins
                move.money = Money(adjusted=-over) if over > 0 else None
            committed = await self._consequences.write(connection, [move for move in moved if move.money is not None])
        committed()
