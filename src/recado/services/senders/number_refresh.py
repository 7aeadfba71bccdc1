"""What providers say of numbers: the verification of new ones, the look every 15 minutes, and reports (C14.2, C14.3).

A number's row says when it is looked at next; anyone who takes it sets the next turn first: a crash only delays it.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import structlog

from recado.channels.core.adapters import AdminFor
from recado.channels.core.errors import ProviderError
from recado.channels.core.events import NumberNews as NumberReport
from recado.channels.core.provider import NumberHealth
from recado.domain.core.clock import Clock
from recado.domain.core.errors import Problem
from recado.domain.core.ids import IdSource
from recado.domain.core.phones import canonical_phone
from recado.domain.messages.changes import NumberChanged, OnChange
from recado.domain.senders.number import (
    NUMBER_MACHINE,
    MessagingTier,
    NumberEvent,
    NumberStatus,
    QualityRating,
    reported_event,
)
from recado.services.effects.record_events import announce, number_moved
from recado.services.senders.accounts import account_of
from recado.storage.core.connections.changing import changing
from recado.storage.core.connections.postgres import Database
from recado.storage.core.crypto import KeyRing
from recado.storage.senders import numbers
from recado.storage.senders.numbers import REFRESH_EVERY, Number

ASK_AGAIN = timedelta(seconds=60)  # a number that is not verified yet, or a provider that did not answer
CLOCKS_APART = timedelta(seconds=60)  # the provider's from ours, and its whole seconds
BLOCK = 100
AT_ONCE = 20

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Checked:
    """A number after its provider was asked; without an answer `health` is None and `error` says why."""

    number: Number
    health: NumberHealth | None
    error: str | None = None


class NumberRefresh:
    """Asks providers and writes what they say.

    `run` is one pass over what is due in one environment, to be called every second; live and test have passes of their
    own, so that a provider that does not answer holds up no sandbox.
    """

    def __init__(
        self,
        database: Database,
        *,
        clock: Clock,
        ids: IdSource,
        keys: KeyRing,
        provider_for: AdminFor,
        changed: OnChange,
    ) -> None:
        self._database = database
        self._clock = clock
        self._ids = ids
        self._keys = keys
        self._provider_for = provider_for
        self._changed = changed

    async def run(self, env: str) -> None:
        """Ask about every number that is due, a few at once."""
        while due := await numbers.claim_due(self._database, env, self._clock.now(), lease=ASK_AGAIN, limit=BLOCK):
            turns = asyncio.Semaphore(AT_ONCE)
            results = await asyncio.gather(*(self._turn(turns, number) for number in due), return_exceptions=True)
            for failure in results:
                if isinstance(failure, BaseException):
                    _log.error("number_refresh_failed", error=type(failure).__name__)
            if len(due) < BLOCK:
                return

    async def _turn(self, turns: asyncio.Semaphore, number: Number) -> None:
        async with turns:
            await self.check(number)

    async def check(self, number: Number, *, patience: float | None = None) -> Checked:
        """Ask the provider about one number and store its answer.

        `patience`: seconds for the provider, where the adapter's own are too many. An answer that came is stored.
        """
        provider = self._provider_for(number.env)
        if provider is None:
            return Checked(number, None, "no provider is configured for this environment")
        try:
            async with asyncio.timeout(patience):
                health = await provider.number_health(account_of(number, self._keys))
        except TimeoutError:
            return Checked(number, None, "the provider did not answer in time")
        except ProviderError as error:
            stored = number
            if error.kind == "refused" and number.status is NumberStatus.PENDING:
                stored = await self._store(number, lambda at, now: with_refusal(at))
            return Checked(stored, None, f"the provider did not answer: {error.code}")
        return Checked(await self._store(number, lambda at, now: with_health(at, health, now)), health)

    async def report(self, env: str, news: NumberReport) -> None:
        """Store what a provider reports by itself; news of a number that is not here is dropped."""
        for number in await self._meant(env, news):
            await self._store(number, lambda at, now: with_report(at, news, now))

    async def _meant(self, env: str, news: NumberReport) -> Sequence[Number]:
        """The numbers that a report is about: one, or all of a business account."""
        if news.account is not None:
            number = await numbers.by_provider_id(self._database, env, news.account)
            return [] if number is None else [number]
        if news.business_account is None:
            return []
        siblings = await numbers.of_business_account(self._database, env, news.business_account)
        if news.phone is None:
            return siblings
        try:
            phone = canonical_phone(news.phone if news.phone.startswith("+") else f"+{news.phone}")
        except Problem:
            return []
        return [number for number in siblings if number.display_phone == phone]

    async def _store(self, number: Number, change: Callable[[Number, datetime], Number]) -> Number:
        now = self._clock.now()
        told = NumberChanged(number.organization_id, number.env, number.id)
        async with changing(self._database, self._changed, told) as connection:
            before = await numbers.get_locked(connection, number.organization_id, number.env, number.id)
            if before is None:  # deleted meanwhile
                return number
            after = await numbers.save(connection, before, change(before, now), now)
            queued = await number_moved(connection, self._ids, before, after, self._keys)
        if after.revision != before.revision:
            self._changed(told)
            announce(self._changed, queued)
        return after


def with_refusal(number: Number) -> Number:
    """The number after the provider refused to verify it; only a pending one is moved."""
    return with_event(number, NumberEvent.REFUSED) if number.status is NumberStatus.PENDING else number


def with_event(number: Number, event: NumberEvent) -> Number:
    """The number moved by an event; raises `IllegalMove` when its state does not know it."""
    return replace(number, status=NUMBER_MACHINE.move(number.status, event))


def with_health(number: Number, health: NumberHealth, now: datetime) -> Number:
    """The number as the provider describes it; what the provider does not say stands."""
    event = None
    if health.verified and number.status is NumberStatus.PENDING:
        event = NumberEvent.VERIFIED
    elif health.status is not None:
        event = reported_event(number.status, NumberStatus(health.status))
    moved = number if event is None else with_event(number, event)
    pending = moved.status is NumberStatus.PENDING
    return replace(
        moved,
        quality_rating=QualityRating(health.quality_rating or number.quality_rating),
        messaging_tier=MessagingTier(health.messaging_tier or number.messaging_tier),
        name_status=health.name_status or number.name_status,
        verified_name=health.verified_name or number.verified_name,
        profile=number.profile if health.profile is None else dict(health.profile),
        last_provider_sync_at=now,
        verify_at=now + (ASK_AGAIN if pending else REFRESH_EVERY),
    )


def with_report(number: Number, news: NumberReport, now: datetime) -> Number:
    """The number after a report. The mark of a removal never moves the status (C14.2).

    A report that comes late, after the provider has said how the number is, changes nothing: a loss of days ago would
    take a number out of service that is connected again.
    """
    told_at = number.last_provider_sync_at
    if told_at is not None and news.at + CLOCKS_APART < told_at:
        return number
    event = None if news.status is None else reported_event(number.status, NumberStatus(news.status))
    moved = number if event is None else with_event(number, event)
    if news.partner_removed is not None:
        moved = replace(moved, partner_removed_at=news.at, partner_removed_reason=news.partner_removed)
    return replace(
        moved,
        quality_rating=QualityRating(news.quality or number.quality_rating),
        messaging_tier=MessagingTier(news.tier or number.messaging_tier),
        name_status=news.name_status or number.name_status,
        last_provider_sync_at=now,
    )
