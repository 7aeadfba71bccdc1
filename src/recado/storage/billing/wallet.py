"""What sends do to wallets: hold a price, capture it, release it; many messages, one lock and one write (C25.2).

Everything runs in the transaction that moves the messages, after their rows are touched. The balance changes here by
charges only; credits are in `ledger.py`.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime

import structlog

from recado.domain.billing.wallet import WalletStatus, status_of
from recado.domain.core.ids import LEDGER_ENTRY, IdSource
from recado.domain.webhooks.webhook import SubscriptionKey
from recado.storage.billing.ledger import CHARGE, WalletRecord, read_wallet, tell_crossing
from recado.storage.billing.prices import Captured
from recado.storage.core.statements.rows import Executor, columns, pack, pack_numbers, reader
from recado.storage.core.statements.sql import load

SQL = load("wallet")
log = structlog.get_logger(__name__)

WalletKey = tuple[str, str]
"""Organization and environment."""

BLOCK = 1_000


@dataclass(slots=True)
class Charge:
    """One message that was sent; without an id, some devices of the push message `batch_id`. `held`: so it had been.

    `kind`: an adjustment comes after the charge of the message; it gives coins back when it is negative.
    """

    message_id: str | None
    channel: str
    batch_id: str | None
    coins: int
    held: bool = True
    kind: str = CHARGE


@dataclass(slots=True)
class Settlement:
    """What a commit does to one wallet. `released`: coins that were held, and are not captured."""

    charges: list[Charge] = field(default_factory=list)
    released: int = 0


@dataclass(frozen=True, slots=True)
class Settled:
    """What `settle` changed: the volumes of the month, and whom to hint after the commit."""

    captured: tuple[Captured, ...]
    queued: tuple[SubscriptionKey, ...]


async def hold(
    connection: Executor, ids: IdSource, organization_id: str, env: str, coins: int, *, now: datetime
) -> bool:
    """Hold coins in the caller's transaction; False, and nothing held, when they are not covered."""
    return await hold_many(connection, ids, {(organization_id, env): coins}, now=now) is not None


async def hold_many(
    connection: Executor, ids: IdSource, wanted: Mapping[WalletKey, int], *, now: datetime
) -> Mapping[WalletKey, WalletRecord] | None:
    """Hold coins of several wallets, all or nothing; answers them as they are then, None when one does not cover it.

    A wallet that falls low or is depleted by it tells so, in the same transaction (C23.6).
    """
    wanted = {key: coins for key, coins in wanted.items() if coins > 0}
    if not wanted:
        return {}
    before = await _lock(connection, wanted)
    after = {}
    for key, coins in wanted.items():
        wallet = before.get(key)
        if wallet is None or wallet.available_coins < coins:
            return None
        after[key] = _changed(wallet, wallet.balance_coins, wallet.held_coins + coins, wallet.ledger_position)
    await _write(connection, after.values(), [], {}, now)
    for key, wallet in after.items():
        await tell_crossing(connection, ids, before[key], wallet)
    return after


async def settle(
    connection: Executor,
    ids: IdSource,
    settlements: Mapping[WalletKey, Settlement],
    units: Mapping[tuple[str, str, date], int],
    *,
    now: datetime,
) -> Settled:
    """Capture and release. A charge without a hold may take the balance below zero (C15.4).

    `units`: captured, by organization, family and month. Of an environment without a wallet nothing is written.
    """
    before = await _lock(connection, settlements)
    after: dict[WalletKey, WalletRecord] = {}
    entries: list[tuple[str, str, str, int, int, Charge, int]] = []
    for key, wallet in before.items():
        settlement = settlements[key]
        balance, held = wallet.balance_coins, wallet.held_coins - settlement.released
        position = wallet.ledger_position
        for charge in settlement.charges:
            balance -= charge.coins
            held -= charge.coins if charge.held else 0
            position += 1
            entries.append((*key, ids.new(LEDGER_ENTRY), charge.coins, balance, charge, position))
        if held < 0:
            log.error("wallet_holds_less_than_it_should", wallet=wallet.id, coins=held)
        after[key] = _changed(wallet, balance, max(held, 0), position)
    captured = await _write(connection, after.values(), entries, units, now)
    queued: list[SubscriptionKey] = []
    for key, wallet in after.items():
        queued += await tell_crossing(connection, ids, before[key], wallet)
    return Settled(captured, tuple(queued))


