"""What the messages of batches cost, and their holds, a block at a time (C25.2.3)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from recado.domain.billing.prices import INTL, Price, region_of
from recado.domain.channels.address import AddressKind
from recado.domain.channels.policies import address_kind
from recado.domain.core.clock import Clock
from recado.domain.core.errors import Problem
from recado.domain.core.ids import IdSource
from recado.services.messages.admission import not_covered
from recado.storage.batches.batch_making import NewBatch, PendingBlock
from recado.storage.batches.batch_rows import Block
from recado.storage.billing import wallet
from recado.storage.billing.prices import PriceDirectory
from recado.storage.core.rows import Executor


class WalletTariff:
    """Prices from the table, and holds in the wallet of the environment."""

    charges: Final = True

    def __init__(self, *, prices: PriceDirectory, ids: IdSource, clock: Clock) -> None:
        self._prices = prices
        self._ids = ids
        self._clock = clock

    async def price(self, batch: NewBatch | PendingBlock, block: Block, at: datetime) -> None:
        """Give each message of the block its price. Raises `Problem` when such a message has none."""
        organization_id, env, _ = batch.key
        units = block.recipients.units
        by_phone = address_kind(batch.channel) is AddressKind.PHONE
        found: dict[tuple[str, str], Price] = {}
        for place, (address, kind) in enumerate(zip(block.recipients.phones, block.kinds, strict=True)):
            unit = (kind.price_kind, region_of(address) if by_phone else INTL)
            price = found.get(unit)
            if price is None:
                price = found[unit] = await self._prices.price_of(organization_id, env, *unit, at)
            block.coins[place] = price.coins if units is None else price.coins * units[place]
            block.price_kinds[place] = price.kind

    async def estimate(self, batch: NewBatch, price_kind: str, regions: Mapping[str, int], at: datetime) -> int:
        """What so many messages of one unit to each region would cost. Raises `Problem` where there is no price."""
        organization_id, env, _ = batch.key
        prices = [
            (count, await self._prices.price_of(organization_id, env, price_kind, region, at))
            for region, count in regions.items()
            if count
        ]
        return sum(count * price.coins for count, price in prices)

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
