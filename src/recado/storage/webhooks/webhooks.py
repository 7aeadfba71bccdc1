"""Webhook subscriptions: records, changes, and the cached answer to "who takes this event?" (C23.1, C23.2).

Secrets and custom headers are stored encrypted; who reads them decrypts with the installation's keys.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final

from recado.domain.core.clock import Clock
from recado.domain.core.events import EVENT_NAMES, EVERY
from recado.domain.core.ids import Identified
from recado.domain.webhooks.webhook import (
    MAX_AGE,
    MAX_SUBSCRIPTIONS,
    SubscriptionHealth,
    SubscriptionKey,
    SubscriptionStatus,
)
from recado.storage.core.directory import Directory
from recado.storage.core.statements.rows import Executor, columns
from recado.storage.core.statements.sql import load
from recado.storage.core.statements.tables import Limit, Table

DELETED_ARE_LISTED = timedelta(days=90)
SECRET_FIELD, HEADERS_FIELD = "webhook_secret", "webhook_headers"

QUEUES = frozenset({SubscriptionStatus.ACTIVE, SubscriptionStatus.FAILING})
"""Those that have new events queued, and their deliveries made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription(Identified):
    """One subscription. `deleted_at`: revoked for good. Ciphers: `KeyRing` values, bound to the fields above."""

    organization_id: str
    id: str
    env: str
    url: str = field(repr=False)  # its query may hold a credential
    secret_cipher: str = field(repr=False)
    secret_version: int = 1
    previous_secret_cipher: str | None = field(default=None, repr=False)
    previous_secret_until: datetime | None = None
    headers_cipher: str | None = field(default=None, repr=False)
    events: tuple[str, ...]
    description: str | None = None
    include_pii: bool = False
    max_attempts: int = 8
    backoff_seconds: int = 30
    status: SubscriptionStatus = SubscriptionStatus.ACTIVE
    created_by_id: str | None = None
    consecutive_failures: int = 0
    first_failure_at: datetime | None = None
    last_success_at: datetime | None = None
    last_failure_at: datetime | None = None
    failing_since: datetime | None = None
    probe_at: datetime | None = None
    probe_seconds: int = 0
    deleted_at: datetime | None = None
    revision: int = 1
    updated_at: datetime

    @property
    def key(self) -> SubscriptionKey:
        return SubscriptionKey(self.organization_id, self.id)

    @property
    def health(self) -> SubscriptionHealth:
        """How its endpoint fares, as far as it is stored."""
        return SubscriptionHealth(
            self.status,
            self.consecutive_failures,
            self.first_failure_at,
            self.last_success_at,
            self.last_failure_at,
            self.failing_since,
            self.probe_at,
            self.probe_seconds,
        )

    def with_health(self, health: SubscriptionHealth) -> "Subscription":
        """The subscription after its status moved; the moments of success and failure stay as they are stored."""
        return replace(
            self,
            status=health.status,
            consecutive_failures=health.consecutive_failures,
            first_failure_at=health.first_failure_at,
            failing_since=health.failing_since,
            probe_at=health.probe_at,
            probe_seconds=health.probe_seconds,
        )


SUBSCRIPTIONS: Final = Table(
    "webhook_subscriptions",
    Subscription,
    "subscription",
    own=load("webhooks"),
    convert={"events": tuple, "status": SubscriptionStatus},
    limit=Limit(MAX_SUBSCRIPTIONS, "subscriptions"),
)
SQL = SUBSCRIPTIONS.sql
get_locked, insert, save = SUBSCRIPTIONS.get_locked, SUBSCRIPTIONS.insert, SUBSCRIPTIONS.save


async def get(executor: Executor, organization_id: str, env: str | None, subscription_id: str) -> Subscription | None:
    """The subscription; `env` None: of whichever environment."""
    if env is not None:
        return await SUBSCRIPTIONS.get(executor, organization_id, env, subscription_id)
    row = await executor.fetchrow(SQL.of_organization, organization_id, subscription_id)
    return SUBSCRIPTIONS.read(row) if row else None


async def of_keys(executor: Executor, keys: Collection[SubscriptionKey]) -> dict[SubscriptionKey, Subscription]:
    """Those of these subscriptions that there are."""
    rows = await executor.fetch(SQL.of_keys, *columns(sorted(keys), 2))
    return {found.key: found for found in map(SUBSCRIPTIONS.read, rows)}


@dataclass(frozen=True, slots=True)
class HealthNote:
    """What a subscription's actor found out about `url`. `expected`: the status that it believes to be stored."""

    key: SubscriptionKey
    url: str = field(repr=False)
    expected: SubscriptionStatus
    health: SubscriptionHealth


async def note_health(executor: Executor, notes: Sequence[HealthNote], now: datetime) -> list[bool]:
    """Write how endpoints fare; False where status or address was changed by another, whose word stands."""
    ordered = sorted(notes, key=lambda note: note.key)  # one order of locks for all
    rows = [
        (
            *note.key,
            note.expected,
            note.health.status,
            note.health.consecutive_failures,
            note.health.first_failure_at,
            note.health.last_success_at,
            note.health.last_failure_at,
            note.health.failing_since,
            note.health.probe_at,
            note.health.probe_seconds,
            note.url,
        )
        for note in ordered
    ]
    written = {row["id"] for row in await executor.fetch(SQL.note_health, *columns(rows, 12), now)}
    return [note.key.subscription_id in written for note in notes]


async def all_keys(executor: Executor) -> list[SubscriptionKey]:
    """Every subscription there is, for what is done to each in turn."""
    return [SubscriptionKey(row["organization_id"], row["id"]) for row in await executor.fetch(SQL.all_ids)]


async def given_up(executor: Executor, now: datetime) -> list[SubscriptionKey]:
    """Those that have been failing for 72 hours (C23.2)."""
    return [
        SubscriptionKey(row["organization_id"], row["id"]) for row in await executor.fetch(SQL.given_up, now - MAX_AGE)
    ]


async def purge(executor: Executor, now: datetime) -> None:
    """Remove those that were deleted 90 days ago (C23.2)."""
    await executor.execute(SQL.purge, now - DELETED_ARE_LISTED)


@dataclass(frozen=True, slots=True)
class Takers:
    """Who takes what in one environment. An event that is not in `by_event` is taken by nobody and is not logged.

    The subscriptions there have it queued; none are where all that take it are paused or revoked (C23.3.1).
    """

    by_event: Mapping[str, tuple[str, ...]]


def takers_of(rows: Sequence[Mapping[str, Any]]) -> Takers:
    """From the rows of `of_environment`."""
    by_event: dict[str, tuple[str, ...]] = {}
    for row in rows:
        mine = (row["id"],) if SubscriptionStatus(row["status"]) in QUEUES else ()
        for event in EVENT_NAMES if EVERY in row["events"] else row["events"]:
            by_event[event] = (*by_event.get(event, ()), *mine)
    return Takers(by_event)


class SubscriptionDirectory(Directory[tuple[str, str], Takers]):
    """Takers by (organization, environment), read through, at most 5 s old; `peek` answers without waiting."""

    def __init__(self, executor: Executor, *, clock: Clock) -> None:
        async def load(key: tuple[str, str]) -> Takers:
            return takers_of(await executor.fetch(SQL.of_environment, *key))

        super().__init__(load, clock=clock)
