"""Once a day: whether the entries of each wallet's ledger sum up to its balance (C25.2.5); an alarm when not."""

import structlog

from recado.domain.core.clock import Clock
from recado.domain.core.ids import IdSource
from recado.engine.periodic import Periodic
from recado.storage.billing import wallet
from recado.storage.core import audit
from recado.storage.core.connections.postgres import Database

log = structlog.get_logger()

EVERY = 86_400.0  # seconds (C32)
MISMATCH = "wallet.ledger_mismatch"


class LedgerCheck:
    """A service. It reads each entry once: what summed up is not read again."""

    def __init__(self, db: Database, *, clock: Clock, ids: IdSource) -> None:
        self._db = db
        self._ids = ids
        self._daily = Periodic("ledger check", EVERY, self.work, clock, at_once=True)

    async def start(self) -> None:
        await self._daily.start()

    async def stop(self) -> None:
        await self._daily.stop()

    async def work(self) -> None:
        """Check every wallet."""
        after = ("", "")
        while block := await wallet.next_wallets(self._db, after):
            for key in block:
                await self._check(key)
            after = block[-1]

    async def _check(self, key: wallet.WalletKey) -> None:
        sums = await wallet.sums(self._db, key)
        if sums.total == sums.balance_coins:
            await wallet.verified(self._db, key, sums)
            return
        log.error("ledger_mismatch", wallet=sums.id, balance=sums.balance_coins, ledger=sums.total)
        organization_id, env = key
        await audit.write(
            self._db,
            self._ids,
            audit.SYSTEM,
            MISMATCH,
            organization_id=organization_id,
            env=env,
            target_id=sums.id,
            details={"balanceCoins": sums.balance_coins, "ledgerCoins": sums.total},
        )
