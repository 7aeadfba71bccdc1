"""What operators are shown of what is stored: numbers, their queues and usage, backlogs of webhooks."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from recado.domain.core.ids import created_at
from recado.domain.messages.message import CLASSES, WaitReason
from recado.storage.access.organizations import SUSPENDED
from recado.storage.core.statements.rows import Executor, columns
from recado.storage.core.statements.sql import load
from recado.storage.ops.scope import INSTALLATION, Scope

SQL = load("ops")

LARGE_CALLBACK: Final = 64 * 1024
"""Bytes; what is larger is read in a process apart."""
NUMBERS_AT_ONCE: Final = 500
MOST_COUNTED: Final = 10_001
"""Deliveries of a subscription: beyond, there are at least so many."""

SenderId = tuple[str, str]  # organization, sender


@dataclass(slots=True)
class SenderQueue:
    """What waits of one sender. `due`: by class, what is due; `first`: of each class, reason (None: it is ready), due
    time and the moment until which it is held.
    """

    env: str
    channel: str
    due: list[int] = field(default_factory=lambda: [0] * len(CLASSES))
    scheduled: int = 0
    under_way: int = 0
    uncertain: int = 0
    oldest_due: datetime | None = None
    first: dict[int, tuple[datetime, str | None, datetime | None]] = field(default_factory=dict)

    def add(self, row: Mapping[str, Any]) -> None:
        """Take in what was counted of one class and reason."""
        reason, count, due_at = row["reason"], row["messages"], row["first_due"]
        if reason == WaitReason.UNCERTAIN:
            self.uncertain += count
        elif row["claimed"]:
            self.under_way += count
        elif reason == WaitReason.SCHEDULED:
            self.scheduled += count
        else:
            klass = row["class"]
            self.due[klass] += count
            if self.oldest_due is None or due_at < self.oldest_due:
                self.oldest_due = due_at
            head = self.first.get(klass)
            if head is None or due_at < head[0]:
                self.first[klass] = (due_at, reason, row["first_release"])


@dataclass(frozen=True, slots=True)
class SubscriptionBacklog:
    """What waits for a subscription; `backlog` up to `MOST_COUNTED`."""

    organization_id: str
    env: str
    id: str
    status: str
    probe_at: datetime | None
    backlog: int
    oldest_at: datetime | None


@dataclass(frozen=True, slots=True)
class QueueTotals:
    """What has not left of a class of a channel, by what holds it: `ready` and `sending` where nothing does.

    `oldest_due`: of what is not under way; it may lie ahead.
    """

    channel: str
    klass: int
    reason: str
    messages: int
    oldest_due: datetime | None


@dataclass(frozen=True, slots=True)
class ChangedNumbers:
    """How many `numbers` a scope has, which were `changed`, deleted ones too, and which organizations are suspended.

    `changed`: None where they are more than are read at once.
    """

    numbers: int
    changed: Sequence[SenderId] | None
    suspended: frozenset[str]


@dataclass(frozen=True, slots=True)
class Backlogs:
    """Deliveries that are not settled, and callbacks that are not processed, of which `large_callbacks` are large."""

    deliveries: int
    callbacks: int
    large_callbacks: int


async def numbers(executor: Executor, scope: Scope, after: SenderId = ("", "")) -> Sequence[Mapping[str, Any]]:
    """The next numbers of the scope after one, as rows: there may be thousands."""
    rows: Sequence[Mapping[str, Any]]
    if scope.whole:
        rows = await executor.fetch(SQL.all_numbers, *after, NUMBERS_AT_ONCE)
    else:
        rows = await executor.fetch(SQL.numbers, scope.organization_id, scope.env, after[1], NUMBERS_AT_ONCE)
    return rows


async def numbers_of(executor: Executor, senders: Sequence[SenderId]) -> Sequence[Mapping[str, Any]]:
    """Those of these numbers that there are, as `numbers`."""
    rows: Sequence[Mapping[str, Any]] = await executor.fetch(SQL.numbers_of, *columns(senders, 2))
    return rows


async def changes(executor: Executor, scopes: Sequence[Scope], since: datetime) -> dict[Scope, ChangedNumbers]:
    """What has changed among the numbers of these scopes since a moment; the whole installation is read by itself."""
    about = (since, SUSPENDED, NUMBERS_AT_ONCE + 1)
    if INSTALLATION in scopes:
        return {INSTALLATION: _changed(await executor.fetchrow(SQL.all_changes, *about))}
    rows = await executor.fetch(SQL.changes, *_named(scopes), *about)
    return {Scope(row["organization_id"], row["env"]): _changed(row) for row in rows}


def _changed(row: Mapping[str, Any]) -> ChangedNumbers:
    changed = list(zip(row["organization_ids"] or (), row["ids"] or (), strict=True))
    return ChangedNumbers(
        row["numbers"], changed if len(changed) <= NUMBERS_AT_ONCE else None, frozenset(row["suspended"])
    )


async def number(executor: Executor, organization_id: str, env: str, number_id: str) -> Mapping[str, Any] | None:
    """One of them."""
    row: Mapping[str, Any] | None = await executor.fetchrow(SQL.number, organization_id, env, number_id)
    return row


async def owner_of_number(executor: Executor, number_id: str) -> tuple[str, str] | None:
    """Organization and environment."""
    row = await executor.fetchrow(SQL.owner_of_number, number_id)
    return None if row is None else (row["organization_id"], row["env"])


async def queues(executor: Executor, scopes: Sequence[Scope]) -> dict[Scope, dict[SenderId, SenderQueue]]:
    """What waits of each sender that has something, by scope; the whole installation is read by itself."""
    if INSTALLATION in scopes:
        return {INSTALLATION: _queues(await executor.fetch(SQL.all_queues))}
    rows = _by_scope(scopes, await executor.fetch(SQL.queues, *_named(scopes)))
    return {scope: _queues(some) for scope, some in rows.items()}


async def queue_of(executor: Executor, organization_id: str, sender_id: str) -> SenderQueue | None:
    """What waits of one; None: nothing."""
    found = _queues(await executor.fetch(SQL.queue_of_sender, organization_id, sender_id))
    return found.get((organization_id, sender_id))


async def usage(executor: Executor, senders: Sequence[SenderId], since: datetime) -> dict[str, tuple[int, int]]:
    """Messages and first recipients since then, by the id of the number."""
    rows = await executor.fetch(SQL.usage, *columns(senders, 2), since)
    return {row["id"]: (row["sent"], row["recipients"]) for row in rows}


async def minutes(executor: Executor, organization_id: str, sender_id: str, since: datetime) -> dict[datetime, int]:
    """Messages that left, by minute, since a whole one."""
    rows = await executor.fetch(SQL.minutes, organization_id, sender_id, since)
    return {row["minute"]: row["sent"] for row in rows}


async def subscriptions(executor: Executor, scopes: Sequence[Scope]) -> dict[Scope, list[SubscriptionBacklog]]:
    """Each with what waits for it, by scope; the whole installation is read by itself."""
    if INSTALLATION in scopes:
        rows = {INSTALLATION: await executor.fetch(SQL.all_subscriptions, MOST_COUNTED)}
    else:
        rows = _by_scope(scopes, await executor.fetch(SQL.subscriptions, *_named(scopes), MOST_COUNTED))
    return {scope: [_subscription(row) for row in some] for scope, some in rows.items()}


async def queue_totals(executor: Executor) -> list[QueueTotals]:
    """Of the whole installation."""
    return [QueueTotals(*row.values()) for row in await executor.fetch(SQL.queue_totals)]


async def backlogs(executor: Executor) -> Backlogs:
    """Of the whole installation."""
    return Backlogs(**await executor.fetchrow(SQL.backlogs, LARGE_CALLBACK))


async def subscription_ids(executor: Executor, scope: Scope) -> frozenset[str]:
    """Of an environment."""
    rows = await executor.fetch(SQL.subscription_ids, scope.organization_id, scope.env)
    return frozenset(row["id"] for row in rows)


def _named(scopes: Sequence[Scope]) -> list[list[Any]]:
    return columns([(scope.organization_id, scope.env) for scope in scopes], 2)


def _by_scope(scopes: Iterable[Scope], rows: Iterable[Mapping[str, Any]]) -> dict[Scope, list[Mapping[str, Any]]]:
    found: dict[Scope, list[Mapping[str, Any]]] = {scope: [] for scope in scopes}
    for row in rows:
        found[Scope(row["organization_id"], row["env"])].append(row)
    return found


def _subscription(row: Mapping[str, Any]) -> SubscriptionBacklog:
    return SubscriptionBacklog(
        row["organization_id"], row["env"], row["id"], row["status"], row["probe_at"], row["backlog"],
        None if row["oldest_id"] is None else created_at(row["oldest_id"]),
    )  # fmt: skip


def _queues(rows: Iterable[Mapping[str, Any]]) -> dict[SenderId, SenderQueue]:
    found: dict[SenderId, SenderQueue] = {}
    for row in rows:
        key = (row["organization_id"], row["sender_id"])
        queue = found.get(key)
        if queue is None:
            queue = found[key] = SenderQueue(row["env"], row["channel"])
        queue.add(row)
    return found
