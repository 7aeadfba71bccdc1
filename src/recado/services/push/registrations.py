"""Registrations of devices, which apps make at each start: many in one commit (C22.2).

Two of one token in a commit follow one another, so that the later one sees what the earlier one made.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from recado.domain.core.clock import Clock
from recado.domain.core.errors import FieldError, Problem, not_found
from recado.domain.core.ids import PUSH_DEVICE, IdSource
from recado.domain.push.device import WEB, DeviceStatus, Identity, identified, registered
from recado.storage.core.connections.batch import Batcher
from recado.storage.core.connections.postgres import Database
from recado.storage.push import devices
from recado.storage.push.devices import DeviceStanding, PushDevice, TokenKey

MOST_WAITING: Final = 10_000
IN_A_COMMIT: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """What an app says of a device. None: nothing; what is stored stays."""

    organization_id: str
    env: str
    app_id: str
    token: str
    platform: str | None = None
    p256dh: str | None = None
    auth: str | None = None
    external_id: str | None = None
    contact_id: str | None = None
    user_name: str | None = None
    user_email: str | None = None
    user_phone: str | None = None
    device_name: str | None = None
    topics: tuple[str, ...] | None = None
    opted_in: bool | None = None

    @property
    def key(self) -> TokenKey:
        return self.organization_id, self.env, self.app_id, devices.hash_of(self.token)


@dataclass(frozen=True, slots=True)
class Registered:
    """The device as it is now. `created`: nobody knew its token."""

    device: PushDevice
    created: bool


_TEXTS: Final = ("user_name", "user_email", "user_phone", "device_name", "topics")


class DeviceRegistrations:
    """A service (`start`, `stop`)."""

    def __init__(self, db: Database, *, ids: IdSource, clock: Clock) -> None:
        self._db = db
        self._ids = ids
        self._clock = clock
        self._batcher: Batcher[Registration, Registered] = Batcher(
            "device registrations",
            self._run,
            clock=clock,
            max_rows=IN_A_COMMIT,
            max_queue=MOST_WAITING,
            concurrency=1,  # two commits would not see each other's new tokens
            owner=lambda row: row.organization_id,
        )
        self.start = self._batcher.start
        self.stop = self._batcher.stop

    async def register(self, registration: Registration) -> Registered:
        """Store what an app says. Raises `Problem`: 404 for an app or contact that is not there, 400 for what lacks."""
        return await self._batcher.put(registration)

    async def _run(self, rows: Sequence[Registration]) -> list[Registered | Exception]:
        results: dict[int, Registered | Exception] = {}
        changes: list[tuple[PushDevice | None, PushDevice]] = []
        async with self._db.hot.transaction() as connection:
            left = list(enumerate(rows))
            while left:
                seen: set[TokenKey] = set()
                now_due: list[tuple[int, Registration]] = []
                later: list[tuple[int, Registration]] = []
                for place, row in left:
                    (later if row.key in seen else now_due).append((place, row))
                    seen.add(row.key)
                known = await devices.standing(
                    connection, [(row.key, row.contact_id, row.external_id) for _, row in now_due]
                )
                written: list[PushDevice] = []
                for (place, row), stands in zip(now_due, known, strict=True):
                    try:
                        made = self._made(row, stands, self._clock.now())
                    except Problem as refusal:
                        results[place] = refusal
                        continue
                    if made != stands.device:
                        written.append(made)
                        changes.append((stands.device, made))
                    results[place] = Registered(made, created=stands.device is None)
                if written:
                    await devices.write(connection, written)
                left = later
            await devices.link(connection, changes)
            await devices.count(connection, changes)
        return [results[place] for place in range(len(rows))]

    def _made(self, row: Registration, stands: DeviceStanding, now: datetime) -> PushDevice:
        """The device after the registration; as it was when nothing differs."""
        if stands.platforms is None or (row.contact_id is not None and not stands.contact_there):
            raise not_found()
        before = stands.device
        platform = row.platform or (before.platform if before else None)
        if platform is None:
            raise _refused("platform", "REQUIRED", "The first registration of a token needs its platform.")
        if platform not in stands.platforms:
            raise _refused("platform", "NOT_ALLOWED", "The app is not one of this platform.")
        p256dh = row.p256dh or (before.p256dh if before else None)
        auth = row.auth or (before.auth if before else None)
        if platform == WEB and (p256dh is None or auth is None):
            raise Problem("WEB_PUSH_KEYS_REQUIRED", "A browser is registered with `p256dh` and `auth`.")
        given = Identity(row.contact_id, row.external_id)
        if before is None:
            identity = identified(Identity(None, None), given, stands.found_id)
            status = registered(None, row.opted_in)
            device_id = self._ids.new(PUSH_DEVICE)
            return PushDevice(
                organization_id=row.organization_id, env=row.env, id=device_id, app_id=row.app_id, token=row.token,
                platform=platform, status=status, p256dh=p256dh, auth=auth, external_id=identity.external_id,
                contact_id=identity.contact_id, user_name=row.user_name, user_email=row.user_email,
                user_phone=row.user_phone, device_name=row.device_name, topics=row.topics or (),
                opted_out_at=now if status is DeviceStatus.OPTED_OUT else None, updated_at=now,
            )  # fmt: skip
        identity = identified(Identity(before.contact_id, before.external_id), given, stands.found_id)
        status = registered(before.status, row.opted_in)
        told = {name: value for name in _TEXTS if (value := getattr(row, name)) is not None}
        after = replace(
            before, platform=platform, status=status, p256dh=p256dh, auth=auth, external_id=identity.external_id,
            contact_id=identity.contact_id, opted_out_at=_left_at(before, status, now), **told,
        )  # fmt: skip
        return before if after == before else replace(after, updated_at=now)


def _left_at(before: PushDevice, status: DeviceStatus, now: datetime) -> datetime | None:
    if status is not DeviceStatus.OPTED_OUT:
        return None
    return before.opted_out_at if before.status is DeviceStatus.OPTED_OUT else now


def _refused(field: str, code: str, message: str) -> Problem:
    return Problem("BAD_REQUEST", message, errors=[FieldError(f"/{field}", code, message)])