async def lock(connection: Executor, keys: Iterable[WalletKey]) -> dict[WalletKey, int]:
    """Lock wallets until the commit, and answer what can be held of each.

    A transaction that comes to several of them more than once locks all of them first, in the order of everybody.
    """
    return {key: wallet.available_coins for key, wallet in (await _lock(connection, keys)).items()}


async def available(executor: Executor, keys: Collection[WalletKey]) -> dict[WalletKey, int]:
    """What could be held of these wallets at this moment."""
    rows = await executor.fetch(SQL.available, *columns(list(keys), 2))
    return {(row["organization_id"], row["env"]): row["available"] for row in rows}


async def charged(executor: Executor, messages: Sequence[tuple[str, str, str]]) -> set[str]:
    """Which of these (organization, environment, message) have been charged."""
    return {row["message_id"] for row in await executor.fetch(SQL.charged, *columns(list(messages), 3))}


async def charged_only(executor: Executor, messages: Sequence[tuple[str, str, str]]) -> dict[str, int]:
    """What these (organization, environment, message) have been charged; without those that were adjusted since."""
    rows = await executor.fetch(SQL.charged_only, *columns(list(messages), 3))
    return {row["message_id"]: row["coins"] for row in rows}


def would_cross(wallet: WalletRecord, coins: int) -> bool:
    """Whether holding so many coins is not covered, or moves the wallet to another status."""
    left = wallet.available_coins - coins
    return left <= 0 or status_of(wallet.status, left, wallet.low_balance_threshold_coins) is not wallet.status


async def _lock(connection: Executor, keys: Iterable[WalletKey]) -> dict[WalletKey, WalletRecord]:
    """Lock wallets until the commit, in the order of their ids."""
    wallets = [read_wallet(row) for row in await connection.fetch(SQL.lock, *columns(list(keys), 2))]
    return {(wallet.organization_id, wallet.env): wallet for wallet in wallets}


def _changed(wallet: WalletRecord, balance: int, held: int, position: int) -> WalletRecord:
    status = status_of(WalletStatus(wallet.status), balance - held, wallet.low_balance_threshold_coins)
    return WalletRecord(
        wallet.organization_id,
        wallet.env,
        wallet.id,
        status,
        balance,
        held,
        wallet.low_balance_threshold_coins,
        wallet.updated_at,
        position,
    )


async def _write(
    connection: Executor,
    wallets: Iterable[WalletRecord],
    entries: Sequence[tuple[str, str, str, int, int, Charge, int]],
    units: Mapping[tuple[str, str, date], int],
    now: datetime,
) -> tuple[Captured, ...]:
    rows = [
        (w.organization_id, w.env, w.balance_coins, w.held_coins, w.status.value, w.ledger_position) for w in wallets
    ]
    if not rows:
        return ()
    charges = [entry[5] for entry in entries]
    found = await connection.fetch(
        SQL.write,
        *columns(rows, 6),
        now,
        pack([entry[0] for entry in entries]),
        pack([entry[1] for entry in entries]),
        pack([entry[2] for entry in entries]),
        pack_numbers([entry[3] for entry in entries]),
        pack_numbers([entry[4] for entry in entries]),
        pack([charge.channel for charge in charges]),
        pack([charge.message_id for charge in charges]),
        pack([charge.batch_id for charge in charges]),
        *columns([(*key, number) for key, number in units.items()], 4),
        pack_numbers([entry[6] for entry in entries]),
        pack([charge.kind for charge in charges]),
    )
    return tuple(Captured(row["organization_id"], row["family"], row["month"], row["units"]) for row in found)


@dataclass(frozen=True, slots=True)
class Sums:
    """A balance, and what the ledger says, up to `ledger_position`: `since` the last verified entry."""

    id: str
    balance_coins: int
    verified_position: int
    verified_coins: int
    ledger_position: int
    since: int

    @property
    def total(self) -> int:
        return self.verified_coins + self.since


_read_sums = reader(Sums)


async def next_wallets(executor: Executor, after: WalletKey) -> list[WalletKey]:
    """One block of wallets, in the order of their keys."""
    return [(row["organization_id"], row["env"]) for row in await executor.fetch(SQL.to_verify, *after, BLOCK)]


async def sums(executor: Executor, key: WalletKey) -> Sums:
    """The wallet and its ledger at one moment."""
    return _read_sums(await executor.fetchrow(SQL.sums, *key))


async def verified(executor: Executor, key: WalletKey, found: Sums) -> None:
    """The entries sum up: they are not read again."""
    if found.ledger_position > found.verified_position:
        await executor.execute(SQL.verified, *key, found.ledger_position, found.since, found.verified_position)
