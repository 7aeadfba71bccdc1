"""Top-ups: coins that are credited at once in test, and when their payment is confirmed in live (C25.1)."""

from dataclasses import dataclass
from datetime import datetime

from recado.domain.billing.top_up import COINS_PER_CENT, TOP_UP_MACHINE, WAITS, TopUpEvent, TopUpStatus
from recado.domain.core.counting import counted
from recado.domain.core.errors import conflict
from recado.domain.core.ids import TOP_UP, Identified, IdSource, created_at
from recado.storage.billing import ledger
from recado.storage.billing.ledger import Credited
from recado.storage.core.statements.rows import Executor, Page, affected, page, reader
from recado.storage.core.statements.sql import load

SQL = load("top_ups")

REFERENCE_PREFIX = "recado"
"""Of payment references: 27 letters and digits in all, so that instant payment schemes take them as they are."""


@dataclass(frozen=True, slots=True)
class TopUp(Identified):
    """One top-up. `amount_cents`, `payment_reference` and `expires_at` in live only."""

    organization_id: str
    env: str
    id: str
    status: TopUpStatus
    amount_cents: int | None
    coins: int
    payment_reference: str | None
    created_by_id: str | None
    expires_at: datetime | None
    settled_at: datetime | None
    updated_at: datetime

    @property
    def paid_at(self) -> datetime | None:
        return self.settled_at if self.status is TopUpStatus.PAID else None


read = reader(TopUp, status=TopUpStatus)


async def create_paid(
    connection: Executor,
    ids: IdSource,
    *,
    organization_id: str,
    env: str,
    coins: int,
    created_by_id: str,
    now: datetime,
) -> tuple[TopUp, Credited]:
    """Make a top-up that nobody pays for, with its credit."""
    top_up_id = ids.new(TOP_UP)
    made_at = created_at(top_up_id)  # `now` may be earlier: ids are later than all that were made before (C2.1)
    row = await connection.fetchrow(
        SQL.insert,
        organization_id,
        env,
        top_up_id,
        TopUpStatus.PAID.value,
        None,
        coins,
        None,
        created_by_id,
        None,
        made_at,
        made_at,
    )
    top_up = read(row)
    return top_up, await _credit(connection, ids, top_up, now)


async def create_pending(
    executor: Executor,
    ids: IdSource,
    *,
    organization_id: str,
    env: str,
    amount_cents: int,
    created_by_id: str,
    now: datetime,
) -> TopUp:
    """Make a top-up that waits for its payment."""
    top_up_id = ids.new(TOP_UP)
    row = await executor.fetchrow(
        SQL.insert,
        organization_id,
        env,
        top_up_id,
        TopUpStatus.PENDING.value,
        amount_cents,
        amount_cents * COINS_PER_CENT,
        ids.new(REFERENCE_PREFIX),
        created_by_id,
        now + WAITS,
        None,
        created_at(top_up_id),
    )
    return read(row)


async def get(executor: Executor, organization_id: str, env: str, top_up_id: str) -> TopUp | None:
    row = await executor.fetchrow(SQL.by_id, organization_id, env, top_up_id)
    return read(row) if row else None


async def list_page(executor: Executor, organization_id: str, env: str, *, limit: int, skip: int) -> Page[TopUp]:
    """Newest first."""
    rows = await executor.fetch(SQL.page, organization_id, env, limit, skip)
    return page([read(row) for row in rows], await executor.fetchval(SQL.page_count, organization_id, env))


async def by_reference_locked(connection: Executor, payment_reference: str) -> TopUp | None:
    """The top-up of that payment reference, of any organization; nobody else settles it until this transaction ends."""
    row = await connection.fetchrow(SQL.by_reference_locked, payment_reference)
    return read(row) if row else None


async def pay(connection: Executor, ids: IdSource, top_up: TopUp, coins: int, now: datetime) -> tuple[TopUp, Credited]:
    """Settle a locked top-up with its payment, and credit it. One that is paid answers its credit again.

    Raises `Problem` CONFLICT when something else was paid than was asked for, and `IllegalMove` for one that has ended.
    """
    if coins != top_up.coins:
        raise conflict(
            "CONFLICT", f"The top-up of this reference is of {counted(top_up.coins, 'coin')}.", coins=top_up.coins
        )
    if top_up.status is not TopUpStatus.PAID:
        top_up = await _settled(connection, top_up, TopUpEvent.PAY, now)
    return top_up, await _credit(connection, ids, top_up, now)


async def cancel(connection: Executor, top_up: TopUp, now: datetime) -> TopUp:
    """Settle a locked top-up that will not be paid; raises `IllegalMove` for one that has ended."""
    return await _settled(connection, top_up, TopUpEvent.CANCEL, now)


async def expire(executor: Executor, now: datetime) -> int:
    """End the top-ups that nobody paid for in time; answers how many."""
    sources = [state.value for state in TOP_UP_MACHINE.sources(TopUpEvent.EXPIRE)]
    return affected(await executor.execute(SQL.expire, now, TopUpStatus.EXPIRED.value, sources))


async def _settled(connection: Executor, top_up: TopUp, event: TopUpEvent, now: datetime) -> TopUp:
    status = TOP_UP_MACHINE.move(top_up.status, event)
    sources = [state.value for state in TOP_UP_MACHINE.sources(event)]
    row = await connection.fetchrow(
        SQL.settle, top_up.organization_id, top_up.env, top_up.id, status.value, now, sources
    )
    return read(row)


async def _credit(connection: Executor, ids: IdSource, top_up: TopUp, now: datetime) -> Credited:
    return await ledger.credit(
        connection,
        ids,
        organization_id=top_up.organization_id,
        env=top_up.env,
        kind=ledger.TOP_UP,
        coins=top_up.coins,
        description=f"top-up {top_up.id}",
        reference=top_up.payment_reference or top_up.id,
        now=now,
    )
