"""Takes in what the payment provider reports: a top-up that was paid is credited, once (C25.1, C29.5)."""

import structlog

from recado.channels.core.events import Payment
from recado.domain.billing.top_up import COINS_PER_CENT, TopUpStatus
from recado.domain.core.clock import Clock
from recado.domain.core.errors import Problem
from recado.domain.core.ids import IdSource
from recado.domain.messages.changes import DeliveriesQueued, OnChange
from recado.domain.webhooks.webhook import SubscriptionKey
from recado.storage.billing import top_ups
from recado.storage.billing.top_ups import TopUp
from recado.storage.core import audit
from recado.storage.core.audit import AuditPrincipal
from recado.storage.core.connections.postgres import Connection, Database

log = structlog.get_logger()

PROVIDER = AuditPrincipal("system", "payments")


class Payments:
    """Applies news of payments; what is applied again changes nothing.

    What cannot be credited (another amount, a top-up that has ended, a reference that nobody has) is logged as an
    error: money may have come in, and the administrator decides.
    """

    def __init__(self, db: Database, *, clock: Clock, ids: IdSource, changed: OnChange) -> None:
        self._db = db
        self._clock = clock
        self._ids = ids
        self._changed = changed

    async def report(self, payment: Payment) -> None:
        """Apply what the provider tells of one payment."""
        queued: tuple[SubscriptionKey, ...] = ()
        try:
            async with self._db.transaction() as connection:
                top_up = await top_ups.by_reference_locked(connection, payment.reference)
                if top_up is None:
                    log.error("payment_of_no_top_up", status=payment.status)
                elif payment.status == "canceled":
                    await self._cancel(connection, top_up)
                else:
                    queued = await self._pay(connection, top_up, payment)
        except Problem as problem:
            if problem.status >= 500:
                raise
            log.error("payment_not_credited", code=problem.code, detail=problem.detail)
        if queued:
            self._changed(DeliveriesQueued(queued))

    async def _cancel(self, connection: Connection, top_up: TopUp) -> None:
        if top_up.status is TopUpStatus.PENDING:
            await top_ups.cancel(connection, top_up, self._clock.now())

    async def _pay(self, connection: Connection, top_up: TopUp, payment: Payment) -> tuple[SubscriptionKey, ...]:
        coins = (payment.amount_cents or 0) * COINS_PER_CENT
        _, credited = await top_ups.pay(connection, self._ids, top_up, coins, self._clock.now())
        if not credited.replayed:
            await audit.write(
                connection,
                self._ids,
                PROVIDER,
                "wallet.credit",
                organization_id=top_up.organization_id,
                env=top_up.env,
                target_id=credited.wallet.id,
                details={"coins": coins, "reference": payment.reference},
            )
        return credited.queued
