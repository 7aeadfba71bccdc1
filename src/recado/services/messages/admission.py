"""Stores batches of accepted messages: their prices are held in the commit that stores them, or they get 402 (C25.2.2).

Usually one statement does it all. Where a wallet does not cover its sum, or falls low by it, the batch is admitted row
by row in order of arrival, in several statements: what is refused does not count against what comes after.
"""

import asyncio
from collections.abc import Mapping, Sequence

from recado.domain.core.clock import Clock
from recado.domain.core.counting import counted
from recado.domain.core.errors import Problem, Unavailable
from recado.domain.core.ids import IdSource
from recado.domain.messages.message import MessageStatus
from recado.services.effects.consequences import Consequences
from recado.services.messages.replacing import already_replaced
from recado.storage.billing import wallet
from recado.storage.billing.holds import HoldsRefused
from recado.storage.billing.ledger import WalletRecord
from recado.storage.billing.wallet import WalletKey
from recado.storage.core import audit
from recado.storage.core.connections.postgres import Database
from recado.storage.core.statements.moves import AfterCommit, Moved
from recado.storage.core.statements.rows import Executor
from recado.storage.messages import messages, replacements
from recado.storage.messages.messages import SINGLE_OWNER, AcceptResult, NewMessage, Stored
from recado.storage.messages.replacements import Replacement

Result = AcceptResult | Exception

TRIES = 10  # others may spend, between our look at a wallet and its lock, what we had counted on


class Admission:
    """What `Sending` accepts with."""

    def __init__(self, db: Database, *, clock: Clock, ids: IdSource, consequences: Consequences) -> None:
        self._db = db
        self._clock = clock
        self._ids = ids
        self._consequences = consequences
        self.refused = 0  # messages that a wallet did not cover, since the start
        self._turn = asyncio.Lock()
        # Wallets that did not cover their last batch, or may not cover the next one: they are looked at first.
        self._tight: set[WalletKey] = set()

    async def store(self, batch: Sequence[NewMessage]) -> Sequence[Result]:
        """Store what can be stored, durably; one result for each row."""
        if not self._tight and all(new.replaces is None for new in batch):
            return await self._store_all(batch)
        fresh = [new for new in batch if new.replaces is None]
        easy = [new for new in fresh if new.coins is None or _wallet(new) not in self._tight]
        hard = [new for new in fresh if new.coins is not None and _wallet(new) in self._tight]
        results: dict[NewMessage, Result] = {}
        if easy:
            results.update(zip(easy, await self._store_all(easy), strict=True))
        if hard:
            results.update(zip(hard, await self._store_in_order(hard), strict=True))
        for new in batch:
            if new.replaces is not None:
                results[new] = await self._replace(new, new.replaces)
        return [results[new] for new in batch]

    async def store_within(
        self, connection: Executor, batch: Sequence[NewMessage], withdrawn: Sequence[Moved] = ()
    ) -> tuple[Sequence[Result], AfterCommit]:
        """Store, in the caller's transaction, what its wallets cover in this order; the rest gets 402.

        `withdrawn`: what the transaction has withdrawn; what follows of that is written, too. Answers also what to do
        after the commit. None of the batch has a key, replaces another or is forced.

        All wallets are locked first, those that get something back as well, so that nobody spends what is counted on.
        What is stored then is new, and nobody else waits for it.
        """
        wallets = {_wallet(new) for new in batch if new.coins}
        wallets |= {(move.organization_id, move.env) for move in withdrawn if move.coins}
        admitted, refused = _admit(batch, await wallet.lock(connection, wallets) if wallets else {})
        stored = await messages.accept(connection, admitted, hold=False, months=self._db.months) if admitted else []
        await self._hold(connection, _prices(admitted, stored))
        committed = await self._consequences.write(connection, [*withdrawn, *_counted(admitted, stored)])
        self.refused += len(refused)
        results: dict[str, Result] = {**refused}
        results.update(zip([new.id for new in admitted], stored, strict=True))
        return [results[new.id] for new in batch], committed

    async def _store_all(self, batch: Sequence[NewMessage]) -> Sequence[Result]:
        """All or none; then in order of arrival."""
        try:
            if all(new.campaign_id is None and new.forced is None for new in batch):
                return await messages.accept(self._db.hot, batch, months=self._db.months)
            async with self._db.hot.transaction() as connection:
                results = await messages.accept(connection, batch, months=self._db.months)
                await _record_forces(connection, batch, results)
                # What is counted is written in the same commit (C15.6).
                committed = await self._consequences.write(connection, _counted(batch, results))
        except HoldsRefused:
            return await self._store_in_order(batch)
        committed()
        return results

    async def _store_in_order(self, batch: Sequence[NewMessage]) -> Sequence[Result]:
        """Admit in order of arrival what its wallet covers; the rest gets 402."""
        async with self._turn:
            for _ in range(TRIES):
                try:
                    results = await self._try_in_order(batch)
                except SpentMeanwhile:
                    continue  # somebody else was faster to spend
                return [results[new.id] for new in batch]
        raise Unavailable("Too many requests use the wallet at once: try again shortly.")

    async def _try_in_order(self, batch: Sequence[NewMessage]) -> dict[str, Result]:
        results: dict[str, Result] = {**await messages.decided(self._db.hot, batch)}
        undecided = [new for new in batch if new.id not in results]
        wallets = {_wallet(new) for new in undecided if new.coins}
        admitted, refused = _admit(undecided, await wallet.available(self._db.hot, wallets))
        results.update(refused)
        spent: dict[WalletKey, int] = {}
        after: Mapping[WalletKey, WalletRecord] = {}
        if admitted:
            async with self._db.hot.transaction() as connection:
                stored = await messages.accept(connection, admitted, hold=False)
                await _record_forces(connection, admitted, stored)
                spent = _prices(admitted, stored)
                after = await self._hold(connection, spent)
                committed = await self._consequences.write(connection, _counted(admitted, stored))
            committed()
            results.update(zip([new.id for new in admitted], stored, strict=True))
        self.refused += len(refused)
        short = {_wallet(new) for new in undecided if new.id in refused}
        for key in {_wallet(new) for new in batch}:
            if key in short or (key in after and wallet.would_cross(after[key], spent[key])):
                self._tight.add(key)
            else:
                self._tight.discard(key)
        return results

    async def _replace(self, new: NewMessage, replacement: Replacement) -> Result:
        """Store a message in the place of another, which is marked in the same commit (C15.4)."""
        try:
            async with self._db.hot.transaction() as connection:
                if not await replacements.lock(connection, [replacement]):
                    return already_replaced()
                results = await messages.accept(connection, [new], hold=False)
                await _record_forces(connection, [new], results)
                if type(results[0]) is Stored:
                    await replacements.replace(connection, [replacement], new.accepted_at)
                    new.owner = await replacements.inherit(connection, replacement) or SINGLE_OWNER
                await self._hold(connection, _prices([new], results))
                committed = await self._consequences.write(connection, _counted([new], results))
        except SpentMeanwhile:
            self.refused += 1
            covered = await wallet.available(self._db.hot, [_wallet(new)])
            return not_covered(new.coins or 0, covered.get(_wallet(new), 0))
        committed()
        return results[0]

    async def _hold(self, connection: Executor, prices: Mapping[WalletKey, int]) -> Mapping[WalletKey, WalletRecord]:
        after = await wallet.hold_many(connection, self._ids, prices, now=self._clock.now())
        if after is None:
            raise SpentMeanwhile
        return after


