"""What the messages of batches cost, and their holds, a block at a time (C25.2.3)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final, NamedTuple

import orjson

from recado.domain.billing.prices import INTL, region_of
from recado.domain.channels.address import AddressKind
from recado.domain.channels.policies import POLICIES, address_kind
from recado.domain.core.clock import Clock
from recado.domain.core.errors import Problem
from recado.domain.core.ids import IdSource
from recado.services.messages.admission import not_covered
from recado.storage.batches.audiences import Audience
from recado.storage.batches.batch_making import NewBatch, PendingBlock
from recado.storage.batches.batch_rows import Block
from recado.storage.billing import wallet
from recado.storage.billing.prices import PriceDirectory
from recado.storage.core.statements.rows import Executor


class _Priced(NamedTuple):
    """What a unit of a message holds, and counts for. `details`: its own, with its prices where they tell them."""

    coins: int
    kind: str | None
    details: str | None


class WalletTariff:
    """Prices from the table, and holds in the wallet of the environment."""

    charges: Final = True

    def __init__(self, *, prices: PriceDirectory, ids: IdSource, clock: Clock) -> None:
        self._prices = prices
        self._ids = ids
        self._clock = clock

    async def price(self, batch: NewBatch | PendingBlock, block: Block, at: datetime) -> None:
        """Give each message of the block its price. Raises `Problem` when such a message has none."""
        units, ways = block.recipients.units, POLICIES[batch.channel].ways
        details = None if ways is None else block.recipients.details
        by_phone = address_kind(batch.channel) is AddressKind.PHONE
        found: dict[tuple[str, str, str | None], _Priced] = {}
        for place, (address, kind) in enumerate(zip(block.recipients.phones, block.kinds, strict=True)):
            own = None if details is None else details[place]
            unit = (kind.price_kind, region_of(address) if by_phone else INTL, own)
            priced = found.get(unit)
            if priced is None:
                priced = found[unit] = await self._priced(batch, *unit, at)
            block.coins[place] = priced.coins if units is None else priced.coins * units[place]
            block.price_kinds[place] = priced.kind
            if details is not None:
                details[place] = priced.details

    async def estimate(
        self, batch: NewBatch, price_kind: str, audience: Audience, regions: Mapping[str, int], at: datetime
    ) -> int:
        """What a message to each of so many contacts would cost. Raises `Problem` where there is no price."""
        prices = [
            (count, await self._priced(batch, price_kind, region, audience.details, at))
            for region, count in regions.items()
            if count
        ]
        return audience.units * sum(count * price.coins for count, price in prices)

    async def _priced(
        self, batch: NewBatch | PendingBlock, price_kind: str, region: str, details: str | None, at: datetime
    ) -> "_Priced":
        organization_id, env, _ = batch.key
        own = await self._prices.price_of(organization_id, env, price_kind, region, at)
        ways = POLICIES[batch.channel].ways
        if ways is None or details is None:
            return _Priced(own.coins, own.kind, details)
        told = orjson.loads(details)
        kind = ways.other_kind(told)
        other = None if kind is None else await self._prices.price_of(organization_id, env, kind, region, at)
        told = ways.priced(told, own, other)
        return _Priced(ways.dearer(told), own.kind, orjson.dumps(told).decode())

    async def covers(self, connection: Executor, organization_id: str, env: str, coins: int) -> Problem | None:
        """The refusal when so many coins are not there; nothing is held."""
        key = (organization_id, env)
        available = (await wallet.available(connection, [key])).get(key, 0)
        return None if available >= coins else not_covered(coins, available)

    async def hold(
        self, connection: Executor, organization_id: str, env: str, coins: int, estimate: int
    ) -> Problem | None:
        """Hold `coins` when the whole `estimate` is covered; the refusal when it is not."""
        key = (organization_id, env)
        now = self._clock.now()
        if estimate <= coins and await wallet.hold(connection, self._ids, organization_id, env, coins, now=now):
            return None
        available = (await wallet.available(connection, [key])).get(key, 0)
        if estimate > coins and available >= estimate:
            if not coins or await wallet.hold(connection, self._ids, organization_id, env, coins, now=now):
                return None
            available = (await wallet.available(connection, [key])).get(key, 0)
        return not_covered(estimate, available)
