"""A wallet as its owner sees and fills it: the balance, the threshold, the ledger, credits and adjustments (C25).

What sends hold and capture of it is the hot path's, in `wallet.py`. Anyone who changes a balance here has locked the
wallet and writes the ledger entry in the same transaction, so that their sum is the balance (C25.2.5).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from recado.domain.billing.wallet import (
    DEFAULT_THRESHOLD,
    LOW_BALANCE,
    MOST_BALANCE,
    SANDBOX_COINS,
    WalletStatus,
    crossing,
    status_of,
)
from recado.domain.core.counting import counted
from recado.domain.core.errors import Problem, conflict, not_found
from recado.domain.core.ids import LEDGER_ENTRY, WALLET, Identified, IdSource
from recado.domain.webhooks.webhook import SubscriptionKey
from recado.storage.core.statements.rows import Executor, reader
from recado.storage.core.statements.sql import load
from recado.storage.webhooks.events import emit

SQL = load("ledger")

TOP_UP, CHARGE, ADJUSTMENT = "topup", "charge", "adjustment"
LAST_ID = f"{LEDGER_ENTRY}~"
MOST_POSITIONS = 2**62
NEIGHBOURS = 5_000
"""Positions: more entries than are written in the moment between an id and its place."""


@dataclass(frozen=True, slots=True)
class WalletRecord:
    """What an environment has, in coins."""

    organization_id: str
    env: str
    id: str
    status: WalletStatus
    balance_coins: int
    held_coins: int
    low_balance_threshold_coins: int
    updated_at: datetime
    ledger_position: int  # of the last entry

    @property
    def available_coins(self) -> int:
        return self.balance_coins - self.held_coins


@dataclass(frozen=True, slots=True)
class LedgerEntry(Identified):
    """One change of a balance; `coins` is signed.

    `position`: its place among those of the wallet, from 1. `reference`: of a credit.
    """

    organization_id: str
    env: str
    id: str
    position: int
    kind: str
    coins: int
    balance_after: int
    channel: str | None
    message_id: str | None
    batch_id: str | None
    description: str | None
    reference: str | None


@dataclass(frozen=True, slots=True)
class Credited:
    """What a credit did. `replayed`: it had been made before. `queued`: whom to hint after the commit."""

    entry: LedgerEntry
    wallet: WalletRecord
    replayed: bool
    queued: tuple[SubscriptionKey, ...] = ()


read_wallet = reader(WalletRecord, status=WalletStatus)
read_entry = reader(LedgerEntry)


async def open_wallets(connection: Executor, ids: IdSource, organization_id: str, now: datetime) -> None:
    """Give a new organization its wallets: an empty one in live, and coins to try everything with in test (C2.2)."""
    for env in ("live", "test"):
        empty = WalletStatus.DEPLETED.value
        await connection.execute(SQL.open, organization_id, env, ids.new(WALLET), empty, DEFAULT_THRESHOLD, now)
    await credit(
        connection,
        ids,
        organization_id=organization_id,
        env="test",
        kind=TOP_UP,
        coins=SANDBOX_COINS,
        description="sandbox coins",
        reference=None,
        now=now,
    )


async def get(executor: Executor, organization_id: str, env: str) -> WalletRecord | None:
    row = await executor.fetchrow(SQL.wallet, organization_id, env)
    return read_wallet(row) if row else None


async def set_threshold(
    connection: Executor, ids: IdSource, organization_id: str, env: str, coins: int, now: datetime
) -> tuple[WalletRecord, WalletRecord, tuple[SubscriptionKey, ...]]:
    """Change the threshold, and the status with it; answers the wallet before and after, and whom to hint."""
    before = await _locked(connection, organization_id, env)
    if before.low_balance_threshold_coins == coins:
        return before, before, ()
    status = status_of(before.status, before.available_coins, coins)
    row = await connection.fetchrow(SQL.set_threshold, organization_id, env, coins, status.value, now)
    after = read_wallet(row)
    return before, after, await tell_crossing(connection, ids, before, after)


async def credit(
    connection: Executor,
    ids: IdSource,
    *,
    organization_id: str,
    env: str,
    kind: str,
    coins: int,
    description: str | None,
    reference: str | None,
    now: datetime,
) -> Credited:
    """Add `coins` (fewer than none: take away) to the balance, once for each `reference`.

    Raises `Problem` CONFLICT when the reference stands for another number of coins, PAYMENT_REQUIRED when less is
    available than is taken away, LIMIT_REACHED beyond the largest balance.
    """
    before = await _locked(connection, organization_id, env)
    if reference is not None:
        row = await connection.fetchrow(SQL.by_reference, organization_id, env, reference)
        if row is not None:
            return _again(read_entry(row), coins, before)
    balance, available = before.balance_coins + coins, before.available_coins + coins
    if coins < 0 and available < 0:
        raise Problem(
            "PAYMENT_REQUIRED",
            f"Only {counted(before.available_coins, 'coin is', 'coins are')} available.",
            meta={"requiredCoins": -coins, "availableCoins": before.available_coins},
        )
    if balance > MOST_BALANCE:
        raise conflict("LIMIT_REACHED", f"A balance has at most {MOST_BALANCE} coins.", limit=MOST_BALANCE)
    status = status_of(before.status, available, before.low_balance_threshold_coins)
    row = await connection.fetchrow(SQL.change_balance, organization_id, env, coins, status.value, now)
    after = read_wallet(row)
    entry = read_entry(
        await connection.fetchrow(
            SQL.insert,
            organization_id,
            env,
            ids.new(LEDGER_ENTRY),
            after.ledger_position,
            kind,
            coins,
            after.balance_coins,
            description,
            reference,
        )
    )
    return Credited(entry, after, replayed=False, queued=await tell_crossing(connection, ids, before, after))


async def tell_crossing(
    connection: Executor, ids: IdSource, before: WalletRecord, after: WalletRecord
) -> tuple[SubscriptionKey, ...]:
    """Write the event of a wallet that fell low or is depleted; answers whom to hint after the commit (C23.6)."""
    event = crossing(before.status, after.status)
    if event is None:
        return ()
    data: dict[str, Any] = {"walletId": after.id, "availableCoins": after.available_coins}
    if event == LOW_BALANCE:
        data["thresholdCoins"] = after.low_balance_threshold_coins
    told = await emit(connection, ids, organization_id=after.organization_id, env=after.env, type=event, data=data)
    return tuple(told)


async def list_page(
    executor: Executor,
    organization_id: str,
    env: str,
    *,
    period: tuple[str, str] | None,
    before_position: int | None,
    kind: str | None,
    message_id: str | None,
    limit: int,
) -> list[LedgerEntry]:
    """Newest first, before a position; `period`: with ids in [first, before). Each filter has its index.

    A period is looked for among the positions of its first and its last id. Entries that were written at the same
    moment may stand the other way round: so their neighbours are looked at, too.
    """
    wallet = (organization_id, env)
    first_id, before_id = period or ("", LAST_ID)
    first, before = 1, MOST_POSITIONS if before_position is None else before_position
    if period is not None:
        found = await executor.fetchrow(SQL.positions, *wallet, first_id, before_id)
        if found["first"] is None or found["last"] is None:
            return []
        first, before = found["first"] - NEIGHBOURS, min(before, found["last"] + NEIGHBOURS)
    bounds = (*wallet, first, before, first_id, before_id, limit)
    rows: list[Mapping[str, Any]]
    if message_id is not None:
        rows = await executor.fetch(SQL.page_of_message, *bounds, message_id, kind)
    elif kind is None:
        rows = await executor.fetch(SQL.page, *bounds)
    elif kind == CHARGE:
        rows = await executor.fetch(SQL.page_of_charges, *bounds)
    else:
        rows = await executor.fetch(SQL.page_of_kind, *bounds, kind)
    return [read_entry(row) for row in rows]


async def _locked(connection: Executor, organization_id: str, env: str) -> WalletRecord:
    row = await connection.fetchrow(SQL.wallet_locked, organization_id, env)
    if row is None:
        raise not_found()
    return read_wallet(row)


def _again(entry: LedgerEntry, coins: int, wallet: WalletRecord) -> Credited:
    if entry.coins != coins:
        raise conflict(
            "CONFLICT",
            f"This reference was used for {counted(entry.coins, 'coin')}: use another one.",
            coins=entry.coins,
        )
    return Credited(entry, wallet, replayed=True)
