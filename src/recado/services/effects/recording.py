"""Records departures with what follows of them: in one statement, or else in one transaction (C15.4, C25.2)."""

from collections.abc import Sequence
from datetime import date

from recado.domain.messages.message import MessageStatus
from recado.services.effects.consequences import Consequences
from recado.services.effects.outbox import Outbox
from recado.services.effects.totals import Totals
from recado.services.effects.wallet import Wallet
from recado.storage.billing.holds import HoldsRefused
from recado.storage.core.postgres import Database
from recado.storage.core.rows import in_order
from recado.storage.dispatch import departures, settlements
from recado.storage.dispatch.departures import Following
from recado.storage.dispatch.settlements import Departed


class Recording:
    """`consequences`: all of them, of which `outbox`, `wallet` and `totals` follow of departures.

    `wallet` None: nothing is billed (C25.2.4).
    """

    def __init__(
        self, db: Database, *, consequences: Consequences, outbox: Outbox, wallet: Wallet | None, totals: Totals
    ) -> None:
        self._db = db
        self._consequences = consequences
        self._outbox = outbox
        self._wallet = wallet
        self._totals = totals

    async def record(self, rows: Sequence[Departed]) -> None:
        """sending → sent, in one commit."""
        environments = {(row.organization_id, row.env) for row in rows}
        if not await self._consequences.wanted(environments, MessageStatus.SENT):
            await settlements.departed(self._db.hot, rows)
            return
        ordered = sorted(rows, key=in_order)
        try:
            left = await self._at_once(ordered)
            if left:  # another statement was changing them at that moment
                ordered = [row for row in ordered if row.id in left]
                await self._at_once(ordered)
        except HoldsRefused:
            await self._step_by_step(ordered)

    async def _at_once(self, rows: Sequence[Departed]) -> frozenset[str]:
        """Answers what was left alone."""
        emissions = await self._outbox.departures(rows)
        entry_ids, months = (None, dict[str, date]()) if self._wallet is None else await self._wallet.departures(rows)
        followed = await departures.depart(self._db.hot, rows, Following(emissions, entry_ids, months))
        self._outbox.emitted(
            emissions if not followed.left else [e for e in emissions if e.message_id not in followed.left]
        )
        if self._wallet is not None:
            self._wallet.captured(followed.captured)
        self._totals.emptied(followed.emptied)
        return followed.left

    async def _step_by_step(self, rows: Sequence[Departed]) -> None:
        """With a look at the wallets between the steps."""
        async with self._db.hot.transaction() as connection:
            committed = await self._consequences.write(connection, list(await settlements.departed(connection, rows)))
        committed()