class SpentMeanwhile(Unavailable):
    """A wallet has less than was counted on: somebody else was faster to spend, and the transaction is undone."""


def not_covered(required: int, available: int) -> Problem:
    """402."""
    return Problem(
        "PAYMENT_REQUIRED",
        f"This costs {counted(required, 'coin')}; the wallet has {max(available, 0)}. Top it up, then try again.",
        meta={"requiredCoins": required, "availableCoins": available},
    )


def _admit(
    batch: Sequence[NewMessage], covered: Mapping[WalletKey, int]
) -> tuple[list[NewMessage], dict[str, Problem]]:
    """In order of arrival: what is covered, and the refusals of the rest by id."""
    left = dict(covered)
    admitted: list[NewMessage] = []
    refused: dict[str, Problem] = {}
    keys: set[tuple[WalletKey, bytes]] = set()
    for new in batch:
        key, coins = _wallet(new), new.coins or 0
        if new.key_hash is not None:
            if (key, new.key_hash) in keys:
                admitted.append(new)  # a repeat of one just admitted: it will find its key bound, and holds nothing
                continue
            keys.add((key, new.key_hash))
        if coins <= left.get(key, 0) or coins == 0:
            left[key] = left.get(key, 0) - coins
            admitted.append(new)
        else:
            refused[new.id] = not_covered(coins, left.get(key, 0))
            if new.key_hash is not None:
                keys.discard((key, new.key_hash))
    return admitted, refused


def _wallet(new: NewMessage) -> WalletKey:
    return (new.organization_id, new.env)


def _prices(batch: Sequence[NewMessage], results: Sequence[Result]) -> dict[WalletKey, int]:
    """The coins to hold for what was stored now, by wallet."""
    prices: dict[WalletKey, int] = {}
    for new, result in zip(batch, results, strict=True):
        if new.coins and _newly(result):
            prices[_wallet(new)] = prices.get(_wallet(new), 0) + new.coins
    return prices


async def _record_forces(connection: Executor, batch: Sequence[NewMessage], results: Sequence[Result]) -> None:
    """The audit of what was stored now and goes before all others."""
    for new, result in zip(batch, results, strict=True):
        if new.forced is not None and _newly(result):
            await audit.append(connection, new.forced)


def _newly(result: Result) -> bool:
    return type(result) is Stored and not result.earlier


def _counted(batch: Sequence[NewMessage], results: Sequence[Result]) -> list[Moved]:
    """The moves of what was stored now and is counted somewhere: in a campaign, or in the batch of what it replaces."""
    moved = []
    for new, result in zip(batch, results, strict=True):
        batch_id = None if new.replaces is None else new.replaces.batch_id
        if _newly(result) and (batch_id or new.campaign_id):
            moved.append(
                Moved(
                    new.organization_id,
                    new.env,
                    new.channel,
                    new.id,
                    None,
                    MessageStatus.QUEUED.value,
                    new.coins or 0,
                    new.price_kind,
                    batch_id,
                    new.campaign_id,
                )
            )
    return moved
