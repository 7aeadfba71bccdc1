"""Prices and monthly volumes as the hot path asks for them: from memory, at most 5 s old (C25.3).

The volumes that this process captures are known to it at once: what it captured decides the tier of its next send.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from recado.domain.billing.prices import Price, PriceRow, PriceTable, Volumes, price_in
from recado.domain.core.clock import Clock
from recado.domain.core.errors import Problem
from recado.storage.core.directory import Directory
from recado.storage.core.statements.rows import Executor, reader
from recado.storage.core.statements.sql import load

SQL = load("prices")

_A_MONTH = timedelta(days=32)

_read = reader(PriceRow)


@dataclass(frozen=True, slots=True)
class Captured:
    """The units of one organization, family and month after a commit."""

    organization_id: str
    family: str
    month: date
    units: int


class PriceDirectory:
    """What a unit costs an organization."""

    def __init__(self, executor: Executor, *, clock: Clock) -> None:
        self._executor = executor
        self._clock = clock
        self._common: Directory[None, tuple[PriceRow, ...]] = Directory(self._rows, clock=clock)
        self._tables: Directory[str, PriceTable] = Directory(self._table, clock=clock)
        self._volumes: Directory[str, Volumes] = Directory(self._read_volumes, clock=clock)

    def peek(self, organization_id: str, env: str, kind: str, region: str, at: datetime) -> Price | None:
        """The price when everything is at hand, without waiting; None says nothing."""
        table, volumes = self._tables.peek(organization_id), self._volumes.peek(organization_id)
        if table is None or volumes is None:
            return None
        return price_in(table, volumes, env=env, kind=kind, region=region, at=at)

    async def price_of(self, organization_id: str, env: str, kind: str, region: str, at: datetime) -> Price:
        """The price. Raises `Problem` ROUTE_NOT_AVAILABLE when such a unit has none."""
        table, volumes = await self.table_of(organization_id), await self.volumes_of(organization_id)
        price = price_in(table, volumes, env=env, kind=kind, region=region, at=at)
        if price is None:
            raise Problem("ROUTE_NOT_AVAILABLE", f"{kind} is not offered in the region {region}.")
        return price

    async def table_of(self, organization_id: str) -> PriceTable:
        """The organization's prices."""
        return await self._tables.get(organization_id) or PriceTable()

    async def volumes_of(self, organization_id: str) -> Volumes:
        """What the organization has captured this month."""
        return await self._volumes.get(organization_id) or Volumes(ZoneInfo("UTC"), {})

    def captured(self, changes: Iterable[Captured]) -> None:
        """A commit raised these volumes."""
        for change in changes:
            known = self._volumes.peek(change.organization_id)
            key = (change.family, change.month)
            if known is not None and known.units.get(key, 0) < change.units:
                units = {**known.units, key: change.units}
                self._volumes.refresh(change.organization_id, replace(known, units=units))

    def forget(self, organization_id: str) -> None:
        """The organization's zone or prices were changed."""
        self._tables.forget(organization_id)
        self._volumes.forget(organization_id)

    async def _table(self, organization_id: str) -> PriceTable:
        own = await self._rows(organization_id)
        return PriceTable(own, await self._common.get(None) or ())

    async def _rows(self, organization_id: str | None) -> tuple[PriceRow, ...]:
        rows = await self._executor.fetch(SQL.rows, organization_id, self._clock.now())
        return tuple(_read(row) for row in rows)

    async def _read_volumes(self, organization_id: str) -> Volumes | None:
        since = (self._clock.now() - _A_MONTH).date()
        rows = await self._executor.fetch(SQL.volumes, organization_id, since)
        if not rows:
            return None
        units = {(row["family"], row["month"]): row["units"] for row in rows if row["family"] is not None}
        return Volumes(ZoneInfo(rows[0]["time_zone"]), units)
