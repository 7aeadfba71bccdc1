"""Devices as rows: many registrations in a statement, opt-outs, the list and its sums (C22.2)."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from typing import Final

from recado.domain.core.ids import Identified
from recado.domain.push.device import DEVICE_MACHINE, DeviceEvent, DeviceStatus
from recado.storage.core.connections.failures import Collided
from recado.storage.core.statements.rows import Executor, affected, columns, reader
from recado.storage.core.statements.sql import load
from recado.storage.core.statements.tables import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class PushDevice(Identified):
    """One device of an app. `token`: what its provider knows it by; of a browser the address of its push service."""

    organization_id: str
    env: str
    id: str
    app_id: str
    token: str
    platform: str
    status: DeviceStatus
    p256dh: str | None
    auth: str | None
    external_id: str | None
    contact_id: str | None
    user_name: str | None
    user_email: str | None
    user_phone: str | None
    device_name: str | None
    topics: tuple[str, ...]
    opted_out_at: datetime | None
    updated_at: datetime


PUSH_DEVICES: Final = Table(
    "push_devices",
    PushDevice,
    "device",
    own=load("push_devices"),
    convert={"status": DeviceStatus, "topics": tuple},
    derived={"token_hash": lambda device: hash_of(device.token)},
)
SQL = PUSH_DEVICES.sql
read = PUSH_DEVICES.read

UNLINKED_AT_ONCE: Final = 500

TokenKey = tuple[str, str, str, bytes]
"""Organization, environment, app, and the hash of the token."""

_OPT_OUT = [state.value for state in DEVICE_MACHINE.sources(DeviceEvent.OPTED_OUT)]


@dataclass(frozen=True, slots=True)
class DeviceStanding:
    """What is known of a registration: its app, the device with its token, and the contacts that it names."""

    platforms: tuple[str, ...] | None
    device: PushDevice | None
    contact_there: bool
    found_id: str | None


@dataclass(frozen=True, slots=True)
class PlatformSum:
    """How many devices of a platform stand where."""

    platform: str
    registered: int
    opted_out: int
    invalid: int


_read_sum = reader(PlatformSum)


def hash_of(token: str) -> bytes:
    """By what a token is found."""
    return sha256(token.encode()).digest()


async def standing(
    connection: Executor, asked: Sequence[tuple[TokenKey, str | None, str | None]]
) -> list[DeviceStanding]:
    """What is known of each (token, contact, external id), in order; devices and apps are held until the commit."""
    keys = [key for key, _, _ in asked]
    held = {
        (row["organization_id"], row["env"], row["app_id"], row["token_hash"]): read(row)
        for row in await connection.fetch(SQL.hold, *columns(keys, 4))
    }
    rows = await connection.fetch(
        SQL.named,
        *columns([(*key[:3], contact, external) for key, contact, external in asked], 5),
    )
    return [
        DeviceStanding(
            None if row["platforms"] is None else tuple(row["platforms"]),
            held.get(key),
            row["contact_there"],
            row["found_id"],
        )
        for key, row in zip(keys, rows, strict=True)
    ]


async def write(connection: Executor, devices: Sequence[PushDevice]) -> None:
    """Store new ones, and change those that are there."""
    given = sorted(devices, key=lambda device: device.id)
    await connection.execute(
        SQL.write,
        *columns(
            [
                (
                    d.organization_id, d.env, d.id, d.app_id, d.token, hash_of(d.token), d.platform, d.status.value,
                    d.p256dh, d.auth, d.external_id, d.contact_id, d.user_name, d.user_email, d.user_phone,
                    d.device_name, "\x1f".join(d.topics), d.opted_out_at, d.updated_at,
                )
                for d in given
            ],
            19,
        ),
    )  # fmt: skip


async def link(connection: Executor, changes: Iterable[tuple[PushDevice | None, PushDevice | None]]) -> None:
    """See to it that the contacts which these changes (before, after) link devices to stay until the commit (C12.6).

    After the devices are locked, as `count`. Raises `Collided` when one was deleted since its device was linked.
    """
    linked = {
        (after.organization_id, after.env, after.contact_id)
        for before, after in changes
        if after is not None
        and after.contact_id is not None
        and (before is None or before.contact_id != after.contact_id)
    }
    if linked and await connection.fetchval(SQL.hold_contacts, *columns(list(linked), 3)) < len(linked):
        raise Collided


async def count(connection: Executor, changes: Iterable[tuple[PushDevice | None, PushDevice | None]]) -> None:
    """Count for contacts what these changes of devices (before, after) mean for their reach, in the same transaction.

    After the devices are locked, once in a transaction: whoever has locked contacts waits for no device.
    """
    more: Counter[tuple[str, str, str]] = Counter()
    for before, after in changes:
        for device, change in ((before, -1), (after, 1)):
            if device is not None and device.contact_id is not None and device.status is DeviceStatus.REGISTERED:
                more[device.organization_id, device.env, device.contact_id] += change
    rows = [(*contact, change) for contact, change in more.items() if change]
    if rows:
        await connection.execute(SQL.count, *columns(rows, 4))


async def opt_out(connection: Executor, key: TokenKey, now: datetime) -> PushDevice | None:
    """Let the device leave all later sends; one that has left keeps its moment. None: nobody has this token."""
    row = await connection.fetchrow(SQL.opt_out, *key, now, DeviceStatus.OPTED_OUT.value, _OPT_OUT)
    if row is not None:
        device = read(row)
        await count(connection, [(replace(device, status=DeviceStatus(row["before"])), device)])
        return device
    row = await connection.fetchrow(SQL.by_token, *key)
    return None if row is None else read(row)


async def invalidate(connection: Executor, devices: Sequence[tuple[str, str, str]], now: datetime) -> None:
    """The provider knows these (organization, environment, device) no more."""
    sources = [state.value for state in DEVICE_MACHINE.sources(DeviceEvent.UNREGISTERED)]
    rows = await connection.fetch(
        SQL.invalidate, *columns(sorted(devices), 3), now, DeviceStatus.INVALID.value, sources
    )
    await count(connection, [(replace(read(row), status=DeviceStatus.REGISTERED), None) for row in rows])


async def unlink(connection: Executor, organization_id: str, env: str, contact_id: str, now: datetime) -> bool:
    """Take what is personal out of some devices of a contact that is deleted (C12.6); whether more may have it.

    Those of one that refused have opted out from then on (C22.2).

    Nobody counts them any more for the contact (`count`): that goes in the same transaction, or has gone before.
    """
    done = affected(await connection.execute(SQL.unlink, organization_id, env, contact_id, UNLINKED_AT_ONCE, now))
    return done == UNLINKED_AT_ONCE


async def sums(executor: Executor, organization_id: str, env: str) -> list[PlatformSum]:
    """By platform; those without a device are absent."""
    return [_read_sum(row) for row in await executor.fetch(SQL.sums, organization_id, env)]
