"""Push messages as rows: stored with their audience, read, listed, canceled; and who opened (C22.3)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from recado.domain.core.ids import Identified
from recado.domain.push.message import PUSH_MACHINE, PushContent, PushEvent, PushStatus, RateKind
from recado.storage.core.statements.rows import Executor, columns, reader
from recado.storage.core.statements.sql import load

SQL = load("push_messages")

PushKey = tuple[str, str, str]
"""Organization, environment and message."""

UNKNOWN: Final = "outcome_unknown"

_DEFERRED: Final = PUSH_MACHINE.move(PushStatus.QUEUED, PushEvent.DEFERRED).value
_NOT_BEGUN: Final = [_DEFERRED, *(status.value for status in PUSH_MACHINE.sources(PushEvent.DEFERRED))]


@dataclass(frozen=True, slots=True, kw_only=True)
class PushMessage(Identified):
    """One send. `unit_coins`: of a device; `billed` False: nothing was held; `dispatch_key`: of its devices' ids."""

    organization_id: str
    env: str
    id: str
    status: PushStatus
    open: bool
    origin: str
    rate_kind: RateKind
    unit_coins: int
    billed: bool
    reach: int
    title: str | None
    body: str | None
    platforms: tuple[str, ...]
    deep_link: str | None
    image_url: str | None
    actions: Sequence[Mapping[str, Any]]
    data: Mapping[str, Any] | None
    segment: str | None
    campaign_id: str | None
    metadata: Mapping[str, Any] | None
    dispatch_key: bytes
    scheduled_at: datetime | None
    quiet_deferred_to: datetime | None
    due_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    created_by_id: str | None
    updated_at: datetime

    @property
    def key(self) -> PushKey:
        return self.organization_id, self.env, self.id

    @property
    def content(self) -> PushContent:
        return PushContent(
            title=self.title, body=self.body, deep_link=self.deep_link, image_url=self.image_url, actions=self.actions,
            data=self.data,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class PushCounts:
    """What became of the devices of one platform, as far as it is known."""

    platform: str
    reach: int
    delivered: int
    opened: int
    failed: int
    unregistered: int


@dataclass(frozen=True, slots=True)
class PushDispatch:
    """One device of a message, by its place."""

    place: int
    device_id: str
    platform: str
    status: str
    opened_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PushFilter:
    """Which messages a list holds."""

    organization_id: str
    env: str
    statuses: Sequence[str] | None
    origins: Sequence[str] | None
    first_id: str
    before_id: str


read = reader(PushMessage, status=PushStatus, rate_kind=RateKind, platforms=tuple)
_read_counts = reader(PushCounts)
_read_dispatch = reader(PushDispatch)


async def insert(connection: Executor, new: PushMessage) -> None:
    """Store it; its audience is fixed in the same transaction."""
    await connection.execute(
        *SQL.bind("insert", new, status=new.status.value, rate_kind=new.rate_kind.value, platforms=list(new.platforms),
                  actions=list(new.actions))
    )  # fmt: skip


async def bind_key(connection: Executor, new: PushMessage, key_hash: bytes, fingerprint: bytes, now: datetime) -> bool:
    """Bind an Idempotency-Key to the message, before anything else of it; False when the key is taken (C6.2)."""
    bound = await connection.fetchval(SQL.bind_key, new.organization_id, new.env, key_hash, fingerprint, now, new.id)
    return bound is not None


async def get(executor: Executor, organization_id: str, env: str, message_id: str) -> PushMessage | None:
    """The message."""
    row = await executor.fetchrow(SQL.by_id, organization_id, env, message_id)
    return None if row is None else read(row)


async def get_locked(connection: Executor, key: PushKey) -> PushMessage | None:
    """As `get`, and nobody else moves it until the commit."""
    row = await connection.fetchrow(SQL.by_id_locked, *key)
    return None if row is None else read(row)


async def counts(executor: Executor, messages: Sequence[PushMessage]) -> dict[str, list[PushCounts]]:
    """What became of their devices, by message."""
    found: dict[str, list[PushCounts]] = {message.id: [] for message in messages}
    for row in await executor.fetch(SQL.counts, *columns([message.key for message in messages], 3)):
        found[row["message_id"]].append(_read_counts(row))
    return found


async def list_page(executor: Executor, wanted: PushFilter, limit: int) -> list[PushMessage]:
    """Newest first."""
    return [read(row) for row in await executor.fetch(*SQL.bind("page", wanted, limit=limit))]


async def dispatches(executor: Executor, key: PushKey, before: int, limit: int) -> list[PushDispatch]:
    """Devices of the message before a place, the last first."""
    return [_read_dispatch(row) for row in await executor.fetch(SQL.dispatches, *key, before, limit)]


async def cancel(connection: Executor, message: PushMessage, now: datetime) -> None:
    """Let nothing of it leave, in the transaction that holds it. Raises `IllegalMove`."""
    status = PUSH_MACHINE.move(message.status, PushEvent.CANCELED)
    await connection.execute(SQL.end, *message.key, status.value, now)


async def make_up(
    connection: Executor, organization_id: str, since: datetime, now: datetime, quiet_until: datetime | None
) -> None:
    """The organization stood still since then, and goes on now: that time is none of its messages' day (C22.3).

    `quiet_until`: it goes on in its quiet hours, and what has not begun waits for their end.
    """
    await connection.execute(
        SQL.make_up, organization_id, since, now, quiet_until, _NOT_BEGUN, RateKind.SILENT.value, _DEFERRED
    )


# Opens --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Openable:
    """A message that a dispatch may be of."""

    organization_id: str
    env: str
    id: str
    dispatch_key: bytes


_read_openable = reader(Openable)


async def openable(executor: Executor, asked: Sequence[tuple[str, str, str, str]]) -> list[list[Openable]]:
    """For each (organization, environment, first and last id): the messages between."""
    found: list[list[Openable]] = [[] for _ in asked]
    for row in await executor.fetch(SQL.openable, *columns(list(asked), 4)):
        found[row["n"] - 1].append(_read_openable(row))
    return found


@dataclass(frozen=True, slots=True)
class DispatchOpened:
    """When a dispatch was opened first; None: it is not delivered. `counted`: just now."""

    opened_at: datetime | None
    counted: bool


async def open_dispatches(
    connection: Executor, asked: Sequence[tuple[str, str, str, int]], now: datetime
) -> dict[tuple[str, int], DispatchOpened]:
    """Note that (organization, environment, message, place) were opened: the first time counts; by message and place.

    A place that no device has is absent.
    """
    given = columns(sorted(set(asked)), 4)
    fresh = {(row["message_id"], row["place"]) for row in await connection.fetch(SQL.open, *given, now)}
    if fresh:
        told = columns(sorted(each for each in set(asked) if each[2:] in fresh), 4)
        if people := [tuple(row) for row in await connection.fetch(SQL.lock_contacts, *told)]:
            await connection.execute(SQL.touch, *columns(people, 3), now)
    return {
        (row["message_id"], row["place"]): DispatchOpened(row["opened_at"], (row["message_id"], row["place"]) in fresh)
        for row in await connection.fetch(SQL.opened, *given)
    }
