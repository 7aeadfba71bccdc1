"""What the installation's administrator gives to a wallet or takes from it, once for each reference (C24.1, C25.2)."""

from datetime import datetime

from recado.domain.core.ids import IdSource
from recado.storage.billing import ledger, top_ups
from recado.storage.billing.ledger import Credited
from recado.storage.core import audit
from recado.storage.core.audit import AuditPrincipal
from recado.storage.core.statements.rows import Executor


async def grant(
    connection: Executor,
    ids: IdSource,
    *,
    organization_id: str,
    env: str,
    coins: int,
    reference: str,
    actor: AuditPrincipal,
    now: datetime,
) -> Credited:
    """Credit `coins`, or adjust down by a negative number; a repeat under the same reference does nothing more.

    The payment reference of a top-up confirms its payment. To be run in one transaction. Raises `Problem`: NOT_FOUND
    without a wallet, CONFLICT when the reference stands for another number of coins, INVALID_STATE when it names a
    top-up that has ended, PAYMENT_REQUIRED when less is available than is taken away.
    """
    top_up = await top_ups.by_reference_locked(connection, reference)
    if top_up is not None and (top_up.organization_id, top_up.env) == (organization_id, env):
        _, credited = await top_ups.pay(connection, ids, top_up, coins, now)
    else:
        credited = await ledger.credit(
            connection,
            ids,
            organization_id=organization_id,
            env=env,
            kind=ledger.TOP_UP if coins > 0 else ledger.ADJUSTMENT,
            coins=coins,
            description=reference,
            reference=reference,
            now=now,
        )
    if not credited.replayed:
        await audit.write(
            connection,
            ids,
            actor,
            "wallet.credit",
            organization_id=organization_id,
            env=env,
            target_id=credited.wallet.id,
            details={"coins": coins, "reference": reference},
        )
    return credited
