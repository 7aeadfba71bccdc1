"""Departures of push messages: blocks that a lane claims, and what became of their devices, many in a commit.

A block is claimed before any of its devices is sent to, and a device gets its row with its outcome. So a device of a
claimed block without a row is one whose outcome nobody knows, once the process that claimed it is gone; and so is one
that was claimed once more, and whose row still says so.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from recado.domain.push.message import PUSH_MACHINE, DispatchStatus, PushEvent, PushStatus
from recado.storage.core.statements import fence
from recado.storage.core.statements.rows import Executor, columns, reader
from recado.storage.core.statements.sql import load
from recado.storage.push import devices
from recado.storage.push.audiences import BLOCK
from recado.storage.push.messages import UNKNOWN, PushKey, PushMessage, read

SQL = load("push_departures", owner=fence.owner("$6"))

DUE_AT_ONCE: Final = 20  # messages
LEFT_AT_ONCE: Final = 20  # blocks
LEFT_DEVICES_AT_ONCE: Final = 1_000
UNTOLD: Final = "provider_error"
"""The code of a failure that has none."""

_DUE = PUSH_MACHINE.move(PushStatus.SCHEDULED, PushEvent.DUE).value
_SENDING = PUSH_MACHINE.move(PushStatus.QUEUED, PushEvent.DEPARTED).value
_COMPLETED = PUSH_MACHINE.move(PushStatus.SENDING, PushEvent.DELIVERED).value
_FAILED = PUSH_MACHINE.move(PushStatus.SENDING, PushEvent.NOT_DELIVERED).value


@dataclass(frozen=True, slots=True)
class PushLaneKey:
    """What leaves together: the devices of one app on one platform."""

    organization_id: str
    env: str
    app_id: str
    platform: str


@dataclass(frozen=True, slots=True)
class PushTarget:
    """A device that is claimed, as it stood then. `leaves` False: it is not sent to. `phone`: of its contact."""

    message_id: str
    place: int
    device_id: str
    attempts: int
    token: str
    p256dh: str | None
    auth: str | None
    phone: str | None
    leaves: bool


@dataclass(frozen=True, slots=True)
class PushClaim:
    """What a lane has claimed, and the messages of it. `blocks`: numbers by message."""

    targets: list[PushTarget]
    messages: dict[str, PushMessage]
    blocks: list[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class PushOutcome:
    """What became of a device. `due_at`: it is tried again then; queued without it: nobody knows."""

    lane: PushLaneKey
    message_id: str
    place: int
    device_id: str
    status: DispatchStatus
    code: str | None = None
    attempts: int = 0
    due_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class LeftBlock:
    """A block of a process that is gone. `unknown`: device and place of those without a row."""

    lane: PushLaneKey
    message_id: str
    number: int
    claimed_at: datetime
    dispatch_key: bytes
    unknown: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class LeftDevice:
    """A device that a process that is gone had claimed once more. `attempts`: those before."""

    lane: PushLaneKey
    message_id: str
    place: int
    device_id: str
    attempts: int
    claimed_at: datetime
    dispatch_key: bytes


@dataclass(frozen=True, slots=True)
class WaitingDevices:
    """Devices that nothing became of yet, and since when the first of them is due."""

    devices: int
    oldest_due: datetime


@dataclass(slots=True)
class Moves:
    """What a settlement moved to their ends: devices by message, with the message. `codes`: of the others."""

    message: PushMessage
    delivered: int = 0
    others: int = 0
    codes: Counter[str] = field(default_factory=Counter)


_read_lane = reader(PushLaneKey)


async def due(executor: Executor, now: datetime) -> bool:
    """Let messages leave whose time has come; answers whether there were some."""
    return bool(await executor.fetch(SQL.due, now, DUE_AT_ONCE, _DUE))


async def lanes(executor: Executor, now: datetime) -> list[PushLaneKey]:
    """By which something may leave."""
    return [_read_lane(row) for row in await executor.fetch(SQL.lanes, now)]


async def suspended(executor: Executor, organizations: Sequence[str]) -> frozenset[str]:
    """Which of these organizations have to stand still."""
    return frozenset([row["id"] for row in await executor.fetch(SQL.suspended, list(organizations))])


async def claim(connection: Executor, lane: PushLaneKey, epoch: int, now: datetime, most: int) -> PushClaim:
    """Claim some `most` devices for this process, in a transaction; those first that are due once more."""
    of = (lane.organization_id, lane.env, lane.app_id, lane.platform)
    again = await connection.fetch(SQL.claim_again, *of, now, epoch, UNKNOWN, most)
    found = [(row["message_id"], row["place"], row["device_id"], row["attempts"]) for row in again]
    blocks: list[tuple[str, int]] = []
    if len(found) < most:
        rows = await connection.fetch(SQL.claim, *of, most - len(found), epoch, now, _SENDING, PushStatus.QUEUED.value)
        for row in rows:
            blocks.append((row["message_id"], row["number"]))
            first = row["number"] * BLOCK
            found += [(row["message_id"], first + n, device, 0) for n, device in enumerate(row["devices"])]
    if not found:
        return PushClaim([], {}, [])
    ids = sorted({each[0] for each in found})
    held = await connection.fetch(SQL.hold_messages, *columns([(*of[:2], each) for each in ids], 3))
    return PushClaim(await targets(connection, lane, found), {row["id"]: read(row) for row in held}, blocks)


async def targets(
    executor: Executor, lane: PushLaneKey, found: Sequence[tuple[str, int, str, int]]
) -> list[PushTarget]:
    """How claimed (message, place, device, attempts) stand now."""
    rows = await executor.fetch(SQL.targets, lane.organization_id, lane.env, [each[2] for each in found])
    return [
        PushTarget(*each, row["token"] or "", row["p256dh"], row["auth"], row["phone"], row["leaves"])
        for each, row in zip(found, rows, strict=True)
    ]


class NotOurs(Exception):
    """Another process owns the queue, or is about to: nothing was put back."""


async def settle(connection: Executor, outcomes: Sequence[PushOutcome], epoch: int, now: datetime) -> list[Moves]:
    """Write outcomes, in a transaction; answers what moved. Those of a message that is over are lost.

    A process that is not the owner any more puts nothing back, as the owner may have called for it by now: `NotOurs`.
    """
    if any(o.due_at is not None for o in outcomes) and not await fence.owns(connection, epoch):
        raise NotOurs
    keys = [(o.lane.organization_id, o.lane.env, o.message_id) for o in outcomes]
    held = {row["id"]: Moves(read(row)) for row in await connection.fetch(SQL.hold_messages, *columns(keys, 3))}
    last = {(o.message_id, o.place): o for o in outcomes if o.message_id in held}
    if not last:
        return []
    rows = [
        (
            o.lane.organization_id, o.lane.env, o.message_id, o.place, o.device_id, o.lane.app_id, o.lane.platform,
            o.status.value, o.code, o.attempts, o.due_at,
        )
        for o in sorted(last.values(), key=lambda o: (o.message_id, o.place))
    ]  # fmt: skip
    moved = [
        row for row in await connection.fetch(SQL.settle, *columns(rows, 11)) if row["status"] != DispatchStatus.QUEUED
    ]
    if not moved:
        return []
    counts: Counter[tuple[str, str, str, str, str]] = Counter()
    for row in moved:
        counts[row["organization_id"], row["env"], row["message_id"], row["platform"], row["status"]] += 1
        moves = held[row["message_id"]]
        if row["status"] == DispatchStatus.DELIVERED:
            moves.delivered += 1
        else:
            moves.others += 1
            moves.codes[last[row["message_id"], row["place"]].code or UNTOLD] += 1
    by_platform = sorted({key[:4] for key in counts})
    final = (DispatchStatus.DELIVERED, DispatchStatus.FAILED, DispatchStatus.UNREGISTERED)
    gains = [(*key, *(counts[(*key, status.value)] for status in final)) for key in by_platform]
    await connection.execute(SQL.count, *columns(gains, 7))
    finished = columns(sorted({key[:3] for key in by_platform}), 3)
    await connection.execute(SQL.finish, *finished, _COMPLETED, _FAILED, now)
    gone = {
        (row["organization_id"], row["env"], row["device_id"])
        for row in moved
        if row["status"] == DispatchStatus.UNREGISTERED
    }
    if gone:
        await devices.invalidate(connection, sorted(gone), now)
    return [moves for moves in held.values() if moves.delivered or moves.others]


async def over(executor: Executor, lane: PushLaneKey, blocks: Sequence[tuple[str, int]]) -> None:
    """Each device of these blocks has its row."""
    rows = [(lane.organization_id, lane.env, *block) for block in sorted(blocks)]
    await executor.execute(SQL.over, *columns(rows, 4))


async def waiting(executor: Executor, organization_id: str, env: str) -> dict[tuple[str, str], WaitingDevices]:
    """What is due, by environment and platform; of the whole installation where `organization_id` is empty."""
    rows = await executor.fetch(SQL.waiting, organization_id, env)
    return {(row["env"], row["platform"]): WaitingDevices(row["devices"], row["oldest_due"]) for row in rows}


async def left_claimed(executor: Executor, own: int | None, lane: PushLaneKey | None) -> list[LeftBlock]:
    """Some of the blocks of dead epochs, and of `own`, that are not over; by this lane or by any."""
    return [
        LeftBlock(
            PushLaneKey(row["organization_id"], row["env"], row["app_id"], row["platform"]),
            row["message_id"],
            row["number"],
            row["claimed_at"],
            row["dispatch_key"],
            tuple((device, int(place)) for device, _, place in (each.partition(" ") for each in row["unknown"])),
        )
        for row in await executor.fetch(SQL.left_claimed, own, LEFT_AT_ONCE, *_named(lane))
    ]


async def left_claimed_again(executor: Executor, own: int | None, lane: PushLaneKey | None) -> list[LeftDevice]:
    """Some of the devices claimed once more in dead epochs, and in `own`, and not settled; by this lane or by any."""
    rows = await executor.fetch(SQL.left_claimed_again, own, LEFT_DEVICES_AT_ONCE, *_named(lane))
    return [LeftDevice(PushLaneKey(*row[:4]), *row[4:]) for row in map(tuple, rows)]


def _named(lane: PushLaneKey | None) -> tuple[str | None, ...]:
    return (None,) * 4 if lane is None else (lane.organization_id, lane.env, lane.app_id, lane.platform)


async def expired(executor: Executor, before: datetime) -> list[PushKey]:
    """Messages that were due before this moment, and of which something is left."""
    return [
        (row["organization_id"], row["env"], row["id"])
        for row in await executor.fetch(SQL.expired, before, DUE_AT_ONCE)
    ]


async def expire(connection: Executor, key: PushKey, now: datetime) -> int:
    """Give up what is left of a message that the transaction holds; answers how many devices that was."""
    left: int = await connection.fetchval(SQL.left_of, *key) or 0
    await connection.execute(SQL.expire, *key, _COMPLETED, _FAILED, now)
    return left
